// Package crowd measures this library at scale: many roles and many members, several in a process.
// It measures how soon all roles are led, and evenly shared, after the start, after a process has
// died and after one has joined; and what that costs.
package crowd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/goneli/neli/lab/bench/idle"
	"github.com/goneli/neli/lab/bench/peers"
	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/pause"
	"github.com/goneli/neli/lab/witness"
)

// patience bounds each phase. T is added where leases must lapse first.
const patience = 2 * time.Minute

// apart is the pause between the starts of two processes: starting ten members keeps a small
// machine busy for about that long.
const apart = 500 * time.Millisecond

// crowd is the running processes.
type crowd struct {
	size  Size
	place peers.Place
	kafka peers.Kafka
	group string
	born  int
	log   func(string, ...any)

	mu        sync.Mutex // guards the ledger
	ledger    *ledger
	changed   chan struct{} // closed at the next change
	processes []*process
}

// Run measures one crowd on one broker. When all roles are shared out, the crowd is left alone for
// the window's time.
func Run(ctx context.Context, place peers.Place, size Size, window time.Duration, log func(string, ...any)) (Outcome, error) {
	kafka, err := peers.StartKafkaWith(ctx, place, kafkatest.Options{Brokers: 1, HeapMiB: 2048})
	if err != nil {
		return Outcome{}, err
	}
	defer kafka.Stop()
	c := &crowd{size: size, place: place, kafka: kafka, group: "crowd", log: log, ledger: newLedger(size.Roles), changed: make(chan struct{})}
	o := Outcome{Size: size, Window: window.String()}
	defer c.end()
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer stop()
	watch.Go(func() { c.watch(watching) })
	steps := []func(context.Context, *Outcome) error{c.begin, func(ctx context.Context, o *Outcome) error { return c.quiet(ctx, o, window) }}
	if !size.One {
		steps = append(steps, c.die, c.join, c.restart)
	}
	for _, step := range steps {
		if err := step(ctx, &o); err != nil {
			return o, err
		}
	}
	if err := c.ask(ctx, nil); err != nil {
		return o, err
	}
	c.look(func(l *ledger) {
		o.Lost += l.fenced()
		all := l.watched()
		o.Steps, o.Checks = &all.Steps, &all.Checks
	})
	c.log("%v; %d of them longer than T/50; %v; %d terms lost", o.Steps, o.Steps.Over, o.Checks, o.Lost)
	return o, nil
}

