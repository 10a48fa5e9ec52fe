// Package crowd measures this library at scale: many members, several in a process,
// on one topic of many partitions; how soon everything is led, and how evenly, after
// the start, after some have died and after some have joined; and what it costs.
package crowd

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/goneli/neli/bench/idle"
	"github.com/goneli/neli/bench/peers"
	"github.com/goneli/neli/bench/trial"
	"github.com/goneli/neli/testkit/kafkatest"
	"github.com/goneli/neli/testkit/nursery"
)

// Size is how much there is of everything.
type Size struct {
	Processes, Each int // processes, and members in each
	Partitions      int
	Roles           int
	T               time.Duration
}

// Members in all.
func (s Size) Members() int { return s.Processes * s.Each }

// Phase is how long something took, and how even it left the shares.
type Phase struct {
	What    string
	Seconds float64
	Spread  float64 // of members' shares: maximum over mean
	Vacant  int     // partitions without a leader at that moment: being handed over, mostly
	Unmet   bool    // it was not so within that time
}

// Outcome is what was seen.
type Outcome struct {
	Size
	Phases []Phase
	Quiet  idle.Usage // all members together, and the broker, each second
	Window string
	Lost   int // terms lost otherwise than with the process that died
}

// patience bounds each phase, beside T where something has to lapse.
const patience = 3 * time.Minute

// apart is the pause between the starts of two processes: each of their members
// makes the broker tell all about a thousand partitions, more than once.
const apart = 2 * time.Second

// crowd is the processes that live.
type crowd struct {
	size    Size
	place   peers.Place
	servers string
	group   string
	born    int

	mu    sync.Mutex
	alive []*process
	seen  map[int]bool // partitions that somebody who lives has led since the phase began
}

type process struct {
	*nursery.Process
	last Line // guarded by crowd.mu
	in   *os.File
}

// Run measures one crowd on one broker.
func Run(ctx context.Context, place peers.Place, size Size, window time.Duration, log func(string, ...any)) (Outcome, error) {
	kafka, err := peers.StartKafkaWith(ctx, place, kafkatest.Options{Brokers: 1, HeapMiB: 2048})
	if err != nil {
		return Outcome{}, err
	}
	defer kafka.Stop()
	c := &crowd{size: size, place: place, servers: kafka.Bootstrap(), group: "crowd"}
	o := Outcome{Size: size, Window: window.String()}
	phase := func(what string, since time.Time, limit time.Duration, ok func() bool) error {
		met, err := c.until(ctx, limit, ok)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		p := Phase{what, time.Since(since).Seconds(), c.spread(), size.Partitions - total(c.shares()), !met}
		o.Phases = append(o.Phases, p)
		log("%s: %v, %.1f s, max/mean %.2f, %d without a leader", p.What, met, p.Seconds, p.Spread, p.Vacant)
		return nil
	}
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer stop()
	watch.Go(func() { c.watch(watching, kafka.Pids(), log) })
	began := c.anew()
	for range size.Processes {
		if err := c.start(); err != nil {
			return o, err
		}
		if err := trial.Pause(ctx, apart); err != nil {
			return o, err
		}
	}
	if err := phase("all have been led after the start", began, size.T+patience, c.led); err != nil {
		return o, err
	}
	if err := phase("shared out after the start", began, patience, c.even); err != nil {
		return o, err
	}
	if o.Quiet, err = idle.Measure(ctx, window, c.pids(), kafka.Pids()); err != nil {
		return o, err
	}
	o.Quiet.Members = size.Members()
	c.kill()
	began = c.anew()
	if err := phase(fmt.Sprintf("all have been led after %d died", size.Each), began, size.T+patience, c.led); err != nil {
		return o, err
	}
	if err := phase("shared out after that", began, patience, c.even); err != nil {
		return o, err
	}
	began = c.anew()
	if err := c.start(); err != nil {
		return o, err
	}
	if err := phase(fmt.Sprintf("shared out after %d joined", size.Each), began, patience, c.even); err != nil {
		return o, err
	}
	o.Lost = c.lost()
	return o, nil
}

