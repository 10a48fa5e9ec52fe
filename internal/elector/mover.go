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

// Errors of Transfer. Package neli has public errors for these.
var (
	ErrNotLeader      = errors.New("neli: this process does not lead the role")
	ErrNoMember       = errors.New("neli: no such member")
	ErrNoAnswer       = errors.New("neli: the member does not answer")
	ErrLeadsAlready   = errors.New("neli: the member leads the role already")
	ErrNotTransferred = errors.New("neli: another member claimed first")
)

const (
	// steadyAfter is how long a process must have been present and healthy before a leader
	// hands roles over to it.
	steadyAfter = 3 * helloEvery
	// minTenure is how long a role stays after it was moved for balance or preference. It
	// limits the moves between members whose preferences contradict each other.
	minTenure = 30 * time.Second
	// levelEvery is how often a holder checks whether it has more than its share, and
	// movePause the pause before it hands over more.
	levelEvery = time.Second
	movePause  = 200 * time.Millisecond
	// maxPutOff is how long a holder that is behind may postpone handing over.
	maxPutOff = time.Minute
	// maxBatch is how many roles are handed over at a time.
	maxBatch = 10_000
)

// mover decides which roles a holder hands over although it could keep them, and follows each
// handover until its outcome is known. It knows no records: the caller passes in the plan and the
// holders, and carries out the result.
type mover struct {
	lookAt   clock.Mono
	level    bool       // there was nothing to hand over at the last look
	seen     placed     // what that look was based on
	patience clock.Mono // put off until then, since this process is behind; 0: not put off
	uneven   clock.Mono // since when there are roles to hand over; 0: there are none
	under    []move     // handovers in progress
	cool     cooldowns
	willing  clock.Mono // since when this process is willing to lead; 0: it is not
}

// move is a handover whose outcome is awaited.
type move struct {
	partition int
	role      int32 // one of its roles
	token     int64
	to        string
	began     clock.Mono
	id        int // of a Transfer; 0: it is for balance
}

// fate is the state of a move's role.
type fate struct {
	held bool   // by any process
	ours bool   // by this process, in the term being handed over
	kept bool   // and the handover was called off
	by   string // the holder
}

// placed is what a look for roles to hand over depends on, beside the plan and the time. It is
// different whenever a role may have another holder, is kept after all, or may be handed over since
// the application was told of its term.
type placed struct {
	holders   uint64
	calledOff uint64
	told      uint64
}

// placed returns the present state.
func (k *common) placed() (is placed) {
	is.told = k.terms.Counts().Told
	for _, s := range k.shards {
		is.holders += s.lease.Turns()
		is.calledOff += s.hands.calledOff
	}
	return is
}

// untaken is a handover for balance that its addressee did not take.
type untaken struct {
	move
	cooldown time.Duration
}

// await makes the outcome of a handover that begins known to resolve.
func (m *mover) await(v move) { m.under = append(m.under, v) }

// contend notes whether this process is willing to lead.
func (m *mover) contend(willing bool, now clock.Instant) {
	switch {
	case !willing:
		m.willing = 0
	case m.willing == 0:
		m.willing = now.Mono
	}
}

// looks reports whether to look now for roles to hand over; may is false if this process never
// does. The next look is after levelEvery, and not before the current handovers are decided.
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

// putOff reports whether handing over for balance is postponed because this process is behind in
// all logs: answers would come too late, and there is enough to read. Where round trips are always
// long it would be behind for ever, so the postponement is limited.
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

// needless reports whether there is nothing to hand over, because nothing has changed since there
// was nothing.
func (m *mover) needless(replanned bool, is placed) bool {
	m.level = m.level && !replanned && is == m.seen
	m.seen = is
	return m.level
}

// weigh takes the moves of the plan, and returns those to begin now: all, once there were some at
// two looks in a row. tenured reports whether there are roles that may be moved only later.
func (m *mover) weigh(todo []placement.Move, tenured func() bool, now clock.Instant) []placement.Move {
	switch {
	case len(todo) == 0:
		m.uneven = 0
		m.level = !tenured()
	case m.uneven == 0:
		m.uneven = now.Mono
	case now.Mono.Sub(m.uneven) >= 2*levelEvery:
		return todo
	}
	return nil
}

// resolve determines the outcome of the handovers in progress. It waits at most limit for each. A
// member that did not take what was handed to it for balance is in cooldown from now on.
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
			failed = append(failed, untaken{v, m.cool.failed(v.to, err != ErrNoAnswer, now.Mono)})
		default:
			delete(m.cool, v.to)
		}
		m.level = false // a failure puts a member in cooldown
		return true
	})
	if len(m.under) == 0 && before > 0 {
		m.lookAt = min(m.lookAt, now.Mono.Add(movePause))
	}
	return ended, failed
}

// verdict reports whether a handover to a process is over, and its error; late means that the time
// for it has passed.
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

// movable reports whether a role may be handed over for balance.
func (h *hold) movable(now clock.Instant) bool {
	return h.cause == claimed || h.cause == rebalanced && now.Mono.Sub(h.since) >= minTenure
}

