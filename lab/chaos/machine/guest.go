package machine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/chaos/jail"
	"github.com/goneli/neli/lab/chaos/member"
	"github.com/goneli/neli/lab/chaos/wire"
	"github.com/goneli/neli/lab/child"
	"github.com/goneli/neli/lab/nursery"
)

// A guest is one incarnation of a member, as the runner sees it.
type guest struct {
	*child.Process
	host string

	mu     sync.Mutex
	ops    map[int64]*history.Op
	order  []int64
	closed *member.Line // its report of Close
	ended  []string     // Leads that returned before Close
}

// newGuest starts a program, or this one if none is named, as a member on a host. Its output and its log are also written to dir.
func newGuest(n *nursery.Nursery, host *wire.Host, dir, program string, params member.Params) (_ *guest, err error) {
	g := &guest{host: host.Name, ops: map[int64]*history.Op{}}
	cmd := exec.Command(cmp.Or(program, jail.Self()))
	cmd.Env = append(os.Environ(), member.Env+"=1")
	g.Process, err = child.New(cmd, params, child.Options{Nursery: n, Dir: dir, Name: params.Name, Keep: true, By: host.Start, Hear: g.hear})
	if g.Process == nil {
		return nil, err
	}
	return g, err
}

func (g *guest) hear(text []byte) error {
	var line member.Line
	if err := json.Unmarshal(text, &line); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch line.Say {
	case member.SayInvoke:
		g.order = append(g.order, line.ID)
		g.ops[line.ID] = line.Op
	case member.SayReturn:
		g.ops[line.ID] = line.Op
	case member.SayClosed:
		g.closed = &line
	case member.SayEnded:
		g.ended = append(g.ended, fmt.Sprintf("%s Lead: %s", history.ModeName(line.Mode), line.Text))
	}
	return nil
}

// answers returns the member's current answer for a role.
func (g *guest) answers(mode, role int) int64 { return g.Answers(mode, role, 200*time.Millisecond) }

// life returns the record of a member that has ended.
func (g *guest) life() history.Life {
	g.mu.Lock()
	defer g.mu.Unlock()
	return history.Life{Host: g.host, Member: g.Name, Born: g.Born, Died: g.Died(), Killed: g.Killed(),
		Runs: g.Samples.Runs(), Stops: g.Stops()}
}

// operations returns the member's operations on the store.
func (g *guest) operations() []history.Op {
	g.mu.Lock()
	defer g.mu.Unlock()
	ops := make([]history.Op, len(g.order))
	for i, id := range g.order {
		ops[i] = *g.ops[id]
	}
	return ops
}

// complaints returns what was wrong with the member's output, with Lead and Close, and with its end.
func (g *guest) complaints() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := slices.Clone(g.ended)
	if err := g.Garbled(); err != nil {
		out = append(out, err.Error())
	}
	switch {
	case g.Killed():
	case g.closed == nil:
		out = append(out, fmt.Sprintf("ended by itself: %s", g.State()))
	case g.closed.Text != "":
		out = append(out, "Close: "+g.closed.Text)
	}
	for i := range out {
		out[i] = g.Name + ": " + out[i]
	}
	return out
}
