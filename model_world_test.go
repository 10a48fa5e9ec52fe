package neli

import (
	"fmt"
	"slices"
	"time"
)

// The world of the model: a few processes, whose leases are the real ones, one
// log, and what is on its way to it. Only the environment is modelled: the log,
// the network, the clocks, crashes. Whatever the adversary may do next is an
// action; the search (model_search_test.go) tries all of them in every state.
//
// Between two ticks everything is instantaneous and happens in any order. A tick
// moves true time by one; each clock moves by any of the configured rates, chosen
// anew at every tick, so that a clock may run slow for a holder and fast for a
// claimant. A pause, a cut-off and a slow reader need no action of their own: a
// process that takes no action while ticks pass is one.

const (
	modelUnit  = time.Second // by which the model's clocks are read
	modelFirst = int64(32)   // offset of the first record, see model_code_test.go
	modelProcs = 3           // at most
)

// modelConfig says what the adversary may do, and the bound. Time is never
// bounded: ages matter up to T′ only.
type modelConfig struct {
	name    string
	level   int // from which on it is run
	procs   int
	term    int     // T in clock units
	drift   float64 // ρ
	rates   []int   // clock units that a clock may move in a tick
	records int     // that reach the log; 0: no bound
	lag     int     // unread records of the slowest reader; 0: no bound
	history int     // records kept for readers that start in the middle
	flight  int     // records on their way to the log at the same time; more are lost

	double   bool // an append may happen more than once
	fail     bool // claims are reported as failed at any moment, whatever becomes of them
	crash    bool // a process restarts as a new member, anywhere in what is kept of the log
	jump     bool // the reads of a live process jump anywhere in what is kept of the log
	noise    bool // records that play no part
	suspend  bool // wall clocks are set forward; with a rate of 0, machines are suspended
	recreate bool // the log is deleted and begins anew, once
	progress bool // check in each state that a leader follows once the faults end
}

func (c *modelConfig) rules(i int, newID func() string) leaseRules {
	t := time.Duration(c.term) * modelUnit
	// The margin of T′ is for the granularity of real clocks. The model's readings
	// are exact, so it does without: T′ is as tight as the proof has it.
	wait := silence(t, c.drift).Round(modelUnit)
	return leaseRules{group: "g", name: fmt.Sprint("p", i), term: threshold{t, true}, wait: wait, every: modelUnit, newID: newID}
}

type modelProc struct {
	lease lease
	at    instant // what its clocks show
	next  int64   // the offset that its reader delivers next
	stray bool    // the log was recreated, and its reader has not noticed
}

// modelWorld is a state. Offsets of the log begin at first.
type modelWorld struct {
	cfg    *modelConfig
	procs  []modelProc
	first  int64
	log    []record // what is kept of it
	count  int      // records that ever reached it, if there is a bound
	flight []record // sent, and not yet in the log; in any order

	// What the oracle remembers: the newest token that was led by or released.
	newest    int64
	spent     bool // it was released
	owner     int  // the process that led by it, −1 if that incarnation is gone
	recreated bool
}

func newModelWorld(c *modelConfig, newID func(i int) func() string) *modelWorld {
	w := &modelWorld{cfg: c, procs: make([]modelProc, c.procs), first: modelFirst, newest: noToken, owner: -1}
	for i := range w.procs {
		p := &w.procs[i]
		p.at = instant{mono: 1000 * modelUnit, wall: 1000 * modelUnit}
		p.lease.leaseRules = c.rules(i, newID(i))
		w.start(i, w.first)
	}
	return w
}

func (w *modelWorld) start(i int, s int64) {
	p := &w.procs[i]
	p.next, p.stray = s, false
	p.lease.start(s, p.at)
	if w.owner == i {
		w.owner = -1
	}
}

// set makes w a copy of o that shares nothing with it.
func (w *modelWorld) set(o *modelWorld) {
	procs, log, flight := w.procs, w.log, w.flight
	*w = *o
	w.log = append(log[:0], o.log...)
	w.flight = append(flight[:0], o.flight...)
	if len(procs) != len(o.procs) {
		procs = make([]modelProc, len(o.procs))
	}
	w.procs = procs
	for i := range procs {
		stamps := procs[i].lease.sent
		procs[i] = o.procs[i]
		procs[i].lease.sent = append(stamps[:0], o.procs[i].lease.sent...)
	}
}

func (w *modelWorld) end() int64 { return w.first + int64(len(w.log)) }

// room reports whether the bound allows another record in the log.
func (w *modelWorld) room() bool {
	c := w.cfg
	if c.records > 0 && w.count >= c.records {
		return false
	}
	for i := range w.procs {
		if c.lag > 0 && w.end()-w.procs[i].next >= int64(c.lag) {
			return false
		}
	}
	return true
}

func (w *modelWorld) append(r record) {
	w.log = append(w.log, r)
	if w.cfg.records > 0 {
		w.count++
	}
}

// trim forgets records that nobody will read any more.
func (w *modelWorld) trim() {
	keep := w.end() - int64(w.cfg.history)
	for i := range w.procs {
		keep = min(keep, w.procs[i].next)
	}
	if keep > w.first {
		w.log = slices.Delete(w.log, 0, int(keep-w.first))
		w.first = keep
	}
}

type modelOp byte

