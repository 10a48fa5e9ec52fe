package elector

import (
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/placement"
	"github.com/goneli/neli/internal/term"
)

// Why a Transfer cannot begin, or did not end as it was meant. Package neli has them as
// its own.
var (
	ErrNotLeader      = errors.New("neli: this process does not lead the role")
	ErrNoMember       = errors.New("neli: no such member")
	ErrNoAnswer       = errors.New("neli: the member does not answer")
	ErrLeadsAlready   = errors.New("neli: the member leads the role already")
	ErrNotTransferred = errors.New("neli: another member claimed first")
)

const (
	// steadyAfter is how long a process must have been there, healthy, before a leader
	// makes room for it.
	steadyAfter = 3 * helloEvery
	// minTenure is how long a role that was moved, for balance or preference, stays
	// before it may be moved on: it bounds what members do to each other whose
	// preferences contradict.
	minTenure = 30 * time.Second
	// levelEvery is how often a holder looks whether it has more than its share, and
	// movePause how soon it hands over more.
	levelEvery = time.Second
	movePause  = 200 * time.Millisecond
	// maxPutOff is how long a holder that is behind keeps what it could hand over.
	maxPutOff = time.Minute
	// maxBatch is how many roles are handed over at a time.
	maxBatch = 10_000
)

// moves is what a holder hands over though it could keep it.
type moves struct {
	lookAt   clock.Time // monotonic
	dirty    bool       // something has changed since it last found all level
	patience clock.Time // monotonic: until when a look is put off as this process is behind; 0: it was not
	uneven   clock.Time // monotonic time since when there is something to hand over; 0: there is not
	under    []move     // handovers that are not decided
	cool     cooling
	willing  clock.Time // monotonic time since when this process is willing; 0: it is not
}

// move is a handover whose outcome is waited for.
type move struct {
	p     *partition
	role  int32 // one of those that are handed over
	token int64
	to    string
	began clock.Time
	id    int // of a Transfer; 0: none
}

// Transfer begins to hand a role over to a member, and returns a number by which its
// Outcome is known. The error is ErrNotLeader, ErrLeadsAlready or ErrNoMember.
func (n *Node) Transfer(role int, to string, now clock.Instant) (id int, err error) {
	if len(n.parts) == 0 {
		return 0, ErrNotLeader
	}
	p, u := n.local(role)
	h := p.holds[u]
	if _, leads := p.lease.Leads(u, now); !leads || h == nil || h.hand != nil || !n.terms.Told(role) {
		return 0, ErrNotLeader
	}
	member := n.members.find(to)
	if to == n.set.Process || to == n.set.Name && member == "" {
		return 0, ErrLeadsAlready
	}
	if member == "" || !n.members.wanting(member, role) {
		return 0, ErrNoMember
	}
	id = n.requests.number()
	hand := newHandover(term.Transferred, now, member, true)
	hand.pinned = true
	n.handOver(p, hand, []int32{u}, id, now)
	n.stepOf(p, now)
	return id, nil
}

// handOver begins a handover of roles, and waits for its outcome.
func (n *Node) handOver(p *partition, h *handover, roles []int32, id int, now clock.Instant) {
	for _, role := range roles {
		h.roles[role] = false
		p.holds[role].hand = h
	}
	n.begin(p, h)
	n.moves.under = append(n.moves.under, move{p: p, role: roles[0], token: p.holds[roles[0]].token, to: h.to,
		began: now.Mono, id: id})
}

