package crowd

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/goneli/neli/lab/bench/idle"
	"github.com/goneli/neli/lab/bench/member"
	"github.com/goneli/neli/lab/bench/peers"
	"github.com/goneli/neli/lab/nursery"
	"github.com/goneli/neli/lab/pause"
)

// process is one of the crowd's processes, and its part of the ledger.
type process struct {
	*nursery.Process
	account  *account
	in       *os.File
	listened chan struct{} // closed at the end of its output
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
	p := &process{in: ours, listened: make(chan struct{})}
	if p.Process, err = c.place.Start(cmd); err != nil {
		return err
	}
	c.mu.Lock()
	p.account = c.ledger.open(c.size.Each)
	c.processes = append(c.processes, p)
	c.mu.Unlock()
	go func() {
		defer close(p.listened)
		c.listen(p.account, from)
	}()
	params := Params{Servers: c.kafka.Bootstrap(), Client: c.size.Client, Group: c.group, Name: fmt.Sprint("p", c.born), Members: c.size.Each,
		Partitions: c.size.Partitions, Roles: c.size.Roles, T: c.size.T}
	if c.size.One {
		params.Priority, params.Lead = -c.born, true
	}
	return json.NewEncoder(ours).Encode(params)
}

// listen reads a process's output until it ends. The last line may be cut off.
func (c *crowd) listen(a *account, from *os.File) {
	defer from.Close()
	lines := json.NewDecoder(from)
	for {
		var l Line
		if lines.Decode(&l) != nil {
			return
		}
		c.mu.Lock()
		c.ledger.take(a, l)
		close(c.changed)
		c.changed = make(chan struct{})
		c.mu.Unlock()
	}
}

// anew begins a phase, and returns the time.
func (c *crowd) anew() time.Duration {
	now := member.Now()
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
