package crowd

import (
	"slices"
	"time"

	"github.com/goneli/neli/lab/bench/measure"
)

// ledger records which members lead which roles, as the processes report it.
type ledger struct {
	roles  int
	alive  []*account
	by     []int // by role: how many living members lead it
	vacant int   // roles without a leader

	seen   []bool // roles that a living member has led since the phase began
	unseen int
	at     time.Duration // of the newest report

	past Watched // of processes that have ended
}

// account is one process's part of the ledger.
type account struct {
	of      []int // by role: the number of the process's members that lead it, 1 or 0
	shares  []int // by member: how many roles it leads
	started time.Duration
	fenced  int
	heap    uint64
	watched Watched // as reported last
}

func newLedger(roles int) *ledger {
	return &ledger{roles: roles, by: make([]int, roles), vacant: roles, seen: make([]bool, roles), unseen: roles}
}

func (l *ledger) open(members int) *account {
	a := &account{of: make([]int, l.roles), shares: make([]int, members)}
	l.alive = append(l.alive, a)
	return a
}

// end removes a process that was killed or has closed. Its later reports change nothing.
func (l *ledger) end(a *account) {
	l.past.add(a.watched)
	l.alive = slices.DeleteFunc(l.alive, func(other *account) bool { return other == a })
	for role, n := range a.of {
		l.change(role, -n)
	}
}

// anew begins a new phase.
func (l *ledger) anew(at time.Duration) {
	l.at, l.unseen = at, 0
	for role, n := range l.by {
		if l.seen[role] = n > 0; n == 0 {
			l.unseen++
		}
	}
}

func (l *ledger) take(a *account, line Line) {
	if !slices.Contains(l.alive, a) {
		return
	}
	l.at = max(l.at, line.At)
	if line.Started {
		a.started = line.At
	}
	a.fenced += line.Fenced
	a.heap = max(a.heap, line.Heap)
	if line.Watched != nil {
		a.watched = *line.Watched
	}
	for _, role := range line.Gained {
		a.shares[line.Member]++
		a.of[role]++
		l.change(role, 1)
	}
	for _, role := range line.Lost {
		a.shares[line.Member]--
		a.of[role]--
		l.change(role, -1)
	}
}

func (l *ledger) change(role, n int) {
	was := l.by[role]
	l.by[role] += n
	switch now := l.by[role]; {
	case was <= 0 && now > 0:
		l.vacant--
		if !l.seen[role] {
			l.seen[role] = true
			l.unseen--
		}
	case was > 0 && now <= 0:
		l.vacant++
	}
}

func (l *ledger) shares() []int {
	var all []int
	for _, a := range l.alive {
		all = append(all, a.shares...)
	}
	return all
}

// spread returns the largest and the smallest share, each divided by the mean.
func (l *ledger) spread() (most, least float64) {
	of := l.shares()
	if len(of) == 0 {
		return 0, 0
	}
	mean := float64(l.roles) / float64(len(of))
	return float64(slices.Max(of)) / mean, float64(slices.Min(of)) / mean
}

// led reports whether every role has been led by some living member since the phase began.
func (l *ledger) led() bool { return l.unseen == 0 }

// some reports whether a living member leads a role at present.
func (l *ledger) some() bool { return l.vacant < l.roles }

// Roles are shared out if the largest share is at most Even times the mean, and the smallest at
// least Least times.
const (
	Even  = 1.1
	Least = 0.5
)

func (l *ledger) shared() bool {
	most, least := l.spread()
	return l.vacant == 0 && most <= Even && least >= Least
}

func (l *ledger) started() (last time.Duration, all bool) {
	all = true
	for _, a := range l.alive {
		last, all = max(last, a.started), all && a.started > 0
	}
	return last, all
}

func (l *ledger) fenced() (n int) {
	for _, a := range l.alive {
		n += a.fenced
	}
	return n
}

// seconds returns the time from since to the newest report.
func (l *ledger) seconds(since time.Duration) float64 {
	return measure.Milliseconds(max(0, l.at-since)) / 1000
}

// watched adds up what all processes have reported of their members.
func (l *ledger) watched() Watched {
	sum := l.past
	for _, a := range l.alive {
		sum.add(a.watched)
	}
	return sum
}
