package sim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/clock"
)

// proc is one process: a Neli, its clocks, and the application around it.
type proc struct {
	*neli.Neli
	w       *world
	id      string // its name at the broker
	name    string // its own name, which its successor on the same host has, too
	self    string // its random id
	t       time.Duration
	style   style
	clock   *machine
	drain   time.Duration // how long its work takes to end
	leaving atomic.Bool   // Close was called, or it crashed
	crashed atomic.Bool
	asleep  atomic.Bool    // suspended
	shares  atomic.Bool    // Rebalance was called
	pulsing sync.WaitGroup // the application's own loop
	stop    context.CancelFunc
	watcher sync.WaitGroup

	far     distance
	app     app      // state of its application
	heed    heed     // its state with respect to requests
	reading *reading // what it has read
	bench   bench    // what it prepares

	mu                    sync.Mutex // guards the fields below
	roles                 int        // R
	delayed               []time.Duration
	lateAt                time.Time     // when an append last took time and returned
	lateStamp             clock.Instant // the clock reading when that append was called
	unwell                time.Time     // since when the application is unwell; zero: it is well
	woken                 time.Time     // when the process last woke from a suspension
	checkHung, checkHangs time.Time     // since when its health check has hung, and until when it does
	awayFrom, awayUntil   clock.Mono    // from when and until when it claims nothing after it stepped down, by its own clock
	most                  int           // Config.MaxRoles
	priority, zone        int           // the highest zone leads, there the highest priority
	died                  time.Time     // when it crashed
}

// start starts a process with the given name, or with a new one.
func (w *world) start(name string) *proc {
	w.born++
	if name == "" {
		name = fmt.Sprint("h", w.born)
	}
	seed := w.rnd.Uint64()
	p := &proc{w: w, id: fmt.Sprint("p", w.born), name: name, style: style(w.rnd.IntN(int(styles))), t: oneOf(w.rnd, w.timeouts...),
		drain: w.upTo(simDrain * 4 / 3), app: newApp(), reading: newReading(w.partitions), roles: w.roles,
		clock: newMachine(w.began, w.drift*float64(w.rnd.IntN(3)-1), w.anySlew())}
	p.self = fmt.Sprintf("%s.%x", p.id, seed)
	if w.opts.tracer != nil {
		p.clock.Grain = time.Microsecond
	}
	if w.posts != nil {
		p.self = w.posts.enrol(p.self, p.name, p.t)
	}
	w.place(p)
	if w.profile == calm { // the application is not slow, either
		p.drain /= 20
	}
	if w.roles > 200 && p.style == byLead {
		p.style = byBackground
	}
	if !w.sameR {
		p.roles = 1 + w.rnd.IntN(w.roles)
	}
	cfg := neli.Config{LeaderGroupID: simGroup, LeaderTopic: simTopic, Name: name, Nomination: w.nomination,
		HeartbeatTimeout: p.t, MaxClockDrift: w.drift, Roles: p.roles, Partitions: w.partitions,
		MaxPulseInterval: simMaxPulse, DrainTimeout: simDrain, Provider: spy{w.broker.Provider(p.id), p},
		KafkaConfig: neli.KafkaConfigMap{"partition.assignment.strategy": w.assignor}}
	cfg.Logger = w.logger(p.id, w.opts)
	w.inclined(p, &cfg)
	if w.weighing {
		cfg.Weight = weightOf
	}
	w.prepares(p, seed, &cfg)
	w.heeding(p, &cfg)
	w.mu.Lock()
	w.called[p.self] = p.id
	w.mu.Unlock()
	n, err := w.opts.New(Machine{Clock: library{p.clock}, Random: random(seed, 31, w.still), ID: p.self}, cfg, p.barrier)
	if err != nil {
		w.Fatal(err)
	}
	p.Neli = n
	w.say(p.id, "starts as %s: style %d, T %v, R %d, clock rates %v and %v, its work takes %v to end", name, p.style, p.t, p.roles,
		1+p.clock.Raw, p.clock.rate(), p.drain)
	w.mu.Lock()
	w.procs = append(w.procs, p)
	w.mu.Unlock()
	p.watcher.Go(p.watch)
	p.drive()
	return p
}

func (w *world) anySlew() float64 { return w.slew * float64(w.rnd.IntN(5)-2) / 2 }

// random returns a process's own source of randomness. If still, it returns only zeros.
func random(seed, stream uint64, still bool) func(time.Duration) time.Duration {
	var mu sync.Mutex
	rnd := rand.New(rand.NewPCG(seed, stream))
	return func(d time.Duration) time.Duration {
		if still || d <= 0 {
			return 0
		}
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(rnd.Int64N(int64(d)))
	}
}

// younger reports whether less than d has passed since s by all of its clocks.
func (p *proc) younger(s clock.Instant, d time.Duration) bool { return p.clock.Now().Age(s) < d }

// setRoles changes R.
func (p *proc) setRoles(r int) {
	p.mu.Lock()
	p.roles = r
	p.mu.Unlock()
	p.reading.mu.Lock()
	maps.DeleteFunc(p.reading.told, func(role int, _ standing) bool { return role >= r })
	p.reading.mu.Unlock()
	if err := p.SetRoles(r); err != nil {
		p.w.violated("%s: SetRoles(%d): %v", p.id, r, err)
	}
}

// r returns R, how many roles the process contends for.
func (p *proc) r() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.roles
}

// suspend stops the process. If its machine is suspended, the raw and monotonic clocks stop, too.
func (p *proc) suspend(machine, hypervisor bool) {
	p.app.stop()
	p.asleep.Store(true)
	switch {
	case hypervisor:
		p.clock.pause()
	case machine:
		p.clock.suspend(2 * p.t)
	}
	p.w.broker.Suspend(p.id)
	p.w.posts.stops(p.self, false)
}

func (p *proc) wake() {
	p.clock.resume()
	p.w.broker.Resume(p.id)
	p.mu.Lock()
	p.woken = time.Now()
	p.mu.Unlock()
	p.asleep.Store(false)
	p.app.goOn()
}

// leave closes a process in good order, while everything else goes on.
func (w *world) leave(p *proc) {
	if p.leaving.Swap(true) {
		return
	}
	w.ending.Go(func() {
		p.pulsing.Wait()
		if err := p.Close(); err != nil {
			w.say(p.id, "closed: %v", err)
		}
		p.stop()
		p.watcher.Wait()
		w.bury(p)
		w.posts.left(p.self)
		if left := p.app.left(); left != "" {
			w.violated("%s closed and was never told of the end of %s", p.id, left)
		}
		p.bench.closed()
	})
}

func (w *world) bury(p *proc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.procs = slices.DeleteFunc(w.procs, func(q *proc) bool { return q == p })
	w.buried = append(w.buried, p)
}

// crash ends a process as SIGKILL does. What still runs of it here is ignored.
func (w *world) crash(p *proc) {
	p.leaving.Store(true)
	p.crashed.Store(true)
	w.broker.Kill(p.id)
	p.wake()
	w.bury(p)
	p.mu.Lock()
	p.died = time.Now()
	p.mu.Unlock()
	w.posts.stops(p.self, true)
	w.ending.Go(func() {
		p.pulsing.Wait()
		_ = p.Close()
		p.stop()
		p.watcher.Wait()
	})
}

// another draws a process other than p, or nil.
func (w *world) another(p *proc) *proc {
	ps := slices.DeleteFunc(w.living(), func(q *proc) bool { return q == p })
	if len(ps) == 0 {
		return nil
	}
	return ps[w.rnd.IntN(len(ps))]
}