// phase waits until ok, and records how long that took.
func (c *crowd) phase(ctx context.Context, o *Outcome, what string, since time.Duration, limit time.Duration, ok func(*ledger) bool) error {
	p := Phase{What: what}
	met, err := c.until(ctx, limit, func(l *ledger) bool {
		p.Seconds, p.Vacant = l.seconds(since), l.vacant
		p.Spread, p.Least = l.spread()
		return ok(l)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if p.Unmet = !met; p.Unmet {
		p.Seconds = (witness.Now() - since).Seconds()
	}
	o.Phases = append(o.Phases, p)
	c.log("%s: %v, %.2f s, max/mean %.2f, min/mean %.2f, %d without a leader", p.What, met, p.Seconds, p.Spread, p.Least, p.Vacant)
	return nil
}

// begin starts all processes. With size.One the first one leads everything before the others start.
func (c *crowd) begin(ctx context.Context, o *Outcome) error {
	began := c.anew()
	first := c.size.Processes
	if c.size.One {
		first = 1
	}
	var starting errgroup.Group
	starting.Go(func() error { return c.startAll(ctx, first) })
	err := c.phase(ctx, o, LedFirst, began, c.size.T+patience, (*ledger).led)
	if err = errors.Join(err, starting.Wait()); err != nil {
		return err
	}
	if err := c.startAll(ctx, c.size.Processes-first); err != nil {
		return err
	}
	all, err := c.until(ctx, patience, func(l *ledger) bool {
		last, all := l.started()
		o.Started = (last - began).Seconds()
		return all
	})
	if err == nil && !all {
		err = fmt.Errorf("members have not begun within %v", patience)
	}
	if err != nil || c.size.One {
		return err
	}
	return c.phase(ctx, o, SharedFirst, began, patience, (*ledger).shared)
}

func (c *crowd) startAll(ctx context.Context, n int) error {
	for i := range n {
		if i > 0 {
			if err := pause.For(ctx, apart); err != nil {
				return err
			}
		}
		if err := c.start(); err != nil {
			return err
		}
	}
	return nil
}

// settled is the pause before a crowd's cost is measured.
const settled = 10 * time.Second

func (c *crowd) quiet(ctx context.Context, o *Outcome, window time.Duration) error {
	if err := pause.For(ctx, settled); err != nil {
		return err
	}
	var before, after int
	c.look(func(l *ledger) { before = l.fenced() })
	var all errgroup.Group
	pids := c.pids()
	each := make([]float64, len(pids))
	for i, pid := range pids {
		all.Go(func() error {
			u, err := idle.Measure(ctx, window, []int{pid}, nil)
			each[i] = u.MembersCPU
			return err
		})
	}
	all.Go(func() (err error) {
		o.Quiet, err = idle.Measure(ctx, window, pids, c.kafka.Pids())
		return err
	})
	if err := all.Wait(); err != nil {
		return err
	}
	o.Quiet.Members, o.Quiet.MemberCPU = c.size.Members(), each
	c.look(func(l *ledger) { after = l.fenced() })
	o.LostInQuiet = after - before
	if err := c.memory(ctx, o); err != nil {
		return err
	}
	c.log("while idle: members use %.4f cores %.4v, the broker %.4f; %d terms lost; a member occupies %.1f MB, its heap %.1f MB",
		o.Quiet.MembersCPU, each, o.Quiet.ServersCPU, o.LostInQuiet, o.Resident/1e6, o.Heap/1e6)
	return nil
}

// memory measures the resident memory first, since asking for the heap collects garbage.
func (c *crowd) memory(ctx context.Context, o *Outcome) error {
	each := float64(c.size.Each)
	for _, pid := range c.pids() {
		resident, err := idle.Resident(pid)
		if err != nil {
			return err
		}
		o.Resident = max(o.Resident, float64(resident)/each)
	}
	return c.ask(ctx, func(a *account) { o.Heap = max(o.Heap, float64(a.heap)/each) })
}

// ask asks all processes for their members' memory and steps, and passes on their answers.
func (c *crowd) ask(ctx context.Context, answered func(*account)) error {
	c.look(func(l *ledger) {
		for _, a := range l.alive {
			a.heap = 0
		}
	})
	if err := c.sayAll(askAll); err != nil {
		return err
	}
	_, err := c.until(ctx, patience, func(l *ledger) bool {
		if slices.ContainsFunc(l.alive, func(a *account) bool { return a.heap == 0 }) {
			return false
		}
		for _, a := range l.alive {
			if answered != nil {
				answered(a)
			}
		}
		return true
	})
	if err == nil {
		c.look(func(l *ledger) { c.log("%v", l.watched().Steps) })
	}
	return err
}

func (c *crowd) sayAll(what string) error {
	for _, p := range c.living() {
		if err := p.Say(what); err != nil {
			return err
		}
	}
	return nil
}

// die kills the first process.
func (c *crowd) die(ctx context.Context, o *Outcome) error {
	c.mu.Lock()
	p := c.processes[0]
	c.processes = c.processes[1:]
	o.Lost += p.account.fenced
	c.ledger.end(p.account)
	c.mu.Unlock()
	began := c.anew()
	p.Kill()
	if err := c.phase(ctx, o, fmt.Sprintf(LedAgain, c.size.Each), began, c.size.T+patience, (*ledger).led); err != nil {
		return err
	}
	return c.phase(ctx, o, SharedAgain, began, patience, (*ledger).shared)
}

// end kills all processes: a crowd without a broker keeps trying to reach it, and would disturb the
// next one.
func (c *crowd) end() {
	c.mu.Lock()
	left := c.processes
	c.processes = nil
	c.mu.Unlock()
	for _, p := range left {
		p.Kill()
	}
}

func (c *crowd) join(ctx context.Context, o *Outcome) error {
	began := c.anew()
	if err := c.start(); err != nil {
		return err
	}
	return c.phase(ctx, o, fmt.Sprintf(SharedLast, c.size.Each), began, patience, (*ledger).shared)
}

// restart closes all members in good order, then starts as many processes at once.
func (c *crowd) restart(ctx context.Context, o *Outcome) error {
	if err := c.closeAll(ctx, o); err != nil {
		return err
	}
	began := c.anew()
	for range c.size.Processes {
		if err := c.start(); err != nil {
			return err
		}
	}
	if err := c.phase(ctx, o, FirstAnew, began, c.size.T+patience, (*ledger).some); err != nil {
		return err
	}
	if err := c.phase(ctx, o, LedAnew, began, c.size.T+patience, (*ledger).led); err != nil {
		return err
	}
	var last time.Duration
	_, err := c.until(ctx, patience, func(l *ledger) (all bool) {
		last, all = l.started()
		return all
	})
	for i := len(o.Phases) - 2; i < len(o.Phases); i++ {
		o.Phases[i].Started = (last - began).Seconds()
	}
	c.log("the last member had begun after %.2f s", (last - began).Seconds())
	return err
}

func (c *crowd) closeAll(ctx context.Context, o *Outcome) error {
	if err := c.sayAll(closeAll); err != nil {
		return err
	}
	c.mu.Lock()
	leaving := c.processes
	c.processes = nil
	c.mu.Unlock()
	for _, p := range leaving {
		select {
		case <-p.Done():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		c.look(func(l *ledger) {
			o.Lost += p.account.fenced
			l.end(p.account)
		})
	}
	return nil
}

// until waits until ok, which it calls after every change, and reports whether that came within the
// limit.
func (c *crowd) until(ctx context.Context, limit time.Duration, ok func(*ledger) bool) (bool, error) {
	over := time.NewTimer(limit)
	defer over.Stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		c.mu.Lock()
		met, changed := ok(c.ledger), c.changed
		c.mu.Unlock()
		if met {
			return true, nil
		}
		select {
		case <-changed:
		case <-tick.C:
			if err := c.intact(); err != nil {
				return false, err
			}
		case <-over.C:
			return false, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// intact returns an error if a process has ended by itself.
func (c *crowd) intact() error {
	for _, p := range c.living() {
		if !p.Running() {
			return fmt.Errorf("a process has ended: %s; see %s.stderr", p.State(), p.Name)
		}
	}
	return nil
}
