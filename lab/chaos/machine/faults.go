package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/chaos/member"
	"github.com/goneli/neli/lab/chaos/plan"
	"github.com/goneli/neli/lab/chaos/wire"
	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/pause"
	"github.com/goneli/neli/lab/witness"
)

// restart restarts a broker. Kafka refuses a killed broker until its former session has ended, after 9 s. On two busy cores
// the start takes more than half a minute.
func restart(ctx context.Context, b *kafkatest.Broker) error {
	limited, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	return b.Restart(limited)
}

// step carries out one step of the plan, from the first fault to the last repair. If ctx ends, the
// step ends early and returns an error.
func (m *machine) step(ctx context.Context, s plan.Step) error {
	calm := m.unwell(ctx) == ""
	m.steps++
	var drawn []plan.Part
	var aims []aim
	for _, p := range s.Parts {
		if p.OfLog {
			var err error
			if p, err = m.ofLog(ctx, p); err != nil {
				return err
			}
		}
		drawn, aims = append(drawn, p), append(aims, m.aim(p, aims))
	}
	parts, ctx := errgroup.WithContext(ctx)
	for i, p := range drawn {
		parts.Go(func() error {
			if err := pause.For(ctx, p.After); err != nil {
				return err
			}
			return m.part(ctx, p, aims[i], history.Fault{Step: m.steps, Kind: s.Kind, Calm: calm})
		})
	}
	return parts.Wait()
}

// aim names the hosts of a part. host is the member that it strikes; to is the second member of a cut.
type aim struct{ host, to string }

// aim chooses the member for a part: one that no earlier part of the step strikes.
func (m *machine) aim(p plan.Part, others []aim) aim {
	taken := map[string]bool{}
	for _, o := range others {
		taken[o.host] = true
	}
	host := free(p.Member, taken)
	if p.Leader {
		if leader, ok := m.leader(p.Mode, p.Role); ok && !taken[leader] {
			host = leader
		}
	}
	a := aim{host: host}
	if m.Peers {
		a.to = free(p.To, map[string]bool{host: true})
	}
	return a
}

// free returns the first member host, counting from a number, that is not taken.
func free(from int, taken map[string]bool) string {
	for i := range Members {
		if host := memberHost((from + i) % Members); !taken[host] {
			return host
		}
	}
	return memberHost(from)
}

// part carries out one fault, and records it.
func (m *machine) part(ctx context.Context, p plan.Part, a aim, f history.Fault) error {
	f.Label, f.Targets = m.describe(p, a)
	f.Span.From = witness.Now()
	f.Crash = p.Action == plan.KillMember || p.Action == plan.KillMachine
	off := p.Action == plan.CutMember || p.Action == plan.Split || p.Action == plan.CutMemberOne && p.OfLog
	f.Gone = p.Action.Silences() || off && p.Way != plan.In
	f.Pair = p.Action == plan.CutBrokers
	f.Cluster = p.Action.DisturbsBrokers()
	f.Sort = p.Action.String()
	m.Log.Info("fault", "kind", f.Kind, "what", f.Label, "calm", f.Calm)
	err := m.inflict(ctx, p, a)
	f.Span.To = witness.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = append(m.faults, f)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", f.Kind, f.Label, err)
	}
	return nil
}

func (m *machine) inflict(ctx context.Context, p plan.Part, a aim) error {
	host := a.host
	switch p.Action {
	case plan.KillMember:
		m.guest(host).Kill()
		if err := pause.For(ctx, p.Hold); err != nil {
			return err
		}
		return m.enlist(host)
	case plan.StopMember:
		g := m.guest(host)
		if _, err := g.Suspend(); err != nil {
			return err
		}
		held := pause.For(ctx, p.Hold)
		if _, err := g.Wake(); err != nil {
			return err
		}
		return held
	case plan.RestartMembers:
		return m.restartMembers(ctx, inTurn(host, p.Count))
	case plan.NewTopic:
		m.dismiss()
		m.topic++
		return m.enlistAll()
	case plan.SetClock:
		return m.setClock(ctx, p)
	case plan.KillBroker, plan.StopBroker, plan.StallDisk, plan.FillDisk, plan.RestartBrokers:
		return m.inflictBroker(ctx, p)
	default:
		return m.inflictLinks(ctx, p, a)
	}
}

