package neli

import (
	"log/slog"
	"maps"
	"time"
)

// Open nomination: who should claim what is vacant, and who should have what is
// held. All of it is preference. It decides when a claim is sent that the lease's
// rules allow, and which term is given up in order; what it gets wrong costs a
// round trip, a contested claim or a term, never the lease.

const (
	// steadyAfter is how long a process must have been there, healthy, before a
	// leader makes room for it.
	steadyAfter = 3 * helloEvery
	// minTenure is how long a partition that was moved, for balance or preference,
	// stays before it may be moved on: it bounds what members do to each other whose
	// preferences contradict.
	minTenure = 30 * time.Second
	// levelEvery is how often a holder looks whether it has more than its share, and
	// movePause how soon it hands over the next partition.
	levelEvery = time.Second
	movePause  = 200 * time.Millisecond
	// shunFor is how long nothing is handed to a process that did not claim what it
	// was given.
	shunFor = time.Minute
	// Between these a measured round trip is believed, or up to a hundredth of T if that
	// is longer; at first it is taken for maxRoundTrip. Below the shorter one the
	// scheduling of processes matters more.
	minRoundTrip = 2 * time.Millisecond
	maxRoundTrip = 20 * time.Millisecond
	// maxRank bounds how long a candidate waits for others that do not come.
	maxRank = 16
	// unranked, of a delay: it has not been worked out yet.
	unranked = time.Duration(-1)
)

// choice is what a process with Open nomination remembers for its preferences.
type choice struct {
	heirs   []heir                   // by partition: whom the last Release was in favour of
	given   []gift                   // by partition: how what is held was come by
	prefs   map[string][]int         // by member: Preference's words
	shunned map[string]time.Duration // by member: monotonic time until which nothing is handed to it
	look    time.Duration            // monotonic time of the next look at the shares
	uneven  time.Duration            // monotonic time since when there was something to hand over; 0: there is not
	moving  *moving
	since   instant // when this process became willing; zero: it is not
	pace    pace
}

type heir struct {
	member string
	gift   gift
}

type gift int

const (
	giftNone   gift = iota // claimed when it was vacant, or left by somebody who went
	giftMoved              // handed over by somebody who could have kept it
	giftPinned             // and meant to stay
)

// moving is the one partition that is being handed over for balance.
type moving struct {
	partition int
	token     int64 // of the term that is given up
	to        string
	began     time.Duration
}

func newChoice(m int, t time.Duration) choice {
	return choice{pace: newPace(t), heirs: make([]heir, m), given: make([]gift, m), prefs: map[string][]int{}, shunned: map[string]time.Duration{}}
}

// census puts together what is known of candidates and holders. It needs the lock.
func (a *leaseArbiter) census(now instant) *census {
	who := make([]candidate, 0, a.peers.size())
	period := helloPeriod(a.peers.size())
	for id, p := range a.peers.heard {
		if p.nominated && p.present && !p.suspect {
			steady := now.mono-p.since.mono >= steadyAfter && now.mono-p.heard.mono < 2*period && now.mono >= a.choice.shunned[id]
			who = append(who, candidate{member: id, priority: p.priority, prefs: a.choice.prefs[id], steady: steady})
		}
	}
	if me := a.set.instance; a.willing(now) {
		steady := now.mono-a.choice.since.mono >= steadyAfter
		who = append(who, candidate{member: me, priority: a.set.priority, prefs: a.choice.prefs[me], steady: steady})
	}
	c := newCensus(who, len(a.leases))
	for p := range a.leases {
		switch l, h := &a.leases[p], a.hands[p]; {
		case h != nil && h.to != "":
			c.hold(p, h.to)
		case l.mine != noToken || l.claiming != 0:
			c.hold(p, a.set.instance)
		case l.token >= 0 && now.mono < l.silentAt():
			c.hold(p, processOf(l.member))
		}
	}
	return c
}

// willing reports whether this process would claim anything at time now.
func (a *leaseArbiter) willing(now instant) bool {
	return a.nom == nil && !a.set.observer && a.posture.willing(now) && a.alive(now)
}

