package machine

import (
	"time"

	"github.com/goneli/neli/lab/chaos/plan"
	"github.com/goneli/neli/lab/chaos/wire"
)

// FarHost returns the host of the member that is farther from the logs than the others, or nothing.
func FarHost(o Options) string {
	if i, some := plan.FarOf(o.Seed, Members); some {
		return memberHost(i)
	}
	return ""
}

// distance returns how long a packet takes from one host to another at least. Only the election is far: the store
// and the runner are as near to this member as to the others.
func distance(o Options, from, to string) time.Duration {
	far := FarHost(o)
	if far == "" || from != far && to != far {
		return 0
	}
	for _, host := range []string{from, to} {
		if host == hostStore || host == hostRunner {
			return 0
		}
	}
	return plan.Far / 2
}

// set disturbs the link from one host to another. The distance between them is kept.
func (m *machine) set(from, to string, p wire.Policy) {
	p.Delay += distance(m.Options, from, to)
	m.net.Set(from, to, p)
}

// spread sets the links' delays by the hosts' distances.
func (m *machine) spread() {
	hosts := m.FaultHosts()
	for _, from := range hosts {
		for _, to := range hosts {
			if from != to {
				m.set(from, to, wire.Policy{})
			}
		}
	}
}
