package elector

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

// Restraint after an outage, and records that are repeated until they are read: without these rules a
// group that has lost its log for a while does not recover, or roles stay without a leader.

// since returns what a has appended of a kind since a time, whether or not it arrived.
func (a *actor) since(from time.Duration, k lease.Kind) (out []said) {
	for _, s := range a.said {
		if s.at >= from && s.Kind == k {
			out = append(out, s)
		}
	}
	return out
}

// pair starts a and b, which share a number of roles.
func pair(t *testing.T, roles int, change func(*Settings)) (w *world, a, b *actor) {
	t.Helper()
	w = newWorld(1)
	a, b = w.start("a", roles, change), w.start("b", roles, change)
	w.pass(20 * time.Second)
	require.Len(t, a.leads(roles), roles/2)
	require.Len(t, b.leads(roles), roles/2)
	return w, a, b
}

// While nothing comes back, a process has one Beat under way and one probe in each T, and claims nothing.
func TestNothingPilesUpWhileTheLogStandsStill(t *testing.T) {
	w, a, b := pair(t, 2, nil)
	from := w.now
	a.cut, b.cut = true, true
	w.pass(8 * time.Second)
	require.False(t, a.members.Suspected("b"), "the silence of a log that stood still says nothing of b")
	w.pass(7 * time.Second)
	require.Empty(t, a.leads(2))
	require.Len(t, a.since(from, lease.Beat), 1, "Beats")
	require.LessOrEqual(t, len(a.since(from, lease.Hello)), 3+3, "one probe in each T, and one announcement in each period")
	require.NotEmpty(t, a.since(from+6*time.Second, lease.Hello), "it asks whether the log is back")
	require.Empty(t, a.since(from, lease.Claim), "Claims")
}

// When the log is back, a process claims its own share first, after U(0, T/20). It claims another
// process's share T/2 later, because that process is on its way back, too.
func TestOwnShareFirstAfterAnOutage(t *testing.T) {
	w, a, b := pair(t, 4, func(s *Settings) { s.Random = func(d time.Duration) time.Duration { return max(0, d-1) } })
	before := a.leads(4)
	a.cut, b.cut = true, true
	w.pass(7 * time.Second) // not so long that they forget each other
	a.cut = false
	healed := w.now
	w.pass(8 * time.Second)
	var probe said
	for _, s := range a.said {
		if s.at >= healed && s.Kind == lease.Hello {
			probe = s
			break
		}
	}
	claims := a.since(healed, lease.Claim)
	require.NotEmpty(t, claims)
	first := claims[0]
	require.Len(t, first.Roles, 2, "its share only")
	for i, local := range first.Roles {
		require.Equal(t, before[i], int(local))
	}
	back := probe.at + 2*time.Millisecond
	require.GreaterOrEqual(t, first.at-back, 249*time.Millisecond, "after nearly T/20, as the dice said")
	require.LessOrEqual(t, first.at-back, 300*time.Millisecond)
	w.pass(6 * time.Second)
	require.Len(t, a.leads(4), 4)
	claims = a.since(healed, lease.Claim)
	require.Len(t, claims, 2)
	require.GreaterOrEqual(t, claims[1].at-back, 3700*time.Millisecond, "others' share T/2 and nearly T/4 later")
}

// All roles that are due are claimed by one Claim.
func TestOneClaimCarriesAllDueRoles(t *testing.T) {
	w, a, b := pair(t, 300, nil)
	from := w.now
	b.dead = true
	w.pass(8 * time.Second)
	require.Len(t, a.leads(300), 300)
	claims := a.since(from, lease.Claim)
	require.Len(t, claims, 1)
	require.Len(t, claims[0].Roles, 150)
}

// Claims that the log reports as failed are made again after pauses that double, though the log works otherwise.
func TestFailedClaimsAreFurtherAndFurtherApart(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 1, nil)
	w.pass(5 * time.Second)
	var failed []lease.Record
	a.caught = &failed
	var last time.Duration
	for k := range 6 {
		for len(failed) == k {
			require.Less(t, w.now, 3*time.Minute, "it claims again")
			w.pass(time.Millisecond)
		}
		if k > 0 {
			require.GreaterOrEqual(t, w.now-last, a.set.T/16<<k, "after %d failures", k)
		}
		last = w.now
		a.do(func(now clock.Instant) { a.Acked(Append{Partition: 0, Record: failed[k]}, errors.New("refused"), now) })
	}
}