const (
	opRead   modelOp = iota // p reads one record
	opKeep                  // p decides: it wants to lead, and go on leading
	opDrop                  // p decides: it wants nothing more
	opLose                  // as opKeep, and what it sends is lost
	opForget                // as opDrop, and what it sends is lost
	opFail                  // p's claim is reported as failed
	opCrash                 // p restarts as a new member that reads on at first + x
	opJump                  // p's reads jump to first + x
	opSlip                  // the log was recreated: p's reader begins again and says nothing
	opAppend                // record x in flight reaches the log
	opDouble                // and stays in flight
	opNoise                 // a record that plays no part reaches the log
	opNew                   // the log is recreated
	opSet                   // p's wall clock is set forward by one unit
	opTick                  // time passes; x is the rates' number
)

type modelAction struct {
	op modelOp
	p  byte
	x  byte
}

// actions lists what may happen next. Some of it turns out to do nothing.
func (w *modelWorld) actions(list []modelAction) []modelAction {
	c := w.cfg
	for i := range w.procs {
		list = w.actionsOf(i, list)
	}
	for i := range w.flight {
		if w.room() {
			list = append(list, modelAction{opAppend, 0, byte(i)})
			if c.double {
				list = append(list, modelAction{opDouble, 0, byte(i)})
			}
		}
	}
	if c.noise && w.room() {
		list = append(list, modelAction{op: opNoise})
	}
	if c.recreate && !w.recreated {
		list = append(list, modelAction{op: opNew})
	}
	ticks := 1
	for range w.procs {
		ticks *= len(c.rates)
	}
	for x := range ticks {
		list = append(list, modelAction{opTick, 0, byte(x)})
	}
	return list
}

func (w *modelWorld) actionsOf(i int, list []modelAction) []modelAction {
	c, p := w.cfg, &w.procs[i]
	add := func(op modelOp, x int) { list = append(list, modelAction{op, byte(i), byte(x)}) }
	if p.next < w.end() {
		add(opRead, 0)
	}
	if len(w.flight) < c.flight {
		add(opKeep, 0)
		add(opDrop, 0)
	}
	add(opLose, 0)
	add(opForget, 0)
	if c.fail && p.lease.claiming != 0 {
		add(opFail, 0)
	}
	if c.suspend {
		add(opSet, 0)
	}
	for x := range len(w.log) + 1 {
		if c.crash {
			add(opCrash, x)
		}
		if c.jump || p.stray {
			add(opJump, x)
		}
	}
	if p.stray {
		add(opSlip, 0)
	}
	return list
}

// do takes an action. It returns what is wrong with it, and false if it did nothing.
func (w *modelWorld) do(a modelAction) (fault string, did bool) {
	i := int(a.p)
	p := &w.procs[i]
	switch a.op {
	case opRead:
		fault = w.read(i)
	case opKeep, opDrop, opLose, opForget:
		if !w.decide(i, a.op) {
			return "", false
		}
	case opFail:
		p.lease.failed(p.lease.me, p.lease.claiming, p.at)
	case opCrash:
		rules, stamps := p.lease.leaseRules, p.lease.sent[:0]
		p.lease = lease{leaseRules: rules, sent: stamps}
		w.start(i, w.first+int64(a.x))
	case opJump:
		w.start(i, w.first+int64(a.x))
	case opSlip:
		p.next, p.stray = w.first, false
	case opAppend:
		w.append(w.flight[a.x])
		w.flight = slices.Delete(w.flight, int(a.x), int(a.x)+1)
	case opDouble:
		w.append(w.flight[a.x])
	case opNoise:
		w.append(record{kind: kindHello, group: "g", member: "noise", token: noToken, read: -1})
	case opNew:
		w.log, w.count = w.log[:0], 0
		w.recreated = true
		for i := range w.procs {
			w.procs[i].stray = w.procs[i].next > w.first
		}
	case opSet:
		p.at.wall += modelUnit
	case opTick:
		w.tick(int(a.x))
	}
	w.trim()
	if fault == "" {
		fault = w.check()
	}
	return fault, true
}

func (w *modelWorld) read(i int) string {
	p := &w.procs[i]
	me := p.lease.me
	o := p.next
	p.next++
	c := p.lease.consume(w.log[o-w.first], o, p.at)
	if p.lease.me != me {
		p.stray = false
		if w.owner == i {
			w.owner = -1
		}
	}
	if c.alarm && !w.recreated {
		return faultAlarm
	}
	return ""
}

// decide lets process i take one step, and puts what it sends on its way. Beats
// that are lost leave no trace; a claim that is lost and never reported as failed
// makes its sender a mere reader, as one is that never claims.
func (w *modelWorld) decide(i int, op modelOp) bool {
	p := &w.procs[i]
	keep := op == opKeep || op == opLose
	k := p.lease.mine
	r, ok := p.lease.step(p.at, intent{want: keep, keep: keep, alive: keep})
	lost := op == opLose || op == opForget
	if !ok || lost && (r.kind == kindBeat || r.kind == kindClaim && !w.cfg.fail && !w.cfg.progress) {
		return false
	}
	if r.kind == kindRelease {
		w.released(k)
	}
	if !lost {
		w.flight = append(w.flight, r)
	}
	return true
}

// tick moves true time by one. Digit i of x, to the base of the number of rates,
// chooses process i's rate; the rate 0 is that of a suspended machine, whose wall
// clock goes on.
func (w *modelWorld) tick(x int) {
	for i := range w.procs {
		d := time.Duration(w.cfg.rates[x%len(w.cfg.rates)]) * modelUnit
		x /= len(w.cfg.rates)
		p := &w.procs[i]
		p.at.mono += d
		p.at.wall += max(d, modelUnit)
	}
}
