package sim

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/clock"
)

// smallEpoch is the reading of a correct wall clock when a run begins.
const smallEpoch = clock.Wall(250_000 * time.Hour)

// smallProc is one process on small logs: a Neli, its clocks, and what its application was told.
type smallProc struct {
	*neli.Neli
	w        *smallWorld
	id, name string
	self     string // its random id
	clock    *machine
	drain    time.Duration // how long its barrier takes to give up a role
	far      distance
	bench    bench       // what it prepares
	leaving  atomic.Bool // Close was called, or it crashed
	crashed  atomic.Bool

	mu   sync.Mutex
	told map[int]int64 // role → token that the application was told of
	died time.Time     // when it crashed
}

// start starts a process with the given name, or with a new one.
func (w *smallWorld) start(name string) *smallProc {
	w.born++
	if name == "" {
		name = fmt.Sprint("h", w.born)
	}
	seed := w.rnd.Uint64()
	p := &smallProc{w: w, id: fmt.Sprint("p", w.born), name: name, drain: w.upTo(w.t / 5), told: map[int]int64{},
		clock: newMachine(w.began, w.drift*float64(w.rnd.IntN(3)-1), w.anySlew())}
	p.clock.set(time.Since(w.began)+w.upTo(w.t/5)-w.t/10, 0)
	cfg := neli.Config{LeaderGroupID: simGroup, Name: name, HeartbeatTimeout: w.t, MaxClockDrift: w.drift, Roles: w.roles,
		DrainTimeout: w.t, Provider: w.net.Provider(p.id), Logger: w.logger(p.id, w.opts)}
	p.self = fmt.Sprintf("%s.%x", p.id, seed)
	if w.posts != nil {
		p.self = w.posts.enrol(p.self, name, w.t)
	}
	w.place(p)
	p.bench.starts(p.id, &w.journal, w.opts.Seen, seed)
	p.bench.trail, p.bench.limit, p.bench.stopped = w.opts.Seed%6 == 0, w.t, func() chan struct{} { return nil }
	if w.opts.Seed%3 == 0 {
		p.bench.joins(&cfg)
	}
	var err error
	p.Neli, err = w.opts.New(Machine{Clock: library{p.clock}, Random: random(seed, 41, false), ID: p.self}, cfg, p.barrier)
	if err != nil {
		w.Fatal(err)
	}
	w.say(p.id, "starts as %s: clock rates %v and %v", name, 1+p.clock.Raw, p.clock.rate())
	w.mu.Lock()
	w.procs = append(w.procs, p)
	w.mu.Unlock()
	if _, err := p.Background(func() { time.Sleep(w.t / 20) }); err != nil {
		w.Fatal(err)
	}
	return p
}

func (w *smallWorld) anySlew() float64 { return w.slew * float64(w.rnd.IntN(5)-2) / 2 }

// leave closes a process in good order, while everything else goes on.
func (w *smallWorld) leave(p *smallProc) {
	if p.leaving.Swap(true) {
		return
	}
	w.ending.Go(func() {
		if err := p.Close(); err != nil {
			w.say(p.id, "closed: %v", err)
		}
		w.bury(p)
		w.posts.left(p.self)
		p.bench.closed()
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.told) > 0 {
			w.violated("%s closed and was never told of the end of %v", p.id, p.told)
		}
	})
}

// crash ends a process as SIGKILL does. What still runs of it here is ignored.
func (w *smallWorld) crash(p *smallProc) {
	p.leaving.Store(true)
	p.crashed.Store(true)
	w.net.Kill(p.id)
	w.bury(p)
	p.mu.Lock()
	p.died = time.Now()
	p.mu.Unlock()
	w.posts.stops(p.self, true)
	w.ending.Go(func() { _ = p.Close() })
}

func (w *smallWorld) bury(p *smallProc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.procs = slices.DeleteFunc(w.procs, func(q *smallProc) bool { return q == p })
}

// barrier receives the events.
func (p *smallProc) barrier(e neli.Event) {
	p.w.say(p.id, "%v", e)
	switch e := e.(type) {
	case neli.LeaderAcquired:
		for _, t := range e.Terms {
			for _, role := range t.Roles {
				p.acquired(role, t.Token)
			}
		}
	case neli.LeaderRevoked:
		p.ended(e.Change, false)
		time.Sleep(p.drain)
	case neli.LeaderFenced:
		p.ended(e.Change, true)
	}
	p.w.look()
}

// acquired asserts that a token belongs to one term, and is larger than those before.
func (p *smallProc) acquired(role int, token int64) {
	w, of := p.w, term{role, token}
	p.mu.Lock()
	if had, ok := p.told[role]; ok {
		w.violated("%s acquired role %d with token %d while it had token %d", p.id, role, token, had)
	}
	p.told[role] = token
	p.mu.Unlock()
	if p.crashed.Load() {
		return
	}
	w.opts.Seen.Count("terms")
	if p.far != (distance{}) {
		w.opts.Seen.Count("terms of far members")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if q := w.owners[of]; q != nil {
		w.violated("token %d of role %d is %s's and was %s's", token, role, p.id, q.id)
	}
	w.owners[of] = p
	if !p.IsLeaderOf(role) { // a process that was late at the barrier no longer leads
		return
	}
	if w.posts != nil {
		if q := w.owners[term{role, w.tokens[role]}]; q != nil {
			q.mu.Lock()
			died := q.died
			q.mu.Unlock()
			w.posts.succeeded(died, w.t)
		}
	}
	if last := w.tokens[role]; token <= last {
		w.violated("role %d is led with token %d after token %d", role, token, last)
	}
	w.tokens[role] = token
}

// ended asserts that a term that ends had begun, and that a fenced role is no longer led.
func (p *smallProc) ended(c neli.Change, fenced bool) {
	p.w.opts.Seen.Count("ended: " + c.Reason.String())
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range c.Terms {
		for _, role := range t.Roles {
			if had, ok := p.told[role]; !ok || had != t.Token {
				p.w.violated("%s was told of the end of role %d token %d, and had %d (%v)", p.id, role, t.Token, had, ok)
			}
			delete(p.told, role)
			if fenced && p.IsLeaderOf(role) {
				p.w.violated("%s leads role %d, and was told that it is fenced", p.id, role)
			}
		}
	}
}

// sample asserts again and again that no role has two leaders.
func (w *smallWorld) sample(stop chan struct{}) {
	tick := time.NewTicker(w.t / 100)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			w.look()
		}
	}
}

func (w *smallWorld) look() {
	w.mu.Lock()
	procs := slices.Clone(w.procs)
	w.mu.Unlock()
	for role := range w.roles {
		var leader *smallProc
		for _, p := range procs {
			if p.crashed.Load() || !p.IsLeaderOf(role) {
				continue
			}
			if leader != nil {
				w.violated("role %d is led by %s and by %s", role, leader.id, p.id)
			}
			leader = p
		}
	}
}