// If Claims do not come back on many partitions, one line is logged in ten seconds, not one for each partition.
func TestStallLogsOneLineForAllPartitions(t *testing.T) {
	w := newWorld(50)
	a := w.start("a", 50, nil)
	w.pass(5 * time.Second)
	a.holdBack()
	w.pass(time.Minute)
	lines := 0
	for _, n := range a.notes {
		if n.Level >= slog.LevelWarn {
			lines++
		}
	}
	require.Positive(t, lines)
	require.LessOrEqual(t, lines, 60/10)
}

// If a Claim was in flight when the process stepped down, its roles are given back at once, and never led.
func TestUnwantedClaimIsReleasedAtOnce(t *testing.T) {
	w, a, late := stepsDownWhileItClaims(t)
	a.release(late)
	require.Empty(t, a.leads(1), "what is not wanted any more is not led")
	w.pass(10 * time.Millisecond)
	require.NotEmpty(t, w.sent(0, "a", lease.Release), "it gives back what the Claim has brought")
}

// A process that is willing again claims vacant roles at once.
func TestProcessWillingAgainClaimsAtOnce(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 1, nil)
	w.pass(6 * time.Second)
	d := a.desired
	d.Away = w.instant().Mono.Add(12 * time.Second)
	a.want(d)
	w.pass(11900 * time.Millisecond)
	require.Empty(t, a.leads(1))
	w.pass(150 * time.Millisecond)
	require.Len(t, a.leads(1), 1, "within round trips")
}

// Processes that start together on a log where nobody holds anything wait for each other's Hellos,
// and then each claims its share, once.
func TestProcessesThatStartTogetherShareAtOnce(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 6, nil)
	w.pass(6 * time.Second)
	d := a.desired
	d.Closing = true
	a.want(d)
	w.pass(100 * time.Millisecond)
	var started []*actor
	for _, name := range []string{"x", "y", "z"} {
		started = append(started, w.start(name, 6, nil))
	}
	w.pass(500 * time.Millisecond)
	for _, x := range started {
		claims := x.since(0, lease.Claim)
		require.Len(t, claims, 1, x.set.Name)
		require.Len(t, claims[0].Roles, 2, "its share")
		require.Len(t, x.leads(6), 2)
	}
}

// A Beat that is due within a quarter of the interval goes out when another's is read, so
// that one wake-up of everybody does for both.
func TestBeatsGoOutInUnison(t *testing.T) {
	w, a, b := pair(t, 2, nil)
	for _, c := range []struct {
		apart    time.Duration
		together bool
	}{{200 * time.Millisecond, true}, {300 * time.Millisecond, false}} {
		b.channels[0].BeatAt = a.channels[0].BeatAt.Add(c.apart)
		w.pass(2 * b.set.HeartbeatInterval)
		as, bs := a.since(0, lease.Beat), b.since(0, lease.Beat)
		gap := bs[len(bs)-1].at - as[len(as)-1].at
		require.Equal(t, c.together, gap >= 0 && gap <= 2*time.Millisecond, "%v apart they were, and are %v", c.apart, gap)
	}
}

// A Release that is lost is sent again within T/4 or so: until it is read, or W(T) is over,
// nobody may claim the role.
func TestALostReleaseIsSentAgain(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 1, func(s *Settings) { s.Rebalance = false })
	w.pass(6 * time.Second)
	b := w.start("b", 1, func(s *Settings) { s.Rebalance = false })
	w.pass(6 * time.Second)
	a.do(func(now clock.Instant) { _, err := a.Transfer(0, "b", now); require.NoError(t, err) })
	w.pass(3 * time.Millisecond) // the Ping has gone out
	a.cut = true
	w.pass(10 * time.Millisecond)
	require.Empty(t, a.leads(1))
	lost := a.since(w.now-10*time.Millisecond, lease.Release)
	require.Len(t, lost, 1)
	a.cut = false
	a.do(func(now clock.Instant) {
		a.Acked(Append{Partition: 0, Record: lost[0].Record}, errors.New("timed out"), now)
	})
	w.pass(a.set.T/4 + 50*time.Millisecond)
	require.NotEmpty(t, w.sent(0, "a", lease.Release), "it is sent again")
	require.Equal(t, 1, len(a.leads(1))+len(b.leads(1)), "and somebody leads")
}

