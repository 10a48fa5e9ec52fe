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

// mover decides what a holder hands over though it could keep it, and follows each handover
// until it is known who holds the roles. It knows no records: the caller tells it of the plan
// and of holders, and carries out what it says.
type mover struct {
	lookAt   clock.Mono
	dirty    bool       // something has changed since it last found all level
	patience clock.Mono // until when a look is put off as this process is behind; 0: it was not
	uneven   clock.Mono // since when there is something to hand over; 0: there is not
	under    []move     // handovers that are not decided
	cool     cooldowns
	willing  clock.Mono // since when this process is willing to lead; 0: it is not
}

// move is a handover whose outcome is waited for.
type move struct {
	partition int
	role      int32 // one of those that are handed over
	token     int64
	to        string
	began     clock.Mono
	id        int // of a Transfer; 0: it is for balance
}

// fate is what has become of the role of a move.
type fate struct {
	held bool   // by anybody
	ours bool   // by this process, in the term that is handed over
	kept bool   // and that is not given up any more
	by   string // the process that holds it
}

// untaken is a handover for balance that its addressee did not take.
type untaken struct {
	move
	cooldown time.Duration
}

// contend notes whether this process is willing to lead.
func (m *mover) contend(willing bool, now clock.Instant) {
	switch {
	case !willing:
		m.willing = 0
	case m.willing == 0:
		m.willing = now.Mono
	}
}

// looks reports whether it is time to look for something to hand over; may tells whether
// this process does so at all. It looks again in levelEvery, and not before what it hands
// over has been taken.
func (m *mover) looks(may bool, now clock.Instant) bool {
	if balancing := slices.ContainsFunc(m.under, func(v move) bool { return v.id == 0 }); balancing {
		may = false
	}
	if now.Mono < m.lookAt {
		return false
	}
	m.lookAt = now.Mono.Add(levelEvery)
	return may
}

// putOff reports whether nothing is handed over for balance because this process is behind
// in all logs: an answer would come too late, and there is enough to be read. Where round
// trips are always long it would be behind for ever, so its patience is bounded.
func (m *mover) putOff(behind bool, now clock.Instant) bool {
	if !behind {
		m.patience = 0
		return false
	}
	if m.patience == 0 {
		m.patience = now.Mono.Add(maxPutOff)
	}
	return now.Mono < m.patience
}

// weigh takes what the plan would have this process hand over, and returns what it hands
// over now: all of it once there has been something for two looks. tenured tells whether
// there is something that may not be moved yet, and may later.
func (m *mover) weigh(todo []placement.Move, tenured func() bool, now clock.Instant) []placement.Move {
	switch {
	case len(todo) == 0:
		m.uneven = 0
		m.dirty = tenured()
	case m.uneven == 0:
		m.uneven = now.Mono
	case now.Mono.Sub(m.uneven) >= 2*levelEvery:
		return todo
	}
	return nil
}

// resolve finds out what became of the handovers under way. Each is waited for until limit
// at most. A member that did not take what was handed to it for balance is in cooldown from
// now on.
func (m *mover) resolve(of func(move) fate, limit time.Duration, now clock.Instant) (ended []Outcome, failed []untaken) {
	before := len(m.under)
	m.under = slices.DeleteFunc(m.under, func(v move) bool {
		over, err := of(v).verdict(v.to, now.Mono.Sub(v.began) >= limit)
		switch {
		case !over:
			return false
		case v.id != 0:
			ended = append(ended, Outcome{v.id, err})
		case err != nil:
			if m.cool == nil {
				m.cool = cooldowns{}
			}
			failed = append(failed, untaken{v, m.cool.failed(v.to, now.Mono)})
		}
		m.dirty = true
		return true
	})
	if len(m.under) == 0 && before > 0 {
		m.lookAt = min(m.lookAt, now.Mono.Add(movePause))
	}
	return ended, failed
}

// verdict tells whether a handover to a process is over, and how it ended; late says that it
// has been waited for long enough.
func (f fate) verdict(to string, late bool) (over bool, err error) {
	switch {
	case f.ours && f.kept:
		return true, ErrNoAnswer
	case f.held && !f.ours && f.by == to:
		return true, nil
	case (!f.held || f.ours) && !late:
		return false, nil
	}
	return true, ErrNotTransferred
}

// movable reports whether a role that is kept may be handed over for balance.
func (h *hold) movable(now clock.Instant) bool {
	return h.cause == claimed || h.cause == rebalanced && now.Mono.Sub(h.since) >= minTenure
}

// tenured reports whether a role may not be moved on yet, and may later.
func (h *hold) tenured(now clock.Instant) bool {
	return h.cause == rebalanced && now.Mono.Sub(h.since) < minTenure
}

const (
	// cooldown is how long nothing is handed to a process that did not claim what it was
	// given, and maxCooldown that time after it has doubled with each further failure.
	// It is short at first: where many processes start on few cores, one that answers too late
	// is busy and will soon answer, and meanwhile others lead more than their share.
	cooldown    = 5 * time.Second
	maxCooldown = time.Minute
)

