package elector

import (
	"log/slog"
	"time"

	"github.com/goneli/neli/internal/clock"
)

const (
	// helloEvery is how often a process announces itself. A process that was not heard for
	// three times as long counts as gone.
	helloEvery = 5 * time.Second
	// maxHelloPeriod limits how long a crashed process without roles is remembered.
	maxHelloPeriod = time.Minute
	// A measured round trip is limited to this range, or up to a hundredth of T if that is
	// longer. The initial value is maxRoundTrip. Below minRoundTrip the scheduling of processes
	// matters more.
	minRoundTrip = 2 * time.Millisecond
	maxRoundTrip = 20 * time.Millisecond
)

// helloPeriod is helloEvery in a group of n. All members read each Hello, so the cost grows with
// the square of n: more than 25 members say five a second together.
func helloPeriod(n int) time.Duration {
	return min(maxHelloPeriod, max(helloEvery, time.Duration(n)*helloEvery/25))
}

// helloGap is the least time between two Hellos of a process with news, such as a new member is to
// all others. More than 20 members say twenty a second together.
func helloGap(n int) time.Duration { return max(time.Second, time.Duration(n)*time.Second/20) }

// timing is what a process knows of its own times: round trips, its start and its end.
type timing struct {
	t        time.Duration
	rtt      time.Duration // smoothed round trip of own records
	lastBack clock.Instant // when an own record was last read back
	asked    clock.Instant // when the log was last verified
	due      clock.Mono    // when Tick is due

	opened clock.Mono // when the logs were opened
	waits  bool       // it was checked whether this process waits for leases of others

	settleAt  clock.Mono // after a start, the first claims wait for other members until then
	settles   int
	settling  bool          // and are then reconsidered
	awaits    bool          // settleAt is the latest end: the own Hello's return ends that wait earlier
	farewells int           // Releases, Snapshots and last Hellos in flight
	parted    clock.Mono    // when something was last released
	heirs     time.Duration // the longest Wait of a Release so far
	freeAt    clock.Mono    // closing: since when nothing is held
}

func newTiming(t time.Duration) timing { return timing{t: t, rtt: maxRoundTrip} }

// back handles an own record that was sent at a time and has come back. Shorter round trips have
// more weight: the first one sets up a connection, and later ones may wait for a broker that is
// gone.
func (t *timing) back(sent, now clock.Instant) {
	t.lastBack = now
	if sent == (clock.Instant{}) {
		return
	}
	d := now.Mono.Sub(sent.Mono)
	switch {
	case d >= max(time.Second, clock.Behind(t.t)):
	case d < t.rtt:
		t.rtt += (d - t.rtt) / 2
	default:
		t.rtt += (d - t.rtt) / 8
	}
}

// roundTrip is how long a record takes to come back, for processes that wait for each other.
func (t *timing) roundTrip() time.Duration {
	return min(max(t.rtt, minRoundTrip), max(maxRoundTrip, clock.LongTrip(t.t)))
}

// claimTurn is the time that a process of higher rank has for its Claim; reading is how long it may
// read others' Claims.
func (t *timing) claimTurn(reading time.Duration) time.Duration { return 2*t.roundTrip() + reading }

// late reports whether a step is late. A process that was suspended may not know yet that its
// session is over and others have its partitions: for a while it must not announce what it wants.
func (t *timing) late(now clock.Instant) bool {
	return t.due != 0 && now.Mono.Sub(t.due) > time.Second
}

// newcomer makes a process's first claims wait for others that start with it.
func (t *timing) newcomer(now clock.Instant) {
	if t.settles < 3 && (t.settles == 0 || now.Mono < t.settleAt) {
		t.settles++
		t.settling = true
		t.settleAt = max(t.settleAt, now.Mono.Add(t.startupWait()))
	}
}

// startupWait is how long that wait is.
func (t *timing) startupWait() time.Duration { return min(settleFor, clock.StartupWait(t.t)) }

// anew begins that wait anew. It began with the own Hello, but if reading the history takes longer,
// the Hellos of others that start too are read only after that.
func (t *timing) anew(now clock.Instant) {
	t.settles = 0
	if t.awaits {
		t.awaits, t.settleAt = false, 0
	}
	t.newcomer(now)
}

// await makes that wait last until the own Hello comes back and anew is called, but no longer than
// T/2. By then the Hellos of others that were said before it are read.
func (t *timing) await(now clock.Instant) {
	t.awaits, t.settleAt = true, max(t.settleAt, now.Mono.Add(clock.Patience(t.t)))
}

