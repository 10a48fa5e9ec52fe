package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/chaos/plan"
)

// peerPort is where a member's log host listens, on the member's own address.
const peerPort = 7400

// peers returns the addresses of the log hosts, by the members' hosts.
func (m *machine) peers() map[string]string {
	all := map[string]string{}
	for _, host := range MemberHosts() {
		all[host] = fmt.Sprintf("%v:%d", m.net.Host(host).IP, peerPort)
	}
	return all
}

// modes is the number of modes that each member has a Neli for.
func (m *machine) modes() int {
	if m.Peers {
		return history.Exclusive + 1
	}
	return history.Modes
}

// peerPairs is pairs for runs without brokers, in which members talk to each other.
func peerPairs(p plan.Part, a aim) [][2]string {
	var pairs [][2]string
	side := []string{a.host}
	switch p.Action {
	case plan.CutMemberOne:
		return [][2]string{{a.host, a.to}}
	case plan.Split:
		side = append(side, a.to)
	case plan.CutMember, plan.Slow:
	case plan.SlowStore:
		side = []string{hostStore}
	default:
		return nil
	}
	for _, one := range side {
		for _, other := range MemberHosts() {
			if !slices.Contains(side, other) {
				pairs = append(pairs, [2]string{one, other})
			}
		}
	}
	return pairs
}

// describePeers is describe for the parts that have another name in runs without brokers. It returns nothing for the others.
func describePeers(p plan.Part, a aim) (label string, targets []string) {
	switch p.Action {
	case plan.CutMember:
		return fmt.Sprintf("cut %s %v peers", a.host, p.Way), []string{a.host}
	case plan.CutMemberOne:
		return fmt.Sprintf("cut %s %v %s", a.host, p.Way, a.to), []string{a.host, a.to}
	case plan.Split:
		two := []string{a.host, a.to}
		return fmt.Sprintf("cut %s %v the others", strings.Join(two, ", "), p.Way), two
	case plan.Slow:
		if p.Loss > 0 {
			return fmt.Sprintf("%s loses %.0f %%", a.host, 100*p.Loss), []string{a.host}
		}
		return fmt.Sprintf("%s late by %v", a.host, p.Delay.Round(time.Millisecond)), []string{a.host}
	}
	return "", nil
}
