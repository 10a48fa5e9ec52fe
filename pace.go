package neli

import "time"

// leastClaims is how many claims a process may have under way in any case.
const leastClaims = 16

// pace bounds how many claims of one process are under way at once, with Open
// nomination. When many partitions become vacant together, and claims take longer to
// come back than candidates wait for each other, everybody would claim everything; and
// as everybody reads all of it, claims would take longer still. So a process claims its
// share, and then goes on as it reads what has become of that. It is pure.
type pace struct {
	patience time.Duration // how long a claim is waited for: its broker may be gone
	limit    int
	under    int // claims under way
}

func newPace(t time.Duration) pace {
	return pace{patience: max(time.Second, t/10), limit: leastClaims}
}

// share takes note of how many candidates there are for how many partitions.
func (p *pace) share(partitions, candidates int) {
	candidates = max(1, candidates)
	p.limit = max(leastClaims, (partitions+candidates-1)/candidates)
}

// full reports whether the next claim has to wait.
func (p *pace) full() bool { return p.under >= p.limit }

// counts reports whether a claim that was sent at a time is one of those that others
// wait for.
func (p *pace) counts(sent, now instant) bool { return now.mono-sent.mono < p.patience }