// rebalance hands over what is more than this process's share, or deserved more by
// others.
func (n *Node) rebalance(now clock.Instant) {
	m := &n.moves
	willing := !n.set.Nominated && !n.set.Observer && n.desired.Willing(now) && n.set.Alive(now)
	switch {
	case !willing:
		m.willing = 0
	case m.willing == 0:
		m.willing = now.Mono
	}
	n.settle(now)
	balancing := slices.ContainsFunc(m.under, func(v move) bool { return v.id == 0 })
	if !willing || !n.set.Rebalance || balancing || now.Mono < m.lookAt {
		if m.lookAt <= now.Mono {
			m.lookAt = now.Mono.Add(levelEvery)
		}
		return
	}
	m.lookAt = now.Mono.Add(levelEvery)
	if n.putOff(now) {
		return
	}
	plan, me := n.planner.plan(n, false, now)
	if n.planner.changed() {
		m.dirty = true
	}
	if !m.dirty {
		return
	}
	var todo []placement.Move
	if me >= 0 {
		todo = plan.Moves(me, n.expected(plan, now), func(role int) bool { return n.movable(role, now) }, maxBatch)
	}
	switch {
	case len(todo) == 0:
		m.uneven = 0
		m.dirty = n.tenured(now)
	case m.uneven == 0:
		m.uneven = now.Mono
	case now.Mono.Sub(m.uneven) >= 2*levelEvery:
		for _, v := range todo {
			n.move(plan.Candidate(v.To).ID, v.Roles, now)
		}
	}
}

// putOff reports whether nothing is handed over for balance since this process is behind, in
// all logs: an answer would come too late, and there is enough to be read. Where it always is,
// for round trips are long, nothing is put off after a while.
func (n *Node) putOff(now clock.Instant) bool {
	m := &n.moves
	if slices.ContainsFunc(n.parts, func(p *partition) bool { return !p.link.behind(now, n.set.T) }) {
		m.patience = 0
		return false
	}
	if m.patience == 0 {
		m.patience = now.Mono.Add(maxPutOff)
	}
	return now.Mono < m.patience
}

// tenured reports whether something cannot be moved yet that may be later.
func (n *Node) tenured(now clock.Instant) bool {
	for _, p := range n.parts {
		for _, h := range p.holds {
			if h.cause == rebalanced && now.Mono.Sub(h.since) < minTenure {
				return true
			}
		}
	}
	return false
}

// move hands roles over to a process, those of each partition together.
func (n *Node) move(to string, roles []int, now clock.Instant) {
	byPartition := map[*partition][]int32{}
	for _, role := range roles {
		p, u := n.local(role)
		byPartition[p] = append(byPartition[p], u)
	}
	for p, some := range byPartition {
		slices.Sort(some)
		n.handOver(p, newHandover(term.Rebalanced, now, to, true), some, 0, now)
	}
}

func (n *Node) movable(role int, now clock.Instant) bool {
	if role >= n.desired.Roles {
		return false
	}
	p, u := n.local(role)
	h := p.holds[u]
	if h == nil || h.hand != nil || !n.terms.Told(role) {
		return false
	}
	return h.cause == claimed || h.cause == rebalanced && now.Mono.Sub(h.since) >= minTenure
}

// settle finds out what became of what is being handed over.
func (n *Node) settle(now clock.Instant) {
	m := &n.moves
	before := len(m.under)
	m.under = slices.DeleteFunc(m.under, func(v move) bool { return n.settled(v, now) })
	if len(m.under) == 0 && before > 0 {
		m.lookAt = min(m.lookAt, now.Mono.Add(movePause))
	}
}

func (n *Node) settled(v move, now clock.Instant) bool {
	g, held := v.p.lease.Holder(v.role)
	ours := held && g.Token == v.token
	if n.quorum != nil { // what is given up has no token, and is this process's until enough logs say that it is not
		ours = held && g.Session == n.quorum.Session()
	}
	err := ErrNotTransferred
	switch {
	case ours && v.p.holds[v.role] != nil && v.p.holds[v.role].hand == nil:
		err = ErrNoAnswer
	case held && !ours && g.Session.Process == v.to:
		err = nil
	case !held || ours:
		if now.Mono.Sub(v.began) < n.set.AnswerWait+n.set.Drain+2*clock.Wait(n.set.T, n.set.Rho) {
			return false
		}
	}
	m := &n.moves
	m.dirty = true
	if v.id != 0 {
		n.ready.Outcomes = append(n.ready.Outcomes, Outcome{v.id, err})
		return true
	}
	if err != nil {
		if m.cool == nil {
			m.cool = cooling{}
		}
		long := m.cool.failed(v.to, now.Mono)
		n.planner.forget()
		n.note(slog.LevelInfo, "member did not claim what was handed to it: nothing more for a while",
			"partition", v.p.index, "member", v.to, "for", long)
	}
	return true
}
