package elector

import (
	"errors"
	"iter"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/quorum"
	"github.com/goneli/neli/internal/term"
)

// On small logs there is one partition, which stands for all of them: it has what this
// process holds, gives up and means to claim. The logs have what is said in each, and how
// it comes back. What they say together, and what follows from that, is package quorum's.

// ledger is who holds what, as one log says or a majority of small ones do.
type ledger interface {
	Known() bool
	Session() lease.Session
	Leads(role int32, now clock.Instant) (token int64, ok bool)
	Mine(role int32) (token int64, ok bool)
	Holder(role int32) (lease.Grantee, bool)
	Holders() iter.Seq[lease.HolderState]
	Each(of func(lease.HolderState) int32, set func(role, value int32))
	HeldBy(lease.Session) int
	Sessions() int
	Roles() int32
	FreeAt(role int32) clock.Raw
	Claiming() (n int, oldest clock.Instant)
	Forget(roles []int32)
}

// openSmall is Open of small logs.
func (n *Node) openSmall(logs int, now clock.Instant) {
	n.quorum = quorum.New(quorum.Rules{Logs: logs, Process: n.set.Process, Name: n.set.Name, T: n.set.T, Rho: n.set.Rho,
		History: History, Random: n.set.Random})
	all := newPartition(0, nil, n.set, now)
	all.lease = n.quorum
	n.parts = []*partition{all}
	for i := range logs {
		n.logs = append(n.logs, newPartition(i, n.quorum.Log(i), n.set, now))
	}
	n.members.open(1)
	n.terms.Open(n.quorum.Lines())
}

// logsOf are the logs in which it is said what becomes of the roles of a partition, and
// rolesOf is the partition of the roles of which a log tells.
func (n *Node) logsOf(p *partition) []*partition {
	if n.quorum != nil {
		return n.logs
	}
	return n.logs[p.index : p.index+1]
}

func (n *Node) rolesOf(p *partition) *partition {
	if n.quorum != nil {
		return n.parts[0]
	}
	return p
}

// free are the roles below R that may be claimed because nobody holds them.
func (n *Node) free(p *partition, now clock.Instant) []int32 {
	if n.quorum != nil {
		return n.quorum.Free(n.localRoles(p), now)
	}
	return p.log.Free(n.localRoles(p))
}

func (n *Node) owing(p *partition, now clock.Instant) bool {
	if n.quorum != nil {
		return n.quorum.Owing(now)
	}
	return p.log.Owing()
}

// word, snapshot and releases make records for one log.
func (n *Node) word(p *partition, k lease.Kind, now clock.Instant) lease.Record {
	if n.quorum != nil {
		return n.quorum.Word(p.index, k, now)
	}
	return p.log.Word(k, now)
}

func (n *Node) snapshot(p *partition, now clock.Instant) []lease.Record {
	if n.quorum != nil {
		return n.quorum.Snapshot(p.index, now)
	}
	return p.log.Snapshot(now)
}

func (n *Node) releases(p *partition, roles []int32, now clock.Instant) []lease.Record {
	if n.quorum != nil {
		return n.quorum.ReleaseOn(p.index, roles, now)
	}
	return p.log.Release(roles, now)
}

// appendSmall hands over what quorum has made.
func (n *Node) appendSmall(out []quorum.Out, now clock.Instant) {
	for _, o := range out {
		n.append(n.logs[o.Log], now, o.Record)
	}
}

// readSmall is Read of small logs. What a former incarnation said late is not looked at.
func (n *Node) readSmall(e Entry, r *lease.Record, bad error, now clock.Instant) {
	p := n.logs[e.Partition]
	n.account(n.parts[0], now)
	switch {
	case e.Reset:
		if p.begun {
			n.counts.LogResets++
		}
		p.id = e.ID
		n.quorum.Begin(p.index, e.Offset, e.End, e.Top, now)
		p.reset(e.End, now)
		n.parts[0].begun = true
		n.recount(now)
		n.planner.forget()
		n.ready.Changed = true
	case e.ID != p.id:
		return
	case e.Alive:
		n.quorum.Answered(p.index, now)
	default:
		n.counts.Records++
		n.consumeSmall(p, e, r, bad, now)
	}
	n.stepSmall(now)
	n.conclude(now)
}

// consumeSmall folds a record of a small log, and draws the conclusions.
func (n *Node) consumeSmall(p *partition, e Entry, r *lease.Record, bad error, now clock.Instant) {
	var ev lease.Event
	switch {
	case bad == nil:
		ev = n.quorum.Read(p.index, e.Offset, r, now)
	case errors.Is(bad, lease.ErrNewer):
		ev = n.quorum.ReadNewer(p.index, e.Offset, r.Ballot, now)
	default:
		ev = n.quorum.Skip(p.index, e.Offset, now)
	}
	if bad != nil {
		n.count(bad, e)
	}
	if ev.Rewound {
		n.sayRewound(p, ev, e, now)
		p.reset(e.Offset+1, now)
		n.recount(now)
		n.planner.forget()
		n.ready.Changed = true
		return
	}
	if ev.Own {
		n.back(p, r, ev.Stamp, now)
	}
	n.doubt(p, ev, e, r, now)
	all := n.parts[0]
	if ev.Evidence {
		if id := (lease.Session{Process: r.Session.Process, N: 1}); all.claims.silent[id] != 0 { // it lives on
			n.recountOf(all.heldBy(map[lease.Session]bool{id: true}), now)
			delete(all.claims.silent, id)
			n.ready.Changed = true
		}
	}
	if ev.Known {
		n.recount(now)
	}
	n.outlived(p, ev.Outlived, r, now)
	if len(ev.Changed) > 0 {
		n.recountOf(ev.Changed, now)
		n.designate(all, ev.Changed, r)
	}
	if ev.Known || len(ev.Changed) > 0 {
		n.ready.Changed = true
	}
	if bad != nil {
		return
	}
	n.listen(p, e.Offset, r, now)
	if r.Kind == lease.Beat && !ev.Own {
		n.beatSmall(now, n.set.Every/4) // in unison: one wake-up for all
	}
}

