package machine

import (
	"context"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/chaos/member"
	"github.com/goneli/neli/lab/chaos/oracle"
	"github.com/goneli/neli/lab/chaos/plan"
	"github.com/goneli/neli/lab/pause"
	"github.com/goneli/neli/lab/witness"
)

// obeying bounds how long the step waits for an order to end. The oracle judges an order that takes
// longer by the history.
const obeying = 60 * time.Second

// order tells a member to hand over its role or to step down. It waits until the member reports the
// result, or ends.
func (m *machine) order(ctx context.Context, p plan.Part, a aim) error {
	c := member.Command{Do: member.DoStepDown, ID: m.orders.Add(1)}
	if p.Action == plan.Transfer {
		c.Do, c.Role, c.To = member.DoTransfer, p.Role, a.name
	}
	g := m.guest(a.host)
	if err := g.Say(c); err != nil {
		return nil // the member has ended: another part killed it, or complaints reports it
	}
	pause.Until(ctx, obeying, func() bool { return g.obeyed(c.ID) || !g.Running() })
	return ctx.Err()
}

// ail makes a member's health check fail or hang, once for a while or several times.
func (m *machine) ail(ctx context.Context, p plan.Part, host string) error {
	g := m.guest(host)
	do, times, hold := member.DoAil, 1, p.Hold
	switch p.Action {
	case plan.Hang:
		do = member.DoHang
	case plan.Flap:
		times, hold = p.Count, p.Delay
	}
	for i := range times {
		if i > 0 {
			if err := pause.For(ctx, hold); err != nil {
				return err
			}
		}
		if err := g.Say(member.Command{Do: do}); err != nil {
			return nil // the member has ended: complaints reports it
		}
		held := pause.For(ctx, hold)
		if err := g.Say(member.Command{Do: member.DoBeWell}); err != nil {
			return nil
		}
		if held != nil {
			return held
		}
	}
	return nil
}

// sharing bounds how long it takes, after the last fault, until every member has its share. It is
// 15 s until a member counts as steady, 30 s for which a role that was handed over stays, a minute
// for which a member that did not take a role is given none, and a drain of 10 s for each role.
const sharing = 15*time.Second + 30*time.Second + time.Minute + Roles*10*time.Second

// share waits until every member has its share, and complains if that takes too long. It does not
// complain if the members' preferences contradict each other, or while a member keeps a role that
// was transferred to it.
func (m *machine) share(ctx context.Context) {
	if m.Nomination != neli.NominationOpen || m.leaning.Contradicts() {
		return
	}
	began := witness.Now()
	if !pause.Until(ctx, sharing, func() bool { return m.shared() || m.pinned() }) && ctx.Err() == nil {
		m.complain("%v after the last fault the roles are not shared out: their leaders are %v", sharing, m.whoLeads())
	}
	m.Log.Info("shared", "among", m.whoLeads(), "pinned", m.pinned(), "after", (witness.Now() - began).Round(time.Millisecond))
}

func (m *machine) whoLeads() []string {
	hosts := make([]string, Roles)
	for role := range hosts {
		hosts[role], _ = m.leader(history.Exclusive, role)
	}
	return hosts
}

// shared reports whether every role is led by one of the members with the highest preference for
// it, and whether the shares of equally preferred members differ by at most one.
func (m *machine) shared() bool {
	return oracle.Shared(m.whoLeads(), MemberHosts(), func(host string, role int) int {
		return m.leaning.Wanted(m.Seed, "", host, role)
	})
}

// pinned reports whether some role is still led in the term that a transfer began.
func (m *machine) pinned() bool {
	for _, o := range m.told() {
		if o.Kind != history.Transfer || o.Outcome != history.Done {
			continue
		}
		if host, ok := m.leader(history.Exclusive, o.Role); ok {
			if g := m.guest(host); g.Name == o.To && g.answers(history.Exclusive, o.Role) == g.firstAfter(o.Role, o.Token) {
				return true
			}
		}
	}
	return false
}

// told returns all orders so far.
func (m *machine) told() []history.Order {
	m.mu.Lock()
	defer m.mu.Unlock()
	var orders []history.Order
	for _, g := range m.guests {
		orders = append(orders, g.told()...)
	}
	return orders
}
