package machine

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/chaos/member"
	"github.com/goneli/neli/lab/chaos/plan"
	"github.com/goneli/neli/lab/pause"
	"github.com/goneli/neli/lab/witness"
)

// settle waits, after a step, until every role has a leader, which the library promises, and then for the step's quiet time.
// Unless the step is impatient it also waits until the groups are whole again: the library does not promise that, but otherwise
// the effects of two faults could not be told apart.
func (m *machine) settle(ctx context.Context, s plan.Step) error {
	began := witness.Now()
	if !pause.Until(ctx, Recovery, func() bool { return len(m.leaderless()) == 0 }) && ctx.Err() == nil {
		m.complain("%v after the repair of %q there was no leader of %v", Recovery, s.Kind, m.leaderless())
	}
	led := witness.Now() - began
	if m.Has(Logs) { // a log whose broker was away counts again only after T
		s.Quiet += m.Timeout + m.Timeout/2
	}
	if err := pause.For(ctx, s.Quiet); err != nil {
		return err
	}
	if !s.Impatient {
		pause.Until(ctx, Recovery, func() bool { return m.unwell(ctx) == "" })
	}
	m.Log.Info("repaired", "led after", led.Round(time.Millisecond), "unwell", m.unwell(ctx))
	return ctx.Err()
}

// leaderless returns the roles that nobody leads at this time.
func (m *machine) leaderless() []string {
	var missing []string
	for mode := range m.modes() {
		for role := range Roles {
			if _, ok := m.leader(mode, role); !ok {
				missing = append(missing, fmt.Sprintf("%s role %d", history.ModeName(mode), role))
			}
		}
	}
	return missing
}

// presuming returns the roles of non-exclusive mode whose leaders have no fresh evidence: they have
// read no record for two beats. They may still presume that they lead, but the cluster is not well.
func (m *machine) presuming() []int {
	var roles []int
	for role := range Roles {
		fresh := false
		for _, host := range MemberHosts() {
			g := m.guest(host)
			fresh = fresh || g.answers(history.NonExclusive, role) != witness.No &&
				witness.Now()-g.Read(history.NonExclusive) < 2*Pace.Beat
		}
		if !fresh {
			roles = append(roles, role)
		}
	}
	return roles
}

// unwell describes what is wrong with the cluster; it returns nothing if all is well: if every role is led, in
// non-exclusive mode with fresh evidence, and every group has all members and an assignment. The coordinator's
// answer alone is not enough: a new coordinator still lists members whose sessions ended long ago.
func (m *machine) unwell(ctx context.Context) string {
	if missing := m.leaderless(); len(missing) > 0 {
		return fmt.Sprintf("there is no leader of %v", missing)
	}
	if m.Peers {
		return ""
	}
	if roles := m.presuming(); len(roles) > 0 {
		return fmt.Sprintf("the leaders of non-exclusive roles %v only presume", roles)
	}
	modes := []int{history.NonExclusive}
	if m.Nomination == neli.NominationAssigned {
		modes = append(modes, history.Exclusive)
	}
	for _, mode := range modes {
		name := member.Group(mode)
		if state, members := m.groups.state(ctx, name); state != "Stable" || members != Members {
			return fmt.Sprintf("group %s is %s, with %d members", name, state, members)
		}
	}
	return ""
}

// groups asks the brokers about consumer groups.
type groups struct{ client *kgo.Client }

func newGroups(bootstrap string, dial func(context.Context, string, string) (net.Conn, error)) (*groups, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(bootstrap, ",")...), kgo.Dialer(dial))
	if err != nil {
		return nil, err
	}
	return &groups{client}, nil
}

// state returns a group's state as its coordinator reports it, or the error as a text.
func (g *groups) state(ctx context.Context, name string) (state string, members int) {
	limited, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{name}
	resp, err := req.RequestWith(limited, g.client)
	if err != nil {
		return err.Error(), 0
	}
	if len(resp.Groups) != 1 {
		return "unknown", 0
	}
	return resp.Groups[0].State, len(resp.Groups[0].Members)
}

// brokers returns the number of brokers that are not fenced, as one of them reports it; 0 if none answers.
func (g *groups) brokers(ctx context.Context) int {
	limited, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	resp, err := req.RequestWith(limited, g.client)
	if err != nil {
		return 0
	}
	return len(resp.Brokers)
}

func (g *groups) close() { g.client.Close() }
