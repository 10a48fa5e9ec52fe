package crowd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/goneli/neli/lab/bench/idle"
	"github.com/goneli/neli/lab/child"
	"github.com/goneli/neli/lab/pause"
	"github.com/goneli/neli/lab/witness"
)

// process is one of the crowd's processes, and its part of the ledger.
type process struct {
	*child.Process
	account *account
}

// watch logs the progress.
func (c *crowd) watch(ctx context.Context) {
	for pause.For(ctx, time.Second) == nil {
		u, err := idle.Measure(ctx, 10*time.Second, c.pids(), c.kafka.Pids())
		if err != nil {
			continue // a process was killed, or this is the end
		}
		c.look(func(l *ledger) {
			most, least := l.spread()
			c.log("%d processes, %d roles without a leader, max/mean %.2f, min/mean %.2f; they use %.2f cores, the broker %.2f; %.0f messages and %.0f kB a second",
				u.Members, l.vacant, most, least, u.MembersCPU, u.ServersCPU, u.Messages, u.Bytes/1000)
		})
	}
}

func (c *crowd) start() error {
	c.born++
	params := Params{Servers: c.kafka.Bootstrap(), Client: c.size.Client, Group: c.group, Name: fmt.Sprint("p", c.born), Members: c.size.Each,
		Partitions: c.size.Partitions, Roles: c.size.Roles, T: c.size.T}
	if c.size.One {
		params.Priority, params.Lead = -c.born, true
	}
	p := &process{}
	c.look(func(l *ledger) { p.account = l.open(c.size.Each) })
	var err error
	if p.Process, err = c.place.Child(Command, "crowd-"+params.Name, params, func(line []byte) error { return c.hear(p.account, line) }); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes = append(c.processes, p)
	return nil
}

// hear takes a line of a process's output.
func (c *crowd) hear(a *account, line []byte) error {
	var l Line
	if err := json.Unmarshal(line, &l); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ledger.take(a, l)
	close(c.changed)
	c.changed = make(chan struct{})
	return nil
}

// anew begins a phase, and returns the time.
func (c *crowd) anew() time.Duration {
	now := witness.Now()
	c.look(func(l *ledger) { l.anew(now) })
	return now
}

// look calls at with the ledger, under the lock.
func (c *crowd) look(at func(*ledger)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at(c.ledger)
}

func (c *crowd) living() []*process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.processes)
}

func (c *crowd) pids() []int {
	var pids []int
	for _, p := range c.living() {
		pids = append(pids, p.Pid())
	}
	return pids
}
