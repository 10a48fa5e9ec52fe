package neli

import (
	"log/slog"
	"time"
)

// Who may claim, and who is to give up: what a lease arbiter makes of the group's
// nominations, of the curator's wishes and of what the peers say of themselves.

func (a *leaseArbiter) intend(p posture) {
	a.mu.Lock()
	a.posture = p
	a.mu.Unlock()
	a.prod()
	a.Ring() // the driver looks at roles too
}

// nominate takes the group's word: the partitions that this process may claim.
func (a *leaseArbiter) nominate(partitions []int, lost bool) {
	a.mu.Lock()
	named := make([]bool, len(a.nominated))
	for _, p := range partitions {
		if p >= 0 && p < len(named) {
			named[p] = true
		}
	}
	for p := range named {
		// The group's session is over, the lease is not: what is held stays.
		a.retained[p] = lost && a.leases[p].mine != noToken && (a.nominated[p] || a.retained[p])
	}
	now := a.now()
	for p := range named {
		if named[p] && !a.nominated[p] {
			a.since[p] = now
		}
	}
	a.nominated = named
	a.tempo.helloAt = now.mono
	a.mu.Unlock()
	a.prod()
}

// attend keeps this process in the group only while it could lead: a hung
// application must make room for others, and so must a process that cannot reach
// a partition for which it is nominated.
func (a *leaseArbiter) attend(now instant) {
	if a.nom == nil {
		return
	}
	lost := a.reach.lost(now)
	a.nom.join(a.posture.willing(now) && a.alive(now) && len(lost) == 0)
	if len(lost) > 0 && a.unreached.due() {
		a.notes.add(slog.LevelWarn, "cannot reach partitions of the leader topic: leaving the group to make room for others",
			"partitions", lost)
	}
}

// hello appends a Hello if it is time, and probes of partitions that cannot be
// reached.
func (a *leaseArbiter) hello(now instant, out []outgoing, next time.Duration) ([]outgoing, time.Duration) {
	if a.set.observer {
		return out, next
	}
	if a.nom != nil { // else others claim what this process cannot reach
		for _, p := range a.reach.probes(now) {
			out = append(out, a.hi(p, []int{}, now))
		}
	}
	if a.posture.closing {
		if a.tempo.bye {
			return out, next
		}
		a.tempo.bye, a.tempo.helloAt = true, now.mono
	}
	wants := a.wants(now)
	if a.tempo.wavers(wants == nil) {
		wants = []int{} // even if it is over when it can be said: the others are not to take this one for steady
	}
	if a.nom == nil && a.tempo.wanting != (wants == nil) {
		a.soon(now) // that is news for the others
	}
	if now.mono >= a.tempo.helloAt {
		a.tempo.helloAt, a.tempo.saidAt, a.tempo.wanting = now.mono+helloPeriod(a.peers.size()), now.mono, wants == nil
		a.tempo.wavered = false
		out = append(out, a.hi(a.home, wants, now))
	}
	return out, min(next, a.tempo.helloAt)
}

// soon lets the next Hello come earlier, a second after the last one if the group is
// small.
func (a *leaseArbiter) soon(now instant) {
	a.tempo.helloAt = min(a.tempo.helloAt, max(now.mono, a.tempo.saidAt+helloGap(a.peers.size())))
}

// hearHello takes note of what another process says of itself. With Open nomination a
// newcomer is told at once who else is there: it would claim everything otherwise. It
// reports whether the sender waits for an answer.
func (a *leaseArbiter) hearHello(e logEntry, r record, now instant) (called bool) {
	live := e.offset >= a.leases[e.partition].live
	a.heed(e, r)
	unknown := a.peers.hear(r, a.set.instance, now)
	if r.member == a.set.instance && !a.posture.closing && !r.aside() {
		a.tempo.measure(now.mono - a.tempo.saidAt) // before the first claim there is nothing else
	}
	if !live {
		return false
	}
	a.peers.confirm(r.member)
	if unknown && a.nom == nil {
		if a.soon(now); a.tempo.helloAt < a.scheduled {
			a.prod()
		}
	}
	return r.to == a.set.instance && a.nom == nil && !a.set.observer && !a.posture.closing
}

// wants is what a Hello says that this process may claim; nil means everything.
func (a *leaseArbiter) wants(now instant) []int {
	wants := []int{}
	if a.posture.closing {
		return wants
	}
	if a.nom == nil {
		if a.willing(now) {
			return nil
		}
		return wants
	}
	for p, yes := range a.nominated {
		if yes {
			wants = append(wants, p)
		}
	}
	return wants
}

func (a *leaseArbiter) hi(p int, wants []int, now instant) outgoing {
	if a.posture.closing {
		a.farewells++
	}
	return outgoing{p, record{kind: kindHello, group: a.set.group, member: a.set.instance, name: a.set.name, token: noToken, read: -1,
		leaving: a.posture.closing, wants: wants, priority: a.set.priority}}
}

