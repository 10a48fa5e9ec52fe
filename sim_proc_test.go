package neli_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goneli/neli"
)

// style is how an application drives its Neli.
type style int

const (
	byBackground style = iota
	byPulse
	byLead
	styles
)

// proc is one process: a Neli and the application around it.
type proc struct {
	*neli.Neli
	w       *world
	id      string // what the broker calls it
	name    string // what it calls itself; its successor on the same host is called the same
	group   string
	style   style
	clock   *simClock
	drain   time.Duration // how long its work takes to end
	leaving atomic.Bool   // Close was called, or it crashed
	crashed atomic.Bool
	asleep  atomic.Bool    // suspended
	pulsing sync.WaitGroup // the application's own loop
	busy    atomic.Int64   // since when the user's code runs, by the process's own clock; 0: it does not
	stop    context.CancelFunc

	mu                    sync.Mutex // guards what follows
	stopped               chan struct{}
	hungUntil             time.Time
	inside                bool          // the barrier or the task runs
	left                  time.Duration // when the user's code returned last, by the process's own clock
	since                 time.Duration // since when the library had no chance to deliver anything
	told                  map[int]int64 // partition → token that the application was told of
	work                  map[int]*work // partition → work under way
	fns                   map[int]bool  // roles whose function runs
	proofs                map[term]stamp
	delayed               []time.Duration // by which the broker will delay the next appends
	lateAt                time.Time       // an append returned late, at this instant
	lateStamp             stamp           // when it was called
	lapsed                map[int]bool    // partitions whose last term here lapsed
	unwell                time.Time       // since when the application is; zero: it is well
	woken                 time.Time       // when the process was last suspended
	checkHung, checkHangs time.Time       // since when the check of its health hangs, or did; and until when
	awayFrom, awayUntil   time.Duration   // when it stepped down, by its own clock
	priority              int
}

// work is what the application does as leader of a partition.
type work struct {
	token   int64
	open    int           // functions at work, or 1
	dueMono time.Duration // when it is to be over, by the process's own clock; 0: not asked
}

func (t *work) dueBy(mono time.Duration) {
	if t.dueMono == 0 || mono < t.dueMono {
		t.dueMono = mono
	}
}

// stamp is a reading of a process's clock.
type stamp struct{ mono, wall time.Duration }

func (p *proc) read() stamp {
	mono, wall := p.clock.now()
	return stamp{mono, wall}
}

// younger reports whether less than d has passed since s by either clock.
func (p *proc) younger(s stamp, d time.Duration) bool {
	now := p.read()
	return now.mono-s.mono < d && now.wall-s.wall < d
}

// start brings up a process of the given name, or of a new one.
func (w *world) start(name, group string) *proc {
	w.born++
	if name == "" {
		name = fmt.Sprint("h", w.born)
	}
	p := &proc{w: w, id: fmt.Sprint("p", w.born), name: name, group: group, style: style(w.rnd.IntN(int(styles))),
		drain: w.upTo(simDrain * 4 / 3), told: map[int]int64{}, work: map[int]*work{}, fns: map[int]bool{},
		proofs: map[term]stamp{}, lapsed: map[int]bool{},
		clock: &simClock{began: w.began, rate: 1 + w.drift*float64(w.rnd.IntN(3)-1)}}
	cfg := neli.Config{LeaderGroupID: group, LeaderTopic: simTopic, Name: name, Mode: w.mode, Nomination: w.nomination,
		HeartbeatTimeout: w.timeout, MaxClockDrift: w.drift, Roles: w.roles, Partitions: w.partitions, GroupsOnTopic: w.groups,
		MaxPulseInterval: simMaxPulse, DrainTimeout: simDrain, Provider: spy{w.broker.Provider(p.id), p},
		KafkaConfig: neli.KafkaConfigMap{"partition.assignment.strategy": w.assignor}}
	w.inclined(p, &cfg)
	n, err := neli.NewOn(p.machine(w.rnd.Uint64()), cfg, p.barrier)
	if err != nil {
		w.Fatal(err)
	}
	p.Neli = n
	w.say(p.id, "starts as %s in %s: style %d, clock rate %v, its work takes %v to end", name, group, p.style, p.clock.rate, p.drain)
	w.mu.Lock()
	w.procs = append(w.procs, p)
	w.mu.Unlock()
	p.drive()
	return p
}