// tenured reports whether a role may be moved later, but not yet.
func (h *hold) tenured(now clock.Instant) bool {
	return h.cause == rebalanced && now.Mono.Sub(h.since) < minTenure
}

const (
	// cooldown is how long a process gets nothing after it did not claim what it was given. It
	// doubles with each further failure, up to maxCooldown. It is short at first: where many
	// processes start on few cores, a process that answers too late is busy and will soon
	// answer, and others lead more than their share meanwhile.
	cooldown    = 5 * time.Second
	maxCooldown = time.Minute
	// maxRestraint is maxCooldown for a process that answered and did not claim. That has ended a
	// term, which silence does not.
	maxRestraint = time.Hour
)

// cooldowns are the processes that did not claim what they were given.
type cooldowns map[string]failure

// failure is a process in cooldown until `until`; `long` doubles with each failure.
type failure struct {
	long  time.Duration
	until clock.Mono
}

// leaves reports whether a process is in cooldown, so that it gets nothing.
func (c cooldowns) leaves(id string, now clock.Mono) bool {
	f, failed := c[id]
	return failed && now < f.until
}

// doubts reports whether a process did not claim what it was last given. The next handover to it is a
// trial with one role.
func (c cooldowns) doubts(id string) bool {
	_, failed := c[id]
	return failed
}

// failed begins the cooldown of a process that did not claim what it was given, and returns how
// long it lasts; ended reports whether a term was ended for that. An old failure does not count.
func (c cooldowns) failed(id string, ended bool, now clock.Mono) time.Duration {
	for other, f := range c {
		if now >= f.until.Add(max(f.long, maxCooldown)) {
			delete(c, other)
		}
	}
	long, limit := cooldown, maxCooldown
	if ended {
		limit = maxRestraint
	}
	if f, before := c[id]; before {
		long = max(f.long, min(2*f.long, limit))
	}
	c[id] = failure{long, now.Add(long)}
	return long
}

// Transfer begins to hand a role over to a member, and returns the number of its Outcome. The
// error is ErrNotLeader, ErrLeadsAlready or ErrNoMember.
func (n *Node) Transfer(role int, to string, now clock.Instant) (id int, err error) {
	if len(n.shards) == 0 {
		return 0, ErrNotLeader
	}
	p, u := n.local(role)
	h := p.holds.at(u)
	if _, leads := p.lease.Leads(u, now); !leads || h == nil || p.hands.of(u) != nil || !n.terms.Told(role) {
		return 0, ErrNotLeader
	}
	member, err := n.members.find(to, Self{n.set.Process, n.set.Name}, now)
	if err != nil {
		return 0, err
	}
	if member == n.set.Process {
		return 0, ErrLeadsAlready
	}
	if member == "" || !n.members.wanting(member, role) {
		return 0, ErrNoMember
	}
	id = n.requests.number()
	hand := newHandover(term.Transferred, now, member, true)
	hand.pinned = true
	n.mover.await(move{p.index, u, h.token, member, now.Mono, id})
	p.begin(hand, u)
	p.step(now)
	return id, nil
}

// rebalance hands over roles that exceed this process's share, or for which another member is
// preferred.
func (n *Node) rebalance(now clock.Instant) {
	m := &n.mover
	willing := !n.set.Nominated && !n.set.Observer && n.able(now)
	m.contend(willing, now)
	n.resolveMoves(now)
	if !m.looks(willing && n.set.Rebalance, now) {
		return
	}
	if m.putOff(allBehind(n.shards, now, n.set.T), now) {
		return
	}
	plan, me := n.plan(false, now)
	if m.needless(n.planner.changed(), n.placed()) {
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
		to, roles := plan.Candidate(v.To).ID, v.Roles
		if m.cool.doubts(to) {
			roles = roles[:1]
		}
		n.move(to, roles, now)
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

// move hands roles over to a process, one handover for each partition.
func (n *Node) move(to string, roles []int, now clock.Instant) {
	byPartition := map[*shard][]int32{}
	for _, role := range roles {
		p, u := n.local(role)
		byPartition[p] = append(byPartition[p], u)
	}
	for p, some := range byPartition {
		slices.Sort(some)
		n.mover.await(move{partition: p.index, role: some[0], token: p.holds.at(some[0]).token, to: to, began: now.Mono})
		p.begin(newHandover(term.Rebalanced, now, to, true), some...)
	}
}

// resolveMoves ends the handovers whose outcome is known.
func (n *Node) resolveMoves(now clock.Instant) {
	limit := n.set.AnswerWait + n.set.Drain + 2*clock.Wait(n.set.T, n.set.Rho)
	ended, failed := n.mover.resolve(func(v move) fate {
		p := n.shards[v.partition]
		g, held := p.lease.Holder(v.role)
		// A log that is read again tells of earlier terms first.
		held = held && caughtUp(p.logs) && !p.lease.Earlier(p.main.index, g.Token, v.token)
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
