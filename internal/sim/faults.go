package sim

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// fault is something that the adversary does to a process, or to all processes.
type fault struct {
	name   string
	strike func(w *world, p *proc)
}

// long draws how long a fault lasts: shorter or longer than leases, sessions and drains.
func (w *world) long() time.Duration {
	return w.upTo(oneOf(w.rnd, w.timeouts[0], 2*w.longest(), 20*time.Second))
}

func cut(links nelitest.Link) func(*world, *proc) {
	return func(w *world, p *proc) {
		w.broker.CutOff(p.id, links)
		w.later(w.long(), func() { w.broker.Restore(p.id, links) })
	}
}

// faults are the faults that every storm may have.
var faults = slices.Concat(networkFaults, processFaults, logFaults, replicaFaults)

var networkFaults = []fault{
	{"cut off", cut(nelitest.LinkAll)},
	{"cannot write", cut(nelitest.LinkAppends)},
	{"cannot read", cut(nelitest.LinkReads)},
	{"acknowledgements lost", cut(nelitest.LinkAcks)},
	{"cut off from the group", cut(nelitest.LinkGroup)},
	{"cut off from the log", cut(nelitest.LinkAppends | nelitest.LinkAcks | nelitest.LinkReads)},
	{"next append delayed", func(w *world, p *proc) { w.delayNext(p, w.upTo(10*p.t)) }},
	{"next appends delayed", func(w *world, p *proc) {
		for range 1 + w.rnd.IntN(4) {
			w.delayNext(p, w.upTo(2*p.t))
		}
	}},
	{"slow appends", func(w *world, p *proc) {
		p.slowAppends(w.upTo(p.t))
		w.later(w.long(), func() { p.slowAppends(0) })
	}},
	{"duplicates", func(w *world, p *proc) {
		w.broker.Duplicate(p.id, 5, w.upTo(max(10*time.Second, 2*p.t)))
		w.later(30*time.Second, func() { w.broker.Duplicate(p.id, 0, 0) })
	}},
	{"late, doubled and overtaken", func(w *world, p *proc) {
		for range 1 + w.rnd.IntN(4) {
			w.delayNext(p, w.upTo(2*p.t))
		}
		w.broker.Duplicate(p.id, 6, w.upTo(4*p.t))
		w.later(30*time.Second, func() { w.broker.Duplicate(p.id, 0, 0) })
	}},
	{"slow reads", func(w *world, p *proc) {
		p.slowReads(w.upTo(p.t))
		w.later(w.long(), func() { p.slowReads(0) })
	}},
	{"reads lag, then writes stop", func(w *world, p *proc) {
		p.slowReads(w.upTo(2 * p.t))
		time.Sleep(w.upTo(2 * p.t))
		w.broker.CutOff(p.id, nelitest.LinkAppends)
		w.later(p.t+w.long(), func() {
			p.slowReads(0)
			w.broker.Restore(p.id, nelitest.LinkAppends)
		})
	}},
	{"session expires", func(w *world, p *proc) { w.broker.Expire(p.id) }},
	{"rebalance", func(w *world, _ *proc) { w.broker.Rebalance() }},
	{"assigned everything, too", func(w *world, p *proc) { w.broker.Assign(p.id, w.allPartitions()...) }},
	{"assigned nothing", func(w *world, p *proc) { w.broker.Assign(p.id) }},
	{"broker restart", func(w *world, _ *proc) {
		w.broker.Stop()
		w.brokerIs(true)
		w.later(w.long(), func() {
			w.broker.Start()
			w.brokerIs(false)
		})
	}},
}

var processFaults = []fault{
	{"suspended", func(w *world, p *proc) {
		p.suspend(false, false)
		w.later(w.long(), p.wake)
	}},
	{"machine suspended", func(w *world, p *proc) {
		p.suspend(true, false)
		w.later(w.long(), p.wake)
	}},
	{"suspended with an append under way", func(w *world, p *proc) {
		w.delayNext(p, w.upTo(4*p.t))
		time.Sleep(w.upTo(p.t))
		p.suspend(false, false)
		w.broker.Rebalance()
		w.later(w.long(), p.wake)
	}},
	{"crash", func(w *world, p *proc) {
		w.crash(p)
		w.start(oneOf(w.rnd, "", p.name))
	}},
	{"close", func(w *world, p *proc) {
		w.leave(p)
		w.start(oneOf(w.rnd, "", p.name))
	}},
	{"all crash", func(w *world, _ *proc) {
		ps := w.living()
		for _, p := range ps {
			w.crash(p)
		}
		w.unsureNow()
		for range ps {
			w.start("")
		}
	}},
	{"replaced while suspended", func(w *world, p *proc) {
		p.suspend(w.chance(0.3), false)
		w.start(p.name)
		w.later(w.long(), func() {
			p.wake()
			w.leave(p)
		})
	}},
	{"application hangs", func(w *world, p *proc) {
		d := w.upTo(4 * simMaxPulse)
		p.app.hang(d)
		w.quietAfter(d)
	}},
	{"another R", func(w *world, p *proc) { p.setRoles(1 + w.rnd.IntN(w.roles)) }},
	{"wall clock set", func(w *world, p *proc) { p.clock.set(w.upTo(2*p.t)-p.t, 2*p.t) }},
	{"slewed", func(w *world, p *proc) { p.clock.slewTo(w.anySlew()) }},
}