// machine is what the process runs on: all that is random has its seed.
func (p *proc) machine(seed uint64) neli.Machine {
	var mu sync.Mutex
	rnd, ids := rand.New(rand.NewPCG(seed, 31)), 0
	return neli.Machine{
		Now: p.clock.now,
		Random: func(d time.Duration) time.Duration {
			if p.w.willed && p.w.calm {
				return 0
			}
			mu.Lock()
			defer mu.Unlock()
			return time.Duration(rnd.Int64N(int64(d)))
		},
		NewID: func() string {
			mu.Lock()
			defer mu.Unlock()
			ids++
			return fmt.Sprintf("%s.%d.%x", p.id, ids, seed)
		},
	}
}

func (p *proc) drive() {
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	switch p.style {
	case byBackground:
		if _, err := p.Background(p.task); err != nil {
			p.w.Fatal(err)
		}
	case byLead:
		p.w.ending.Go(func() { _ = p.Lead(ctx, p.lead) })
	case byPulse:
		p.pulsing.Go(p.pulses)
	default:
		panic("no such style")
	}
}

// pulses is the application of goNELI's README. It ends before Close is called, as
// Close's documentation asks for.
func (p *proc) pulses() {
	for !p.leaving.Load() {
		leads, err := p.Pulse(time.Second)
		if err != nil {
			return
		}
		if leads {
			p.task()
		}
	}
}

func (p *proc) task() {
	p.enter(false)
	defer p.leave()
	time.Sleep(100 * time.Millisecond)
	p.linger()
}

// lead is the application of those who use Lead.
func (p *proc) lead(ctx context.Context, l neli.Leadership) error {
	p.mu.Lock()
	if p.fns[l.Role] {
		p.w.violated("%s: the function of role %d runs twice", p.id, l.Role)
	}
	p.fns[l.Role] = true
	t := p.work[l.Partition]
	if t == nil || t.token != l.Token {
		t = &work{token: l.Token}
		p.work[l.Partition] = t
	}
	t.open++
	p.mu.Unlock()
	<-ctx.Done()
	p.mu.Lock()
	t.dueBy(p.read().mono + simDrain)
	p.mu.Unlock()
	time.Sleep(p.drain)
	p.mu.Lock()
	defer p.mu.Unlock()
	t.open--
	p.fns[l.Role] = false
	return ctx.Err()
}

// barrier is told of changes.
func (p *proc) barrier(e neli.Event) {
	p.enter(true)
	defer p.leave()
	p.w.say(p.id, "%v", e)
	switch e := e.(type) {
	case neli.LeaderAcquired:
		for _, t := range e.Terms {
			p.acquired(t)
			p.w.look(t.Partition)
		}
	case neli.LeaderRevoked:
		p.ended(e.Change)
		p.revoked(e)
		p.linger()
		p.workEnds(e.Change)
	case neli.LeaderFenced:
		p.ended(e.Change)
		p.fenced(e.Change)
		p.linger()
	}
}

func (p *proc) acquired(t neli.Term) {
	p.mu.Lock()
	if token, ok := p.told[t.Partition]; ok {
		p.w.violated("%s acquired partition %d with token %d while it had token %d", p.id, t.Partition, t.Token, token)
	}
	p.told[t.Partition] = t.Token
	if p.style != byLead {
		p.work[t.Partition] = &work{token: t.Token, open: 1}
	}
	again := p.lapsed[t.Partition]
	p.lapsed[t.Partition] = false
	p.mu.Unlock()
	if again {
		p.w.seen.count("a new term after a lapse")
	}
	p.w.acquired(p, t)
}