// stepHandovers moves on what may wait for that member.
func (a *leaseArbiter) stepHandovers(member string, now instant, out []outgoing) []outgoing {
	for p, h := range a.hands {
		if h != nil && (a.nom != nil || h.to == member) {
			out = a.step(p, now, out)
		}
	}
	return out
}

// intentOf says what is wanted of the lease of p, and why its term ends if it
// does so now.
func (a *leaseArbiter) intentOf(p int, now instant) (intent, Reason) {
	alive := a.alive(now)
	in := intent{want: a.claims(p, now, alive), keep: true, alive: alive, delay: max(0, a.delays[p])}
	why := ReasonLapsed
	if !alive {
		why = ReasonNotPulsed
	}
	if a.leases[p].mine == noToken {
		return in, why
	}
	if a.Over(p) {
		in.keep = false
		return in, why
	}
	a.giveUpUnwanted(p, now)
	if h := a.hands[p]; h != nil {
		s := a.scene(p, h, now)
		switch h.advance(now, s) {
		case verdictAsk:
			if !s.ready && !s.idle {
				h.to = "" // it would only keep the others waiting
			}
			a.Revoke([]int{p}, h.why, h.deadline.point())
		case verdictCancel:
			a.callOff(p)
		case verdictRelease:
			in.keep, why = false, h.why
		case verdictOverdue:
			in.keep, why = false, ReasonOverdue
			a.notes.add(slog.LevelWarn, "released before the application had finished", "partition", p, "token", a.leases[p].mine)
		case verdictStay:
		}
	}
	return in, why
}

// wanted reports whether this process would have p at time now, if it is nominated.
func (a *leaseArbiter) wanted(p int, now instant) bool {
	return a.posture.wants(p) && a.posture.willing(now)
}

// claims reports whether this process would claim p at time now, if the lease lets it.
func (a *leaseArbiter) claims(p int, now instant, alive bool) bool {
	return alive && a.wanted(p, now) && a.nominated[p] && (a.nom != nil || a.inherits(p) || !a.choice.pace.full())
}

// keeps reports whether this process goes on holding p, which it holds.
func (a *leaseArbiter) keeps(p int, now instant) bool {
	return a.wanted(p, now) && (a.nominated[p] || a.retained[p])
}

// giveUpUnwanted begins the orderly end of the term of p if it is not wanted any
// more.
func (a *leaseArbiter) giveUpUnwanted(p int, now instant) {
	if a.hands[p] == nil && !a.keeps(p, now) {
		a.hand(p, &handover{why: a.posture.reason(p, now), since: now})
	}
}

func (a *leaseArbiter) scene(p int, h *handover, now instant) scene {
	s := scene{
		wanted: a.keeps(p, now),
		told:   a.Told(p),
		idle:   !a.posture.contend,
		drain:  a.set.drain,
		wait:   a.set.successorWait,
	}
	switch {
	case p >= a.posture.roles:
		s.ready = true
	case a.nom != nil:
		s.ready = a.peers.ready(p, a.since[p])
	case h.named:
		s.ready = h.to == "" || a.answered(h)
		s.refused = !s.ready && !a.peers.takes(h.to)
	}
	return s
}

// answered reports whether who is to lead next has said that it would.
func (a *leaseArbiter) answered(h *handover) bool { return h.answer && a.peers.takes(h.to) }

// call asks those who are to lead next to say that they are there, in the log of the
// partition that each is to have: on its way there the answer opens and warms what the
// claim will need, and of one that is dead, cut off or deaf nothing is heard.
func (a *leaseArbiter) call(now instant, out []outgoing) []outgoing {
	for p, h := range a.hands {
		if h != nil && h.to != "" && !h.called && !h.asked {
			h.called = true
			o := a.hi(p, a.wants(now), now)
			o.record.to = h.to
			out = append(out, o)
		}
	}
	return out
}

// heed takes note of a call by this process, or of an answer to it. Other words of that
// member count for nothing: it says them without having read anything.
func (a *leaseArbiter) heed(e logEntry, r record) {
	h := a.hands[e.partition]
	switch {
	case h == nil || h.to == "":
	case r.member == a.set.instance && r.to == h.to:
		h.call = e.offset
	case r.member == h.to && h.call != 0 && r.read >= h.call:
		h.answer = true
	}
}

// callOff ends a hand-over of which the application has not been told.
func (a *leaseArbiter) callOff(p int) {
	h := a.hands[p]
	a.hands[p] = nil
	a.seats.wake() // Transfer may wait for the end
	a.notes.add(slog.LevelDebug, "hand-over called off", "partition", p, "reason", h.why, "to", h.to)
	if h.deliberate() {
		a.prod() // there may be something else to move
	}
}

// jitter spreads claimants by no more than a round trip: enough for one claim to
// win mostly, and safety does not rest on it.
func (a *leaseArbiter) jitter() time.Duration {
	if a.nom != nil {
		return 0
	}
	return a.set.random(a.roundTrip(0) + 1)
}