// The last process to close leaves a Snapshot. So the next process to start knows that nobody holds
// anything, and claims within round trips.
func TestLastToCloseLeavesASnapshot(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 2, nil)
	w.pass(6 * time.Second)
	d := a.desired
	d.Closing = true
	a.want(d)
	w.pass(100 * time.Millisecond)
	require.True(t, a.dead, "it has finished")
	w.head = 3 // without the first Claim
	b := w.start("b", 2, nil)
	w.pass(300 * time.Millisecond)
	require.Len(t, b.leads(2), 2, "within round trips")
}

// A closing process leaves no Snapshot if its successor claims: the Claim would have to wait for the
// Snapshot. If the successor does not claim, the closing process leaves one.
func TestClosingWithASuccessorLeavesNoSnapshot(t *testing.T) {
	for name, comes := range map[string]bool{"it comes": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(1)
			a := w.start("a", 2, nil)
			w.pass(21 * time.Second) // the group is no longer young
			b := w.start("b", 2, nil)
			w.pass(10 * time.Second)
			w.drop = func(r *lease.Record) bool { return !comes && r.Kind == lease.Claim }
			before := len(w.sent(0, "a", lease.Snapshot))
			d := a.desired
			d.Closing = true
			a.want(d)
			w.pass(time.Second)
			require.True(t, a.dead, "it has finished")
			left := w.sent(0, "a", lease.Snapshot)[before:]
			if comes {
				require.Len(t, b.leads(2), 2)
				require.Empty(t, left, "it would be in the way")
			} else {
				require.Len(t, left, 1, "nobody holds anything")
			}
		})
	}
}

// Assigning many roles takes long, so there is a pause after it.
func TestManyRolesAreRarelySharedOut(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 100_000, nil)
	w.pass(8 * time.Second)
	p := a.shards[0]
	a.do(func(now clock.Instant) {
		p.assign([]int32{1}, a.in(), now)
		p.assign([]int32{2}, a.in(), now)
		what, when, _ := p.claims.Planned(2)
		require.Equal(t, vacancy.ToAssign, what)
		require.Equal(t, now.Mono.Add(1250*time.Microsecond), when, "an eighth of 100,000 roles × 2 members × 50 ns")
	})
}

// A process that was cut off claims its share as soon as it knows that the log works, even if its
// probe took so long that it is behind. Nor must it put its share off when the wait for others is over.
func TestOwnShareAtOnceAfterAStall(t *testing.T) {
	w, a, b := pair(t, 4, nil)
	a.cut, b.cut = true, true
	w.pass(7 * time.Second)
	w.lag = 400 * time.Millisecond
	a.cut = false
	healed := w.now
	w.pass(12 * time.Second)
	probe := a.since(healed, lease.Hello)[0].at
	works := probe + w.lag + 2*time.Millisecond
	require.LessOrEqual(t, a.since(healed, lease.Claim)[0].at-works, 300*time.Millisecond, "its share waits")
}

// The only survivor soon leads all roles, even if its round trips vary around T/4, so that its log
// seems to stand still now and then.
func TestSurvivorLeadsAllDespiteVaryingRoundTrips(t *testing.T) {
	w := newWorld(1)
	a, b, c := w.start("a", 9, nil), w.start("b", 9, nil), w.start("c", 9, nil)
	w.pass(90 * time.Second)
	require.Len(t, a.leads(9), 3)
	lags := []time.Duration{time.Second, 1400 * time.Millisecond, 900 * time.Millisecond}
	var vary func(i int)
	vary = func(i int) {
		w.lag = lags[i%len(lags)]
		w.after(1130*time.Millisecond, func() { vary(i + 1) })
	}
	vary(0)
	w.pass(10 * time.Second)
	b.dead, c.dead = true, true
	w.pass(30 * time.Second)
	require.Len(t, a.leads(9), 9)
}

// An application that rarely calls Pulse learns of its terms late. Until then its roles are not handed
// over; afterwards they are.
func TestUntoldTermsAreHandedOverLater(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 4, nil)
	a.unasked = true
	w.pass(8 * time.Second)
	b := w.start("b", 4, nil)
	w.pass(25 * time.Second)
	require.Empty(t, b.leads(4))
	a.unasked = false
	a.do(a.Tick)
	w.pass(time.Minute)
	require.Len(t, b.leads(4), 2)
}