// inTurn returns count member hosts in cyclic order, beginning with first.
func inTurn(first string, count int) []string {
	hosts := MemberHosts()
	i := slices.Index(hosts, first)
	return slices.Concat(hosts[i:], hosts[:i])[:count]
}

// restartMembers closes members and starts them again, one after the other.
func (m *machine) restartMembers(ctx context.Context, hosts []string) error {
	for _, host := range hosts {
		g := m.guest(host)
		if !m.leave(g, closing) {
			m.complain("%s: Close did not return within %v", g.Name, closing)
			g.Kill()
		}
		if err := m.enlist(host); err != nil {
			return err
		}
		if err := pause.For(ctx, time.Second); err != nil {
			return err
		}
	}
	return nil
}

func (m *machine) inflictBroker(ctx context.Context, p plan.Part) error {
	brokers := m.cluster.Brokers()
	b := brokers[p.Broker]
	switch p.Action {
	case plan.KillBroker:
		b.Kill()
		if err := pause.For(ctx, p.Hold); err != nil {
			return err
		}
		return restart(ctx, b)
	case plan.StopBroker:
		if err := b.Suspend(); err != nil {
			return err
		}
		held := m.frozen(ctx, p)
		if err := b.Resume(); err != nil {
			return err
		}
		return held
	case plan.StallDisk:
		if err := m.disks[p.Broker].Suspend(); err != nil {
			return err
		}
		held := pause.For(ctx, p.Hold)
		if err := m.disks[p.Broker].Signal(syscall.SIGCONT); err != nil {
			return err
		}
		return held
	case plan.FillDisk:
		held := m.fill(ctx, p)
		return errors.Join(held, restart(ctx, b)) // Kafka halts when its disk is full
	default:
		for i := range brokers {
			if err := restart(ctx, brokers[(p.Broker+i)%Brokers]); err != nil {
				return err
			}
		}
		return nil
	}
}

// frozen waits while a broker is suspended. If that outlasts the broker's session by 5 s, it
// complains unless Kafka fences the broker, which is what the fault is for.
func (m *machine) frozen(ctx context.Context, p plan.Part) error {
	const electing = 5 * time.Second // of a new controller, if the broker was the active one
	if p.Hold < plan.BrokerSession+electing {
		return pause.For(ctx, p.Hold)
	}
	end := witness.Now() + p.Hold
	fenced := pause.Until(ctx, p.Hold, func() bool { return m.groups.brokers(ctx) == Brokers-1 })
	if err := ctx.Err(); err != nil {
		return err
	}
	if !fenced {
		m.complain("%s was silent for %v, and Kafka did not fence it", brokerHost(p.Broker), p.Hold.Round(time.Millisecond))
	}
	return pause.For(ctx, end-witness.Now())
}

// inflictLinks disturbs the links of a part for a while. If a machine is killed, its member dies once the links are cut, so
// nobody receives the end of a connection. Another member starts there after the repair.
func (m *machine) inflictLinks(ctx context.Context, p plan.Part, a aim) error {
	policy := wire.Policy{Cut: p.Delay == 0 && p.Loss == 0, Delay: p.Delay, Jitter: p.Jitter, Loss: p.Loss}
	disturbed := pairs(p, a.host)
	if m.Peers {
		disturbed = peerPairs(p, a)
	}
	for _, pair := range disturbed {
		if p.Way != plan.In {
			m.net.Set(pair[0], pair[1], policy)
		}
		if p.Way != plan.Out {
			m.net.Set(pair[1], pair[0], policy)
		}
	}
	if p.Action == plan.KillMachine {
		m.guest(a.host).Kill()
	}
	held := pause.For(ctx, p.Hold)
	for _, pair := range disturbed {
		m.net.Set(pair[0], pair[1], m.standing(pair[0], pair[1]))
		m.net.Set(pair[1], pair[0], m.standing(pair[0], pair[1]))
	}
	if held == nil && p.Action == plan.KillMachine {
		return m.enlist(a.host)
	}
	return held
}