// ended asserts that what ends had begun.
func (p *proc) ended(c neli.Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range c.Terms {
		if token, ok := p.told[t.Partition]; !ok || token != t.Token {
			p.w.violated("%s was told of the end of partition %d token %d, and had %d (%v)", p.id, t.Partition, t.Token, token, ok)
		}
		delete(p.told, t.Partition)
	}
	p.w.seen.count("ended: " + c.Reason.String())
	if c.Reason == neli.ReasonRebalanced && (!p.w.willed && p.w.nomination != neli.Open || p.w.willed && p.w.levels != neli.RebalanceOn) {
		p.w.violated("%s was rebalanced, which is off", p.id)
	}
}

func (p *proc) revoked(e neli.LeaderRevoked) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.read()
	for _, t := range e.Terms {
		if w := p.work[t.Partition]; w != nil && w.token == t.Token && !e.Deadline.IsZero() {
			w.dueBy(now.mono + time.Until(e.Deadline))
		}
	}
}

func (p *proc) fenced(c neli.Change) {
	p.mu.Lock()
	for _, t := range c.Terms {
		p.lapsed[t.Partition] = c.Reason == neli.ReasonLapsed
	}
	p.mu.Unlock()
	p.workEnds(c)
}

func (p *proc) workEnds(c neli.Change) {
	if p.style == byLead {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range c.Terms {
		delete(p.work, t.Partition)
	}
}

// enter asserts that barrier and task never run side by side. Events that are
// delivered together were due when the first was.
func (p *proc) enter(event bool) {
	p.mu.Lock()
	if p.inside && !p.crashed.Load() {
		p.w.violated("%s: barrier and task run side by side", p.id)
	}
	p.inside = true
	now := p.read().mono
	if !event || now != p.left {
		p.since = now
	}
	p.busy.Store(int64(now))
	stopped := p.stopped
	p.mu.Unlock()
	if stopped != nil {
		<-stopped
	}
}

func (p *proc) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inside = false
	p.left = p.read().mono
	p.busy.Store(0)
}

// linger is the part of the user's code that may take long.
func (p *proc) linger() {
	p.mu.Lock()
	revoked := slices.ContainsFunc(p.due(), func(d time.Duration) bool { return d > 0 })
	until, stopped := p.hungUntil, p.stopped
	p.mu.Unlock()
	if revoked {
		time.Sleep(p.drain)
	}
	time.Sleep(time.Until(until))
	if stopped != nil {
		<-stopped
	}
}

func (p *proc) due() []time.Duration {
	var ds []time.Duration
	for _, w := range p.work {
		ds = append(ds, w.dueMono)
	}
	return ds
}

// hang makes the application hang from its next step on.
func (p *proc) hang(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hungUntil = time.Now().Add(d)
}

// suspend stops the process; with its machine, the monotonic clock stops too.
func (p *proc) suspend(machine bool) {
	p.mu.Lock()
	if p.stopped == nil {
		p.stopped = make(chan struct{})
	}
	p.asleep.Store(true)
	p.mu.Unlock()
	if machine {
		p.clock.suspend(2 * p.w.timeout)
	}
	p.w.broker.Suspend(p.id)
}

func (p *proc) wake() {
	p.clock.resume()
	p.w.broker.Resume(p.id)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asleep.Store(false)
	p.woken = time.Now()
	if p.stopped != nil {
		close(p.stopped)
		p.stopped = nil
	}
}

// leave closes a process in order, beside everything else.
func (w *world) leave(p *proc) {
	if p.leaving.Swap(true) {
		return
	}
	w.ending.Go(func() {
		p.pulsing.Wait()
		_ = p.Close()
		p.stop()
		w.bury(p)
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.told) > 0 && !p.inside {
			w.violated("%s closed and was never told of the end of %v", p.id, p.told)
		}
	})
}

func (w *world) bury(p *proc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.procs = slices.DeleteFunc(w.procs, func(q *proc) bool { return q == p })
	w.buried = append(w.buried, p)
}

// crash ends a process as SIGKILL does; what is left of it here is not looked at
// any more.
func (w *world) crash(p *proc) {
	p.leaving.Store(true)
	p.crashed.Store(true)
	w.broker.Kill(p.id)
	p.wake()
	w.bury(p)
	w.ending.Go(func() {
		p.pulsing.Wait()
		_ = p.Close()
		p.stop()
	})
}