// claimable reports whether p could be claimed now, but for the preference among
// candidates.
func (a *leaseArbiter) claimable(p int, now instant) bool {
	l := &a.leases[p]
	return l.mine == noToken && l.claiming == 0 && p < a.posture.roles && now.mono >= l.claimAt(0)
}

// place works out how long this process waits, from now on, before it claims vacant
// partitions: by its rank among the candidates, with some jitter.
func (a *leaseArbiter) place(now instant, vacant []int) {
	unit := a.roundTrip(minRoundTrip)
	var open []int
	for _, p := range vacant {
		l := &a.leases[p]
		if l.token >= 0 {
			a.peers.suspect(processOf(l.member)) // it was silent for T′
		}
		if a.inherits(p) {
			a.delays[p] = 0
			continue
		}
		open = append(open, p)
	}
	if len(open) == 0 {
		return
	}
	c := a.census(now)
	a.choice.pace.share(len(a.leases), len(c.who))
	me, chosen := c.find(a.set.instance), c.assign(open)
	for n, p := range open {
		a.delays[p] = now.mono - a.leases[p].vacantAt() + a.jitter() // it may have been vacant for long
		if a.leases[p].token == tokenNone && a.choice.heirs[p].member != "" {
			a.delays[p] += headStart(unit)
		}
		if me >= 0 {
			a.delays[p] += 2 * unit * time.Duration(min(c.rank(me, chosen[n], p), maxRank))
		}
	}
}

// inherits reports whether p was released in favour of this process. It claims that at
// once, however much else it has under way: the others leave it a head start.
func (a *leaseArbiter) inherits(p int) bool {
	return a.leases[p].token == tokenNone && a.choice.heirs[p].member == a.set.instance
}

// roundTrip is what a round trip is taken for: no less than least.
func (a *leaseArbiter) roundTrip(least time.Duration) time.Duration {
	return min(max(a.tempo.rtt, least), max(maxRoundTrip, a.set.timeout/100))
}

// recount finds out how many claims of this process are under way.
func (a *leaseArbiter) recount(now instant) {
	a.choice.pace.under = 0
	for p := range a.leases {
		if l := &a.leases[p]; l.claiming != 0 && a.choice.pace.counts(l.beat, now) {
			a.choice.pace.under++
		}
	}
}

// headStart is what others leave to the process in whose favour a partition was
// released: its claim needs a round trip.
func headStart(unit time.Duration) time.Duration { return max(10*unit, 20*time.Millisecond) }

// placeAll places all partitions that have become vacant at once, so that they are
// spread.
func (a *leaseArbiter) placeAll(now instant) {
	if !a.willing(now) {
		return
	}
	var vacant []int
	for p := range a.leases {
		if a.delays[p] == unranked && a.claimable(p, now) {
			vacant = append(vacant, p)
		}
	}
	a.place(now, vacant)
}

// inherit takes note of what a record says of preferences.
func (a *leaseArbiter) inherit(e logEntry, r record) {
	l := &a.leases[e.partition]
	switch {
	case e.jump:
		a.choice.heirs[e.partition] = heir{}
	case r.kind == kindRelease && l.token == tokenNone && l.last == e.offset:
		a.choice.heirs[e.partition] = heir{r.to, giftOf(r)}
	case r.kind == kindClaim && l.token == e.offset:
		if m := a.choice.moving; m != nil && m.partition == e.partition {
			a.prod()
		}
		h := a.choice.heirs[e.partition]
		a.choice.heirs[e.partition] = heir{}
		a.choice.given[e.partition] = giftNone
		if l.mine == e.offset && h.member == a.set.instance {
			a.choice.given[e.partition] = h.gift
		}
	}
}

func giftOf(release record) gift {
	switch {
	case release.pinned:
		return giftPinned
	case release.moved:
		return giftMoved
	}
	return giftNone
}

// begin begins to give up what is not wanted any more, and names who is to have it.
func (a *leaseArbiter) begin(now instant) {
	var unnamed []int
	for p := range a.leases {
		if a.leases[p].mine == noToken {
			continue
		}
		a.giveUpUnwanted(p, now)
		if h := a.hands[p]; h != nil && !h.named && a.nom == nil {
			h.named = true
			if p < a.posture.roles {
				unnamed = append(unnamed, p)
			}
		}
	}
	if len(unnamed) == 0 {
		return
	}
	c := a.census(now)
	for n, i := range c.assign(unnamed) {
		if i != nobody && c.who[i].member != a.set.instance {
			a.hands[unnamed[n]].to = c.who[i].member
		}
	}
}

