package neli

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// arbiterBed is a lease arbiter of one partition with a clock of its own. It has a
// group, which says what the test says.
type arbiterBed struct {
	*leaseArbiter
	t    *testing.T
	log  *benchLog
	time instant
}

type silentGroup struct{}

func (silentGroup) run(ctx context.Context, _ func([]int, bool)) error {
	<-ctx.Done()
	return nil
}
func (silentGroup) join(bool) {}
func (silentGroup) close()    {}

func newArbiterBed(t *testing.T, cfg Config) *arbiterBed {
	t.Helper()
	cfg.LeaderGroupID = "bench"
	bed := &arbiterBed{t: t, log: &benchLog{}, time: instant{mono: time.Hour, wall: 2 * time.Hour}}
	bed.leaseArbiter = newLeaseArbiter(resolved(t, cfg), bed.log, silentGroup{}, func() instant { return bed.time },
		func(instant) bool { return true })
	bed.setUp(1)
	bed.posture = posture{roles: 1, contend: true}
	bed.take(logEntry{offset: 0, jump: true})
	return bed
}

// after lets time pass and returns what is sent then, but for Hellos.
func (bed *arbiterBed) after(d time.Duration) []record {
	bed.time = bed.time.add(d)
	bed.stepAll()
	return bed.log.sent(bed.t)
}

func (bed *arbiterBed) read(r record) {
	bed.take(logEntry{offset: bed.leases[0].read + 1, value: r.encode()})
}

// lead makes it nominated and the holder.
func (bed *arbiterBed) lead(t *testing.T) {
	t.Helper()
	bed.nominate([]int{0}, false)
	out := bed.after(bed.set.silence())
	require.Len(t, out, 1)
	require.Equal(t, kindClaim, out[0].kind)
	bed.read(out[0])
	require.Equal(t, int64(0), bed.leases[0].mine)
}

// When the group's session is lost, what is held stays; once that is gone, nothing
// new is claimed before the group nominates again.
func TestNothingNewIsClaimedAfterTheSessionIsLost(t *testing.T) {
	bed := newArbiterBed(t, Config{})
	bed.lead(t)
	bed.nominate(nil, true)
	bed.nominate(nil, true) // told twice
	out := bed.after(bed.set.every)
	require.Len(t, out, 1)
	require.Equal(t, kindBeat, out[0].kind, "what is held is kept")
	bed.read(out[0])
	require.Nil(t, bed.hands[0])

	bed.log.appended = nil
	out = bed.after(bed.set.timeout) // nothing was read for that long
	require.Len(t, out, 1)
	require.Equal(t, kindRelease, out[0].kind)
	bed.read(out[0])
	require.Equal(t, tokenNone, bed.leases[0].token)
	for range 10 {
		require.Empty(t, bed.after(bed.set.silence()), "claimed without a nomination")
	}
	bed.nominate(nil, true)
	require.Empty(t, bed.after(bed.set.silence()))

	bed.nominate([]int{0}, false)
	out = bed.after(0)
	require.Len(t, out, 1)
	require.Equal(t, kindClaim, out[0].kind)
}

// A completed assignment that leaves out what was kept over a lost session ends
// it in order; one that has it again goes on.
func TestWhatWasKeptOverALostSession(t *testing.T) {
	for _, again := range []bool{false, true} {
		bed := newArbiterBed(t, Config{})
		bed.lead(t)
		bed.collect()
		bed.nominate(nil, true)
		bed.after(bed.set.every)
		require.Nil(t, bed.hands[0])
		if again {
			bed.nominate([]int{0}, false)
			bed.after(0)
			require.Nil(t, bed.hands[0])
			continue
		}
		bed.nominate(nil, false)
		bed.after(0)
		require.NotNil(t, bed.hands[0])
		require.True(t, bed.hands[0].asked)
		require.Equal(t, ReasonUnassigned, bed.hands[0].why)
	}
}

// A Release is not stamped: it must not be taken for a round trip of two T.
func TestReleaseIsNoRoundTrip(t *testing.T) {
	bed := newArbiterBed(t, Config{HeartbeatTimeout: 400 * time.Millisecond})
	bed.lead(t)
	bed.nominate(nil, false)
	out := bed.after(0)
	require.Len(t, out, 1)
	require.Equal(t, kindRelease, out[0].kind)
	rtt := bed.tempo.rtt
	bed.time = bed.time.add(time.Millisecond)
	bed.read(out[0])
	require.Equal(t, rtt, bed.tempo.rtt)
}

// Every own Claim and Beat that comes back tells the round trip.
func TestRoundTripIsMeasured(t *testing.T) {
	for _, timeout := range []time.Duration{400 * time.Millisecond, 5 * time.Second} {
		bed := newArbiterBed(t, Config{HeartbeatTimeout: timeout})
		bed.lead(t)
		for pause := bed.set.every; bed.leases[0].seq < 100; pause = bed.set.every - 3*time.Millisecond {
			out := bed.after(pause)
			require.Len(t, out, 1)
			bed.time = bed.time.add(3 * time.Millisecond)
			bed.read(out[0])
			require.Equal(t, bed.time, bed.tempo.own)
		}
		require.InDelta(t, 3*time.Millisecond, bed.tempo.rtt, float64(time.Microsecond), "T %v", timeout)
	}
}

// Own Hellos are timed, but for calls and answers: these may be many at once.
func TestWhatIsSaidAsideIsNoRoundTrip(t *testing.T) {
	bed := newArbiterBed(t, Config{})
	bed.after(0)
	said := hello(bed.set.instance)
	said.group = bed.set.group
	before := bed.tempo.rtt
	for _, aside := range []func(*record){func(r *record) { r.to = "x" }, func(r *record) { r.read = 0 }} {
		r := said
		aside(&r)
		bed.time = bed.time.add(time.Millisecond)
		bed.read(r)
		require.Equal(t, before, bed.tempo.rtt)
	}
	bed.read(said)
	require.Less(t, bed.tempo.rtt, before)
}

// Who was unwilling between two Hellos says so in the next one, and a second later that
// it is over: the others would take it for steady otherwise.
func TestAMomentOfUnwillingnessIsSaid(t *testing.T) {
	bed := newArbiterBed(t, Config{Nomination: Open})
	bed.nom = nil
	hellos := func(d time.Duration) []record {
		bed.time = bed.time.add(d)
		bed.stepAll()
		return bed.log.hellos(t)
	}
	out := hellos(0)
	require.Len(t, out, 1)
	require.Nil(t, out[0].wants)
	bed.posture.unhealthy = true
	require.Empty(t, hellos(100*time.Millisecond), "two Hellos in a second")
	bed.posture.unhealthy = false
	require.Empty(t, hellos(100*time.Millisecond))
	for _, all := range []bool{false, true} {
		out = hellos(helloGap(1))
		require.Len(t, out, 1)
		require.Equal(t, all, out[0].wants == nil)
		require.Empty(t, hellos(time.Millisecond))
	}
}
