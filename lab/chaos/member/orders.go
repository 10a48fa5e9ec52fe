package member

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/chaos/plan"
	"github.com/goneli/neli/lab/witness"
)

// Preferences, orders and health of a member.

// hostOf returns the host of the member that has this name.
func hostOf(name string) string {
	host, _, _ := strings.Cut(name, ".")
	return host
}

// incline sets what this member prefers.
func (p *process) incline(cfg *neli.Config) {
	me := hostOf(p.Name)
	switch p.Leaning {
	case plan.Priorities:
		cfg.Priority = p.Leaning.Wanted(p.Seed, me, me, 0)
	case plan.Honest, plan.Lying:
		cfg.Preference = func(m neli.Member, partition int) int {
			return p.Leaning.Wanted(p.Seed, me, hostOf(m.Name), partition)
		}
	}
}

// obey carries out a command. It starts an order without waiting for its end.
func (p *process) obey(c Command) {
	n := p.nelis[history.Exclusive]
	switch c.Do {
	case DoTransfer:
		p.order(c, func(ctx context.Context) error { return n.Transfer(ctx, c.Role, p.address(c)) })
	case DoStepDown:
		p.order(c, n.StepDown)
	default:
		p.be(c.Do)
	}
}

// address returns the name of the member in a command, or every second time its id, if this process
// knows it.
func (p *process) address(c Command) string {
	if c.ID%2 == 0 {
		for _, m := range p.nelis[history.Exclusive].Members() {
			if m.Name == c.To {
				return m.ID
			}
		}
	}
	return c.To
}

// orderFor is the library's limit for an order, and the time that a cut-off may add.
const orderFor = 45 * time.Second

// order carries out an order, and reports it before and after.
func (p *process) order(c Command, do func(context.Context) error) {
	o := history.Order{Member: p.Name, Kind: c.Do, Role: c.Role, To: c.To, Returned: witness.Never}
	if c.Do == DoTransfer {
		if token, ok := p.nelis[history.Exclusive].Token(c.Role); ok {
			o.Token = token
		}
	}
	o.Invoked = witness.Now()
	asked := o
	p.tell(Line{Say: SayOrder, ID: c.ID, Order: &asked})
	go func() { // it ends when the Neli is closed, at the latest
		ctx, cancel := context.WithTimeout(context.Background(), orderFor)
		defer cancel()
		o.Outcome = outcome(do(ctx))
		o.Returned = witness.Now()
		p.tell(Line{Say: SayOrder, ID: c.ID, Order: &o})
	}()
}

func outcome(err error) string {
	for known, name := range map[error]string{
		neli.ErrNotLeader: history.NotLeader, neli.ErrNoMember: history.NoMember, neli.ErrLeadsAlready: history.NoMember, neli.ErrNotDone: history.NotTransferred, neli.ErrNoAnswer: history.NoAnswer,
		neli.ErrClosed: history.Closed, context.DeadlineExceeded: history.GaveUp,
	} {
		if errors.Is(err, known) {
			return name
		}
	}
	if err != nil {
		return "error: " + err.Error()
	}
	return history.Done
}

var errAiling = errors.New("told to be unwell")

// health is the application's own health check. The zero value reports that all is well.
type health struct {
	mu    sync.Mutex
	state string        // the command in effect, or nothing
	well  chan struct{} // closed when a check that hangs may return
}

func (h *health) check() error {
	h.mu.Lock()
	state, well := h.state, h.well
	h.mu.Unlock()
	switch state {
	case DoAil:
		return errAiling
	case DoHang:
		<-well
	}
	return nil
}

func (h *health) set(state string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state == DoHang {
		close(h.well)
	}
	if h.state = state; state == DoHang {
		h.well = make(chan struct{})
	}
}

// be changes what the health check returns. It reports after the change to unwell and before the
// change to well, so that the reported time lies within the real one.
func (p *process) be(state string) {
	switch state {
	case DoAil, DoHang:
		p.health.set(state)
		p.tell(Line{Say: SayHealth, Text: state})
	case DoBeWell:
		p.tell(Line{Say: SayHealth, Text: state})
		p.health.set(state)
	default:
		panic(fmt.Sprintf("unknown command %q", state))
	}
}
