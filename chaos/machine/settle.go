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
	"github.com/goneli/neli/chaos/history"
	"github.com/goneli/neli/chaos/member"
	"github.com/goneli/neli/chaos/plan"
	"github.com/goneli/neli/testkit/pause"
	"github.com/goneli/neli/testkit/witness"
)

// settle waits, after a step, until every role has a leader, which is promised,
// lets the quiet spell pass, and then waits until the groups are whole again, which
// is not promised, but without which what the next fault causes could not be told
// from what this one did.
func (m *machine) settle(ctx context.Context, s plan.Step) error {
	began := witness.Now()
	if !pause.Until(ctx, Recovery, func() bool { return len(m.leaderless()) == 0 }) && ctx.Err() == nil {
		m.complain("%v after the repair of %q there was no leader of %v", Recovery, s.Kind, m.leaderless())
	}
	led := witness.Now() - began
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

// presuming returns the roles of non-exclusive mode that nobody leads by fresh
// evidence: all who lead them have read no record for more than two beats. They may
// presume for long; but nothing is well.
func (m *machine) presuming() []int {
	var roles []int
	for role := range Roles {
		fresh := false
		for _, host := range MemberHosts() {
			g := m.guest(host)
			fresh = fresh || g.answers(history.NonExclusive, role) != witness.No &&
				witness.Now()-time.Duration(g.samples.Noted(history.NonExclusive)) < 2*Pace.Beat
		}
		if !fresh {
			roles = append(roles, role)
		}
	}
	return roles
}

// unwell says what keeps the cluster from being all well, or nothing: every role
// is led, by fresh evidence, and every group has all members and an assignment. The
// coordinator's word alone does not do: one that has just taken over lists members
// whose sessions are long over.
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
	if m.Nomination == neli.Assigned {
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

// state returns a group's state by the coordinator's word, or what kept it from
// answering.
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

// brokers returns how many brokers are not fenced by the word of one that answers;
// 0 if none does.
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