// cooldowns are the processes that did not claim what they were given.
type cooldowns map[string]failure

// failure is a process in cooldown until `until`; `long` doubles with each failure.
type failure struct {
	long  time.Duration
	until clock.Mono
}

// leaves reports whether a process is in cooldown, so that nothing is handed to it.
func (c cooldowns) leaves(id string, now clock.Mono) bool {
	f, failed := c[id]
	return failed && now < f.until
}

// failed begins the cooldown of a process that did not claim what it was given, and returns
// how long it lasts. A failure of long ago does not count.
func (c cooldowns) failed(id string, now clock.Mono) time.Duration {
	for other, f := range c {
		if now >= f.until.Add(maxCooldown) {
			delete(c, other)
		}
	}
	long := cooldown
	if f, before := c[id]; before {
		long = min(2*f.long, maxCooldown)
	}
	c[id] = failure{long, now.Add(long)}
	return long
}

// Transfer begins to hand a role over to a member, and returns a number by which its
// Outcome is known. The error is ErrNotLeader, ErrLeadsAlready or ErrNoMember.
func (n *Node) Transfer(role int, to string, now clock.Instant) (id int, err error) {
	if len(n.shards) == 0 {
		return 0, ErrNotLeader
	}
	p, u := n.local(role)
	h := p.holds.at(u)
	if _, leads := p.lease.Leads(u, now); !leads || h == nil || p.hands.of(u) != nil || !n.terms.Told(role) {
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
	p.handOver(hand, []int32{u}, id, now)
	p.step(now)
	return id, nil
}

// handOver begins a handover of roles, and waits for its outcome.
func (s *shard) handOver(h *handover, roles []int32, id int, now clock.Instant) {
	s.begin(h, roles...)
	s.mover.under = append(s.mover.under, move{partition: s.index, role: roles[0], token: s.holds.at(roles[0]).token, to: h.to,
		began: now.Mono, id: id})
}

// rebalance hands over what is more than this process's share, or deserved more by others.
func (n *Node) rebalance(now clock.Instant) {
	m := &n.mover
	willing := !n.set.Nominated && !n.set.Observer && n.desired.Willing(now) && n.set.Alive(now)
	m.contend(willing, now)
	n.resolveMoves(now)
	if !m.looks(willing && n.set.Rebalance, now) {
		return
	}
	if m.putOff(allBehind(n.shards, now, n.set.T), now) {
		return
	}
	plan, me := n.plan(false, now)
	if m.dirty = n.planner.changed() || m.dirty; !m.dirty {
		return
	}
	var todo []placement.Move
	if me >= 0 {
		todo = plan.Moves(me, n.expected(plan, now), func(role int) bool {
			p, u := n.local(role)
			h := p.holds.at(u)
			return role < n.desired.Roles && h != nil && p.hands.of(u) == nil && h.movable(now) && n.terms.Told(role)
		}, maxBatch)
	}
	for _, v := range m.weigh(todo, func() bool { return tenured(n.shards, now) }, now) {
		n.move(plan.Candidate(v.To).ID, v.Roles, now)
	}
}

// allBehind reports whether this process is behind in all logs.
func allBehind(parts []*shard, now clock.Instant, t time.Duration) bool {
	return !slices.ContainsFunc(parts, func(p *shard) bool { return !p.main.link.behind(now, t) })
}

func tenured(parts []*shard, now clock.Instant) bool {
	for _, p := range parts {
		var last *hold
		for _, h := range p.holds.all() {
			if h != last && h.tenured(now) {
				return true
			}
			last = h
		}
	}
	return false
}

// move hands roles over to a process, those of each partition together.
func (n *Node) move(to string, roles []int, now clock.Instant) {
	byPartition := map[*shard][]int32{}
	for _, role := range roles {
		p, u := n.local(role)
		byPartition[p] = append(byPartition[p], u)
	}
	for p, some := range byPartition {
		slices.Sort(some)
		p.handOver(newHandover(term.Rebalanced, now, to, true), some, 0, now)
	}
}

// resolveMoves finds out what became of what is being handed over.
func (n *Node) resolveMoves(now clock.Instant) {
	limit := n.set.AnswerWait + n.set.Drain + 2*clock.Wait(n.set.T, n.set.Rho)
	ended, failed := n.mover.resolve(func(v move) fate {
		p := n.shards[v.partition]
		g, held := p.lease.Holder(v.role)
		f := fate{held: held, ours: held && p.lease.Ours(g, v.token), by: g.Session.Process}
		f.kept = p.holds.at(v.role) != nil && p.hands.of(v.role) == nil
		return f
	}, limit, now)
	n.ready.Outcomes = append(n.ready.Outcomes, ended...)
	for _, v := range failed {
		n.planner.forget()
		n.note(slog.LevelInfo, "member did not claim what was handed to it: nothing more for a while",
			"partition", v.partition, "member", v.to, "for", v.cooldown)
	}
}