// stepSmall lets everything on small logs decide. The order is that of step.
func (n *Node) stepSmall(now clock.Instant) {
	p := n.parts[0]
	if !p.begun {
		p.dueAt = clock.Never
		return
	}
	if n.timing.settling && now.Mono >= n.timing.settleAt {
		n.timing.settling = false
		n.reviewAll(now)
	}
	below := int32(0)
	if n.willing(p, now) {
		below = n.localRoles(p)
	}
	if below != n.below {
		n.below = below
		n.quorum.Want(below, func(int32) bool { return true })
	}
	n.quorum.RoundTrip(n.timing.roundTrip())
	n.appendSmall(n.quorum.Tick(now), now)
	n.syncSmall(p, now)
	if p.over {
		p.over = false
		n.dropDelivered(p, now)
	}
	n.giveUp(p, now)
	n.advance(p, now)
	n.beatSmall(now, 0)
	n.silence(p, now)
	n.claim(p, now)
	n.syncSmall(p, now)
	for _, log := range n.logs {
		if log.begun {
			n.catchUp(log, now)
			n.greet(log, now)
			n.answer(log, now)
		}
	}
	p.dueAt = n.dueSmall(p, now)
}

// syncSmall compares roles that may have changed with what is held here. What has ended is
// ended before a line is renewed, and lines are renewed before terms are shifted to them: a
// term that goes on is found led all the while. It is called after each record, so that no
// log was lost and won again since: until it is shifted, a term's former line says no more
// than its new one.
func (n *Node) syncSmall(p *partition, now clock.Instant) {
	var lapsed, superseded, free, taken []int32
	gained := map[int64][]int32{}
	var shifted []int32
	for _, role := range n.quorum.Changed() {
		token, line, led := n.quorum.Term(role)
		h := p.holds[role]
		switch {
		case h != nil && (!led || h.token != token):
			if g, held := n.quorum.Holder(role); held && g.Session != n.quorum.Session() {
				superseded = append(superseded, role)
			} else {
				lapsed = append(lapsed, role)
			}
			h = nil
		case h != nil && h.line != line:
			shifted = append(shifted, role)
		}
		switch {
		case led && h == nil:
			gained[token] = append(gained[token], role)
			taken = append(taken, role)
		case led || !n.quorum.Vacant(role, now):
			taken = append(taken, role)
		case !p.claims.isListed(role):
			free = append(free, role)
		}
	}
	n.end(p, superseded, term.Superseded, false)
	n.end(p, lapsed, n.lapsed(now), false)
	n.renewSmall()
	n.shiftSmall(p, shifted)
	for token, roles := range gained {
		n.gain(p, roles, token, now)
	}
	p.claims.drop(taken)
	n.vacate(p, free, now)
	if len(taken) > 0 {
		n.ready.Changed, n.moves.dirty = true, true
	}
}

// shiftSmall lets terms follow the lines of V that are theirs now.
func (n *Node) shiftSmall(p *partition, roles []int32) {
	byLine := map[int][]int{}
	for _, role := range roles {
		h := p.holds[role]
		if _, line, led := n.quorum.Term(role); led && h != nil && h.line != line {
			h.line = line
			byLine[line] = append(byLine[line], n.role(p, role))
		}
	}
	for line, units := range byLine {
		n.terms.Shift(units, line)
	}
}

// renewSmall publishes V of all lines that terms follow.
func (n *Node) renewSmall() {
	for line := range n.quorum.InUse() {
		v := n.quorum.V(line)
		if at, ok := n.terms.V(line); v != (clock.Instant{}) && (!ok || at != v) {
			n.terms.Renew(line, v)
		}
	}
}

// beatSmall appends a Beat to each log on which something is held, if one is due there or
// will be within early. One that is not heard is left alone: what is sent there piles up.
func (n *Node) beatSmall(now clock.Instant, early time.Duration) {
	if !n.set.Alive(now) {
		return
	}
	for _, p := range n.logs {
		if now.Mono < n.quorum.BeatAt(p.index).Add(n.set.Every-early) || p.link.beating(now, n.set.T) {
			continue
		}
		if o, ok := n.quorum.Beat(p.index, now); ok {
			n.append(p, now, o)
		}
	}
}

// dueSmall is due of small logs.
func (n *Node) dueSmall(p *partition, now clock.Instant) clock.Time {
	next := n.quorum.Due(now)
	mono := func(t clock.Time) { next = min(next, t) }
	for _, h := range p.hands {
		if !h.named {
			mono(n.nameAt())
		}
		mono(h.due(n.set.AnswerWait))
		mono(h.releaseAt(n.timing.roundTrip()))
	}
	if at, ok := n.claimDue(p, now); ok {
		mono(at)
	}
	mono(now.MonoOf(p.claims.silentAt))
	for _, log := range n.logs {
		if !log.begun {
			continue
		}
		if log.log.Holding() > 0 && n.set.Alive(now) && !log.link.beating(now, n.set.T) {
			mono(n.quorum.BeatAt(log.index).Add(n.set.Every))
		}
		n.talkDue(log, now, mono)
	}
	return next
}