// watch tells how it goes on.
func (c *crowd) watch(ctx context.Context, broker []int, log func(string, ...any)) {
	for trial.Pause(ctx, time.Second) == nil {
		u, err := idle.Measure(ctx, 10*time.Second, c.pids(), broker)
		if err != nil {
			continue // a process was killed, or this is the end
		}
		log("%d processes lead %d partitions, max/mean %.2f; they use %.2f cores, the broker %.2f; %.0f messages and %.0f kB a second",
			u.Members, total(c.shares()), c.spread(), u.MembersCPU, u.ServersCPU, u.Messages, u.Bytes/1000)
	}
}

func (c *crowd) start() error {
	c.born++
	cmd, err := peers.Self(Command)
	if err != nil {
		return err
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close() // the process has its own descriptor
	from, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close()
	log, err := os.OpenFile(filepath.Join(c.place.Dir, "crowd.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, out, log
	p := &process{in: ours}
	if p.Process, err = c.place.Start(cmd); err != nil {
		return err
	}
	c.mu.Lock()
	c.alive = append(c.alive, p)
	c.mu.Unlock()
	go c.listen(p, from)
	return json.NewEncoder(ours).Encode(Params{Servers: c.servers, Group: c.group, Name: fmt.Sprint("p", c.born), Members: c.size.Each,
		Partitions: c.size.Partitions, Roles: c.size.Roles, T: c.size.T})
}

// listen ends with the process.
func (c *crowd) listen(p *process, from *os.File) {
	defer from.Close()
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		var l Line
		if json.Unmarshal(lines.Bytes(), &l) != nil {
			continue // cut off by its end
		}
		c.mu.Lock()
		p.last = l
		if slices.Contains(c.alive, p) {
			for _, led := range l.Led {
				for _, partition := range led {
					c.seen[partition] = true
				}
			}
		}
		c.mu.Unlock()
	}
}

// anew begins a phase.
func (c *crowd) anew() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = map[int]bool{}
	return time.Now()
}

// kill kills the first process.
func (c *crowd) kill() {
	c.mu.Lock()
	p := c.alive[0]
	c.alive = c.alive[1:]
	c.mu.Unlock()
	p.Kill()
	_ = p.in.Close()
}

func (c *crowd) pids() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	var pids []int
	for _, p := range c.alive {
		pids = append(pids, p.Pid())
	}
	return pids
}

// shares returns how many partitions each member leads, as the processes said last.
func (c *crowd) shares() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []int
	for _, p := range c.alive {
		for i := range c.size.Each {
			if i < len(p.last.Led) {
				out = append(out, len(p.last.Led[i]))
			} else {
				out = append(out, 0)
			}
		}
	}
	return out
}

func (c *crowd) lost() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.alive {
		n += p.last.Lost
	}
	return n
}

func (c *crowd) led() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen) == c.size.Partitions
}

// even: nobody leads more than another, but for one partition or a tenth, which is
// what the library leaves.
func (c *crowd) even() bool {
	of := c.shares()
	return total(of) >= c.size.Partitions && slices.Max(of)-slices.Min(of) <= max(1, c.size.Partitions/len(of)/10)
}

func (c *crowd) spread() float64 {
	of := c.shares()
	return float64(slices.Max(of)) * float64(len(of)) / float64(max(1, total(of)))
}

func total(of []int) (n int) {
	for _, k := range of {
		n += k
	}
	return n
}

// until waits, and reports whether it was not in vain.
func (c *crowd) until(ctx context.Context, limit time.Duration, ok func() bool) (bool, error) {
	for end := time.Now().Add(limit); !ok(); {
		if time.Now().After(end) {
			return false, nil
		}
		if err := trial.Pause(ctx, say/2); err != nil {
			return false, err
		}
		if err := c.intact(); err != nil {
			return false, err
		}
	}
	return true, nil
}

// intact reports a process that has ended by itself.
func (c *crowd) intact() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.alive {
		select {
		case <-p.Done():
			return fmt.Errorf("a process has ended: %s; see crowd.log", p.State())
		default:
		}
	}
	return nil
}