var logFaults = []fault{
	{"rubbish", func(w *world, _ *proc) {
		w.inject(oneOf(w.rnd, []byte("rubbish"), []byte("{}"), nil, []byte(`{"neli":1,"group":"app","kind":"claim"}`), bytes.Repeat([]byte("x"), 70_000)))
	}},
	{"a copy of another cluster's record", func(w *world, _ *proc) {
		w.copied(func(v []byte) []byte { return bytes.Replace(v, []byte(`"log":"`), []byte(`"log":"x`), 1) })
	}},
	{"another group's record", func(w *world, _ *proc) {
		w.copied(func(v []byte) []byte { return bytes.Replace(v, []byte(`"group":"app"`), []byte(`"group":"other"`), 1) })
	}},
	{"head deleted", func(w *world, _ *proc) { w.deleteHead(w.anyBeginnings()) }},
	{"head deleted, and somebody starts", func(w *world, p *proc) {
		w.deleteHead(w.anyBeginnings())
		w.crash(p)
		w.start("")
	}},
	{"head deleted unread", func(w *world, p *proc) {
		w.broker.CutOff(p.id, nelitest.LinkReads)
		beginnings := w.anyBeginnings()
		w.later(w.long(), func() {
			w.deleteHead(beginnings)
			w.broker.Restore(p.id, nelitest.LinkReads)
		})
	}},
	{"offsets without records", func(w *world, _ *proc) { w.skip() }},
}

// replicaFaults need brokers with different records. A record that not all in-sync replicas have
// cannot have been read yet. A new leader may have it or not.
var replicaFaults = []fault{
	{"followers lag", func(w *world, p *proc) { w.lag(p) }},
	{"another broker leads", func(w *world, _ *proc) { w.changeLeaders() }},
	{"another broker leads, which lagged", func(w *world, p *proc) {
		w.lag(p)
		for range 1 + w.rnd.IntN(3) {
			time.Sleep(w.upTo(p.t))
			w.changeLeaders()
		}
	}},
}

func (w *world) lag(p *proc) {
	w.broker.Lag(w.upTo(oneOf(w.rnd, p.t/10, p.t, 3*p.t)))
	w.later(w.long(), func() { w.broker.Lag(0) })
}

func (w *world) changeLeaders() {
	for partition := range w.partitions {
		_ = w.broker.ChangeLeader(simTopic, partition, w.rnd.IntN(4))
	}
}

// newerFault writes a record of a newer version, which delays all claims by W(60 s).
var newerFault = fault{"a newer version's record", func(w *world, _ *proc) {
	w.unsureNow()
	w.inject([]byte(`{"neli":2,"group":"app","kind":` + strconv.Itoa(w.rnd.IntN(100)) + `}`))
}}

// pauseFault stops all clocks of a machine, which is outside the promise.
var pauseFault = fault{"paused by its hypervisor", func(w *world, p *proc) {
	p.suspend(true, true)
	w.later(w.long(), p.wake)
}}

// breaches violate an assumption of the promise. Until w.breach nothing about leaders is asserted. Then all must work.
var breaches = []fault{
	{"topic truncated", func(w *world, _ *proc) {
		w.breachFor(2*w.patience() + 20*time.Second)
		partition := w.rnd.IntN(w.partitions)
		if rs := w.broker.Records(simTopic, partition); len(rs) > 0 {
			_ = w.broker.Truncate(simTopic, partition, rs[len(rs)-1].Offset-int64(w.rnd.IntN(20)))
		}
	}},
	{"topic recreated", func(w *world, _ *proc) {
		w.breachFor(2*w.patience() + 30*time.Second)
		_ = w.broker.DeleteTopic(simTopic)
		w.later(w.upTo(5*time.Second), func() { _ = w.broker.CreateTopic(simTopic, w.partitions) })
	}},
}

