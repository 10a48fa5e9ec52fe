package neli

import (
	"hash/fnv"
	"log/slog"
	"time"
)

// Who may claim, and who is to give up: what a lease arbiter makes of the group's
// nominations, of the curator's wishes and of what the peers say of themselves.

func (a *leaseArbiter) intend(p posture) {
	a.mu.Lock()
	if a.nom == nil && p.contend != a.posture.contend {
		// Whether it wants anything is news for the others, once a second at most.
		a.tempo.helloAt = min(a.tempo.helloAt, max(a.now().mono, a.tempo.helloAt-helloEvery+time.Second))
	}
	a.posture = p
	a.mu.Unlock()
	a.prod()
	a.ring() // the driver looks at roles too
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
	a.nom.join(a.posture.contend && !a.posture.closing && a.alive(now) && len(lost) == 0)
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
			out = append(out, a.hi(p, []int{}))
		}
	}
	if a.posture.closing {
		if a.tempo.bye {
			return out, next
		}
		a.tempo.bye, a.tempo.helloAt = true, now.mono
	}
	if now.mono >= a.tempo.helloAt {
		a.tempo.helloAt = now.mono + helloEvery
		h := fnv.New32a()
		_, _ = h.Write([]byte(a.set.instance))
		out = append(out, a.hi(int(h.Sum32()%uint32(len(a.leases))), a.wants(now)))
	}
	return out, min(next, a.tempo.helloAt)
}

// wants is what a Hello says that this process may claim; nil means everything.
func (a *leaseArbiter) wants(now instant) []int {
	wants := []int{}
	if a.posture.closing {
		return wants
	}
	if a.nom == nil {
		if a.posture.contend && a.alive(now) {
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

func (a *leaseArbiter) hi(p int, wants []int) outgoing {
	if a.posture.closing {
		a.farewells++
	}
	return outgoing{p, record{kind: kindHello, group: a.set.group, member: a.set.instance, name: a.set.name,
		leaving: a.posture.closing, wants: wants}}
}

func (a *leaseArbiter) stepHandovers(now instant, out []outgoing) []outgoing {
	for p, h := range a.hands {
		if h != nil {
			out = a.step(p, now, out)
		}
	}
	return out
}

// intentOf says what is wanted of the lease of p, and why its term ends if it
// does so now.
func (a *leaseArbiter) intentOf(p int, now instant) (intent, Reason) {
	wanted := a.posture.wants(p) && (a.nominated[p] || a.retained[p])
	alive := a.alive(now)
	in := intent{want: a.posture.wants(p) && a.nominated[p] && alive, keep: true, alive: alive, delay: a.delays[p]}
	why := ReasonLapsed
	if !alive {
		why = ReasonNotPulsed
	}
	if a.leases[p].mine == noToken {
		return in, why
	}
	if a.over(p) {
		in.keep = false
		return in, why
	}
	if a.hands[p] == nil && !wanted {
		a.hands[p] = &handover{why: a.posture.reason(p), since: now}
		a.notes.add(slog.LevelDebug, "handing over", "partition", p, "token", a.leases[p].mine, "reason", a.hands[p].why)
	}
	if h := a.hands[p]; h != nil {
		switch h.advance(now, a.scene(p, wanted)) {
		case verdictAsk:
			a.giveUp(p, h.why, h.deadline)
		case verdictCancel:
			a.hands[p] = nil
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

func (a *leaseArbiter) scene(p int, wanted bool) scene {
	return scene{
		wanted: wanted,
		told:   a.wasTold(p),
		ready:  a.nom == nil || a.posture.reason(p) == ReasonRoles || a.peers.ready(p, a.since[p]),
		idle:   !a.posture.contend,
		drain:  a.set.drain,
		wait:   a.set.successorWait,
	}
}

// jitter spreads claimants by no more than a round trip: enough for one claim to
// win mostly, and safety does not rest on it.
func (a *leaseArbiter) jitter() time.Duration {
	if a.nom != nil {
		return 0
	}
	return a.set.random(min(max(a.tempo.rtt, 0), 20*time.Millisecond) + 1)
}