// favour completes a Release: whom it is in favour of.
func (a *leaseArbiter) favour(r *record, h *handover) {
	if h != nil && a.peers.takes(h.to) {
		r.to, r.pinned, r.moved = h.to, h.pinned, h.why == ReasonRebalanced
	}
}

// level hands over one partition at a time to processes that have less than their
// share, or a better right. It returns when it wants to look again.
func (a *leaseArbiter) level(now instant) time.Duration {
	switch willing := a.willing(now); {
	case !willing:
		a.choice.since = instant{}
	case a.choice.since == instant{}:
		a.choice.since = now
	}
	if a.choice.moving != nil {
		a.settle(now)
	}
	if !a.set.rebalance || a.choice.moving != nil || !a.willing(now) {
		return now.mono + lookEvery
	}
	if now.mono < a.choice.look {
		return a.choice.look
	}
	a.choice.look = now.mono + levelEvery
	c := a.census(now)
	m, ok := c.next(c.find(a.set.instance), a.posture.roles, func(p int) bool { return a.movable(p, now) })
	switch {
	case !ok:
		a.choice.uneven = 0
	case a.choice.uneven == 0:
		a.choice.uneven = now.mono
	case now.mono-a.choice.uneven >= 2*levelEvery:
		to := c.who[m.to].member
		a.choice.moving = &moving{m.partition, a.leases[m.partition].mine, to, now.mono}
		a.hand(m.partition, &handover{why: ReasonRebalanced, since: now, to: to, named: true})
	}
	return a.choice.look
}

func (a *leaseArbiter) movable(p int, now instant) bool {
	l := &a.leases[p]
	if l.mine == noToken || a.hands[p] != nil || !a.Told(p) {
		return false
	}
	g := a.choice.given[p]
	return g == giftNone || g == giftMoved && now.mono-l.since.mono >= minTenure
}

// settle finds out what became of the partition that is being handed over.
func (a *leaseArbiter) settle(now instant) {
	m, l := a.choice.moving, &a.leases[a.choice.moving.partition]
	over := l.token >= 0 && l.token != m.token
	off := l.mine == m.token && a.hands[m.partition] == nil
	if !over && !off && now.mono-m.began < a.set.successorWait+a.set.drain+2*a.set.silence() {
		return
	}
	a.choice.moving = nil
	a.choice.look = now.mono + movePause
	if over && processOf(l.member) == m.to {
		return
	}
	maps.DeleteFunc(a.choice.shunned, func(_ string, until time.Duration) bool { return now.mono >= until })
	a.choice.shunned[m.to] = now.mono + shunFor
	a.notes.add(slog.LevelInfo, "a process did not claim what was to be handed to it: nothing more for a while",
		"partition", m.partition, "member", m.to, "for", shunFor)
}

// hand begins an orderly end.
func (a *leaseArbiter) hand(p int, h *handover) {
	a.hands[p] = h
	a.notes.add(slog.LevelDebug, "handing over", "partition", p, "token", a.leases[p].mine, "reason", h.why, "to", h.to)
}

// consult asks the user's Preference about members that it was not asked about yet:
// without the lock, as it is the user's code.
func (a *leaseArbiter) consult() {
	if a.set.preference == nil || a.nom != nil {
		return
	}
	a.mu.Lock()
	var ask []Member
	for _, m := range a.membersNow(a.now()) {
		if a.choice.prefs[m.ID] == nil {
			ask = append(ask, m)
		}
	}
	for id := range a.choice.prefs {
		if _, known := a.peers.heard[id]; !known && id != a.set.instance {
			delete(a.choice.prefs, id)
		}
	}
	n := len(a.leases)
	a.mu.Unlock()
	for _, m := range ask {
		words := make([]int, n)
		for p := range words {
			words[p] = a.set.preference(m, p)
		}
		a.mu.Lock()
		a.choice.prefs[m.ID] = words
		a.mu.Unlock()
	}
}