// given ends that wait: a holder is already giving roles to this process, and knows which members
// exist.
func (t *timing) given(now clock.Instant) { t.settleAt = min(t.settleAt, now.Mono) }

// settled is until when the first claims wait. A single role cannot be shared out.
func (t *timing) settled(roles int, nominated bool) clock.Mono {
	if nominated || roles < 2 {
		return 0
	}
	return t.settleAt
}

// verify asks, at most once in T′, whether the log is still the same, if own records are expected
// and none has come back for that long.
func (n *Node) verify(now clock.Instant) {
	t := &n.timing
	busy := false
	for _, p := range n.shards {
		under, _ := p.lease.Claiming()
		busy = busy || p.holds.len() > 0 || under > 0
		p.giveUpClaims(now)
	}
	if !busy {
		t.lastBack = now
		return
	}
	wait := clock.Wait(n.set.T, n.set.Rho)
	if now.Mono.Sub(t.lastBack.Mono) >= wait && now.Mono.Sub(t.asked.Mono) >= wait {
		t.asked = now
		n.ready.Verify = true
	}
}

// closeTail is how long a closing process without roles waits for its last records to be
// acknowledged and for Claims in flight to be decided.
const closeTail = 2 * time.Second

// closeLag is how long it waits if it is still reading and has not reached its own Releases yet.
// If a large group closes together, all are late, and the last one that finds the log vacant has
// to say so.
const closeLag = 3 * closeTail

// finish reports that a closing process has nothing more to wait for. If it leaves no holder
// behind, it leaves a Snapshot, so that the next process knows that at once. Before that,
// successors have a moment to claim, since a Snapshot would only delay their Claims.
func (n *Node) finish(now clock.Instant) {
	if !n.desired.Closing {
		return
	}
	claiming, owing := false, false
	for _, p := range n.shards {
		if p.holds.len() > 0 {
			return
		}
		under, _ := p.lease.Claiming()
		claiming = claiming || under > 0
		owing = owing || p.lease.Owing(now)
	}
	t := &n.timing
	if t.freeAt == 0 {
		t.freeAt = now.Mono
	}
	promised := false
	for _, p := range n.channels {
		switch {
		case !p.announcements.releasedHere || p.announcements.farewellLeft || !p.log.Known() || !p.log.Vacant():
		case now.Mono < n.succeedBy() && p.shard.claims.promised(n.members.takes):
			promised = true
		default:
			p.announcements.farewellLeft = true
			p.append(now, p.snapshot(now)...)
		}
	}
	if len(n.ready.Append) == 0 && !promised && (!claiming && !owing && t.farewells == 0 || n.waited(owing, now)) {
		n.ready.Finished = true
	}
}

// waited reports whether a closing process without roles has waited long enough.
func (n *Node) waited(owing bool, now clock.Instant) bool {
	since := now.Mono.Sub(n.timing.freeAt)
	if reading := now.Age(n.counts.read) < closeTail/4; owing && reading {
		return since >= closeLag
	}
	return since >= closeTail
}

// succeedBy is the time by which most successors have claimed.
func (n *Node) succeedBy() clock.Mono {
	return n.timing.freeAt.Add(max(headStart(2*n.timing.roundTrip()), n.timing.heirs))
}

// Busy reports whether this process holds, claims or releases anything. It ends closeTail after
// the last release.
func (n *Node) Busy(now clock.Instant) bool {
	for _, p := range n.shards {
		if under, _ := p.lease.Claiming(); under > 0 || p.holds.len() > 0 {
			return true
		}
	}
	return n.timing.farewells > 0 && now.Mono.Sub(n.timing.parted) < closeTail
}

// sayWaiting logs once, soon after the start, for how long this process claims nothing because of
// leases that it may not know of.
func (n *Node) sayWaiting(now clock.Instant) {
	t := &n.timing
	if t.waits || n.set.Observer || now.Mono.Sub(t.opened) < min(clock.SayWaiting(n.set.T), lookEvery/2) {
		return
	}
	longest := time.Duration(0)
	for _, p := range n.channels {
		if !p.begun {
			return
		}
		if at := p.log.FreshAt(); at != clock.Never && p.shard.localRoles() > 0 {
			longest = max(longest, at.Sub(now.Raw))
		}
	}
	if t.waits = true; longest > 0 {
		n.note(slog.LevelInfo, "waiting for the leases of others", "at_most", longest.Round(100*time.Millisecond))
	}
}