// pairs returns the pairs of hosts whose links a part disturbs.
func pairs(p plan.Part, host string) [][2]string {
	var pairs [][2]string
	broker := brokerHost(p.Broker)
	switch p.Action {
	case plan.KillMachine, plan.CutMember, plan.Slow:
		for i := range Brokers {
			pairs = append(pairs, [2]string{host, brokerHost(i)})
		}
		if p.Action == plan.KillMachine {
			pairs = append(pairs, [2]string{host, hostStore})
		}
	case plan.CutMemberOne:
		pairs = append(pairs, [2]string{host, broker})
	case plan.CutBrokers:
		pairs = append(pairs, [2]string{broker, brokerHost(p.Other)})
	case plan.CutBroker, plan.Lossy, plan.SlowBroker:
		for i := range Brokers {
			if p.Action != plan.Lossy && i != p.Broker {
				pairs = append(pairs, [2]string{broker, brokerHost(i)})
			}
		}
		if p.Action == plan.SlowBroker {
			return pairs
		}
		for _, member := range MemberHosts() {
			pairs = append(pairs, [2]string{broker, member})
		}
	case plan.SlowStore:
		for _, member := range MemberHosts() {
			pairs = append(pairs, [2]string{hostStore, member})
		}
	}
	return pairs
}

// describe returns a readable name of a part, and the hosts that it strikes.
func (m *machine) describe(p plan.Part, a aim) (label string, targets []string) {
	if m.Peers {
		if label, targets := describePeers(p, a); label != "" {
			return label, targets
		}
	}
	host := a.host
	broker := brokerHost(p.Broker)
	switch p.Action {
	case plan.KillMember:
		return "SIGKILL " + host, []string{host}
	case plan.KillMachine:
		return "power off " + host, []string{host}
	case plan.StopMember:
		return "SIGSTOP " + host, []string{host}
	case plan.RestartMembers:
		targets = inTurn(host, p.Count)
		return "restart " + strings.Join(targets, ", "), targets
	case plan.KillBroker:
		return "SIGKILL " + broker, []string{broker}
	case plan.StopBroker:
		return "SIGSTOP " + broker, []string{broker}
	case plan.StallDisk:
		return "stall the disk of " + broker, []string{broker}
	case plan.RestartBrokers:
		for i := range Brokers {
			targets = append(targets, brokerHost((p.Broker+i)%Brokers))
		}
		return "restart " + strings.Join(targets, ", "), targets
	case plan.CutMember:
		return fmt.Sprintf("cut %s %v brokers", host, p.Way), []string{host}
	case plan.CutMemberOne:
		return fmt.Sprintf("cut %s %v %s", host, p.Way, broker), []string{host, broker}
	case plan.CutBrokers:
		return fmt.Sprintf("cut %s %v %s", broker, p.Way, brokerHost(p.Other)), []string{broker, brokerHost(p.Other)}
	case plan.CutBroker:
		return fmt.Sprintf("cut %s %v all", broker, p.Way), []string{broker}
	case plan.Slow:
		return fmt.Sprintf("%s late by %v", host, p.Delay.Round(time.Millisecond)), []string{host}
	case plan.Lossy:
		return fmt.Sprintf("%s loses %.0f %%", broker, 100*p.Loss), []string{broker}
	case plan.SlowBroker:
		return fmt.Sprintf("%s late by %v to brokers", broker, p.Delay.Round(time.Millisecond)), []string{broker}
	case plan.FillDisk:
		return "fill the disk of " + broker, []string{broker}
	case plan.SetClock:
		return fmt.Sprintf("clock of %s off by %v, %+.0f %%", broker, p.Delay.Round(time.Millisecond), 100*p.Rate), []string{broker}
	case plan.NewTopic:
		return "all closed, and started with " + member.Topic(m.topic+1), MemberHosts()
	case plan.SlowStore:
		return fmt.Sprintf("store late by %v", p.Delay.Round(time.Millisecond)), []string{hostStore}
	}
	return "?", nil
}