// inject puts a record into a log.
func (w *world) inject(value []byte) {
	partition := w.rnd.IntN(w.partitions)
	if o, err := w.broker.Inject(simTopic, partition, value); err == nil {
		w.learn(partition, o, value)
	}
}

// skip adds offsets that no client sees to a log.
func (w *world) skip() {
	partition, n := w.rnd.IntN(w.partitions), 1+w.rnd.IntN(3)
	first, err := w.broker.Skip(simTopic, partition, n)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range int64(n) {
		w.truths[partition].empty[first+i] = true
	}
}

// copied injects a changed copy of some record of the log.
func (w *world) copied(change func([]byte) []byte) {
	rs := w.broker.Records(simTopic, w.rnd.IntN(w.partitions))
	if len(rs) > 0 {
		w.inject(change(bytes.Clone(rs[w.rnd.IntN(len(rs))].Value)))
	}
}

// beginning returns the offset at which a log with records first to last is to begin.
type beginning func(first, last int64) int64

// anyBeginnings draws a beginning for each partition, perhaps at the end. All random numbers are
// drawn now, since a beginning may be called later, on another goroutine.
func (w *world) anyBeginnings() []beginning {
	all := make([]beginning, w.partitions)
	for partition := range all {
		part := w.rnd.Float64()
		all[partition] = oneOf(w.rnd,
			func(_, last int64) int64 { return last },
			func(_, last int64) int64 { return last + 1 },
			func(first, last int64) int64 { return first + int64(part*float64(last-first+2)) },
		)
	}
	return all
}

// deleteHead moves the beginnings of the logs, as retention does. It keeps the records that the
// witness has not read: the witness writes nothing, so no member would write a Snapshot for it.
func (w *world) deleteHead(beginnings []beginning) {
	for partition, beginning := range beginnings {
		rs := w.broker.Records(simTopic, partition)
		if len(rs) == 0 {
			continue
		}
		w.learn(partition, rs[len(rs)-1].Offset, rs[len(rs)-1].Value)
		before := beginning(rs[0].Offset, rs[len(rs)-1].Offset)
		_ = w.broker.DeleteHead(simTopic, partition, min(before, w.witness.reading.upTo(partition)+1))
	}
}

// brokerIs notes whether the broker is down.
func (w *world) brokerIs(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
	if !down {
		w.restarted = time.Now()
	}
}

func (w *world) unsureNow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unsure = true
}

func (w *world) breachFor(d time.Duration) {
	w.quietAfter(d)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = true
	w.breach = time.Now().Add(d)
}

func (w *world) delayNext(p *proc, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delayed = append(p.delayed, d)
	w.broker.DelayNext(p.id, d)
}

func (w *world) allPartitions() []int {
	ps := make([]int, w.partitions)
	for p := range ps {
		ps[p] = p
	}
	return ps
}

// menu draws the few kinds of faults for this run.
func (w *world) menu(rnd *rand.Rand) []fault {
	ms := slices.Clone(faults)
	rnd.Shuffle(len(ms), func(i, j int) { ms[i], ms[j] = ms[j], ms[i] })
	ms = ms[:1+rnd.IntN(5)]
	if w.posts != nil {
		s := slices.Clone(sentinelFaults)
		rnd.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
		ms = append(ms, s[:3]...)
	}
	if w.newer {
		ms = append(ms, newerFault)
	}
	if w.profile == paused {
		ms = append(ms, pauseFault)
	}
	return ms
}

// victim draws the process for the next fault, often a leader.
func (w *world) victim() *proc {
	if w.chance(0.5) {
		if p := w.leaderOf(w.rnd.IntN(w.roles)); p != nil && !p.leaving.Load() {
			return p
		}
	}
	ps := w.living()
	return ps[w.rnd.IntN(len(ps))]
}

func (w *world) strike(f fault, p *proc) {
	w.opts.Seen.Count("fault: " + f.name)
	w.say(p.id, "fault: %s", f.name)
	f.strike(w, p)
}

// supervise replaces processes that have failed. They may fail only after a breach.
func (w *world) supervise() {
	for _, p := range w.living() {
		if p.State() != neli.StateFailed {
			continue
		}
		w.mu.Lock()
		if !w.broken {
			w.violated("%s failed: %v", p.id, p.Await())
		}
		w.mu.Unlock()
		w.opts.Seen.Count("failed: the topic was replaced")
		w.leave(p)
		w.start("")
	}
}
