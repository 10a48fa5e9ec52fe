package leases

import (
	"maps"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/quorum"
	"github.com/stretchr/testify/require"
)

var at = clock.HourAnd // an instant after the beginning of a test

// kept is some leases, the time and the ends of their logs.
type kept struct {
	Leases
	traits Traits
	now    clock.Instant
	ends   []int64
}

// everyLeases runs a test for the leases of one log and for those of three small logs.
func everyLeases(t *testing.T, test func(*testing.T, *kept)) {
	const T = time.Second
	start := clock.Instant{Mono: clock.Mono(time.Hour), Wall: clock.Wall(time.Hour), Raw: clock.Raw(time.Hour)}
	t.Run("one log", func(t *testing.T) {
		test(t, &kept{NewOne(lease.Rules{Process: "a", Name: "a", T: T}, 0), OneTraits, start, make([]int64, 1)})
	})
	t.Run("three small logs", func(t *testing.T) {
		q := NewSmall(quorum.Rules{Logs: 3, Process: "a", Name: "a", T: T, Random: func(time.Duration) time.Duration { return 0 }})
		test(t, &kept{q, SmallTraits, start, make([]int64, 3)})
	})
}

func (k *kept) begin() {
	for log := range k.ends {
		k.Read(log, Entry{Partition: log, Reset: true, Whole: true}, nil, nil, k.now)
	}
}

func (k *kept) pass(d time.Duration) {
	k.now = k.now.Add(d)
	for log := range k.ends {
		k.Read(log, Entry{Partition: log, Alive: true}, nil, nil, k.now)
	}
}

func (k *kept) read(log int, r lease.Record) lease.Event {
	k.ends[log]++
	return k.Read(log, Entry{Offset: k.ends[log] - 1}, &r, nil, k.now).Event
}

// win lets this process win roles that nobody has held.
func (k *kept) win(t *testing.T, roles ...int32) {
	k.begin()
	k.pass(1100 * time.Millisecond)
	k.Tick(100, time.Millisecond, k.now)
	out := k.Contest(roles, k.now)
	require.Len(t, out, len(k.ends), "a Claim for each log")
	for _, o := range out {
		k.read(o.Log, o.Record)
	}
	k.Tick(100, time.Millisecond, k.now)
}

func TestLeasesReportATermThatBegins(t *testing.T) {
	everyLeases(t, func(t *testing.T, k *kept) {
		k.begin()
		require.False(t, k.Known(), "nothing was read")
		k.win(t, 0, 1)
		require.True(t, k.Known())
		changed := k.Changed()
		require.Subset(t, changed, []int32{0, 1})
		require.Empty(t, k.Changed(), "each change is reported once")
		for _, local := range []int32{0, 1} {
			term := k.Term(local, k.now)
			require.True(t, term.Led)
			token, _ := k.Leads(local, k.now)
			require.Equal(t, token, term.Token)
			require.NotZero(t, lines(k)[term.Line], "V of the line is published")
			require.True(t, k.Held(local, k.now))
			require.False(t, term.Vacant)
		}
		require.False(t, k.Held(2, k.now))
	})
}

func lines(k *kept) map[int]clock.Instant { return maps.Collect(k.Lines()) }

func TestLeasesBeatOnlyWhileHeld(t *testing.T) {
	everyLeases(t, func(t *testing.T, k *kept) {
		k.begin()
		for log := range k.ends {
			_, ok := k.Beat(log, k.now)
			require.False(t, ok, "nothing is held")
		}
		k.win(t, 0)
		for log := range k.ends {
			r, ok := k.Beat(log, k.now)
			require.True(t, ok)
			require.Equal(t, lease.Beat, r.Kind)
		}
	})
}

func TestLeasesThatLapseEnd(t *testing.T) {
	everyLeases(t, func(t *testing.T, k *kept) {
		k.win(t, 0)
		k.Changed()
		at := k.Due(k.now)
		require.LessOrEqual(t, at, k.now.Mono.Add(time.Second), "it is looked at when the lease is over")
		k.pass(1000 * time.Millisecond)
		done := k.Tick(100, time.Millisecond, k.now)
		require.NotEmpty(t, done.Out, "what was held is released")
		_, leads := k.Leads(0, k.now)
		require.False(t, leads)
		if !done.Lapsed {
			require.Contains(t, k.Changed(), int32(0), "the caller is told of all terms, or of each")
		}
	})
}

func TestLeasesOweAReleaseUntilItIsRead(t *testing.T) {
	everyLeases(t, func(t *testing.T, k *kept) {
		k.win(t, 0)
		k.Forget([]int32{0})
		require.True(t, k.Owing(k.now))
		for log := range k.ends {
			for _, r := range k.ReleaseOn(log, []int32{0}, k.now) {
				require.Equal(t, lease.Release, r.Kind)
				require.Equal(t, []int32{0}, k.read(log, r).Changed)
			}
		}
		require.False(t, k.Owing(k.now))
		require.Equal(t, []int32{0}, k.Free(1, k.now))
	})
}

// many reports whether these are leases of several logs.
func (k *kept) many() bool { return len(k.ends) > 1 }

func TestOnlyLeasesOnSeveralLogsOutlastALog(t *testing.T) {
	everyLeases(t, func(t *testing.T, k *kept) {
		k.win(t, 0)
		k.Changed()
		out := k.Read(0, Entry{Reset: true, Offset: 5, End: 5}, nil, nil, k.now)
		require.Equal(t, !k.many(), out.Void, "terms on several logs outlast one of them")
		_, leads := k.Leads(0, k.now)
		require.Equal(t, k.many(), leads)
	})
}

func TestLeasesReportAFoldLearntAnew(t *testing.T) {
	everyLeases(t, func(t *testing.T, k *kept) {
		k.begin()
		k.pass(1100 * time.Millisecond)
		k.Tick(100, time.Millisecond, k.now)
		for _, o := range k.Contest([]int32{0}, k.now) {
			k.ends[o.Log]++
			out := k.Read(o.Log, Entry{Offset: k.ends[o.Log] - 1}, &o.Record, nil, k.now)
			require.True(t, out.Known)
			require.Equal(t, !k.many(), out.Void, "of several logs the others were known before")
		}
		require.False(t, k.Read(0, Entry{Offset: k.ends[0]}, nil, lease.ErrForeign, k.now).Void, "a record that plays no part")
		out := k.Read(0, Entry{}, nil, lease.ErrForeign, k.now)
		require.True(t, out.Rewound)
		require.Equal(t, !k.many(), out.Void)
	})
}

func TestLeasesForgetAClaimThatFailed(t *testing.T) {
	everyLeases(t, func(t *testing.T, k *kept) {
		k.begin()
		require.Empty(t, k.Free(2, k.now), "nothing is known")
		k.pass(1100 * time.Millisecond)
		k.Tick(100, time.Millisecond, k.now)
		out := k.Contest([]int32{0}, k.now)
		require.NotEmpty(t, out)
		require.Empty(t, k.Contest([]int32{0}, k.now), "a Claim of it is in flight")
		k.Failed(0, &out[0].Record, k.now)
		k.Tick(100, time.Millisecond, k.now)
		if k.many() {
			require.Empty(t, k.Contest([]int32{0}, k.now), "each log claims again by itself, after a pause")
			return
		}
		require.NotEmpty(t, k.Contest([]int32{0}, k.now))
	})
}

func TestLeasesDistinguishOwnTerms(t *testing.T) {
	everyLeases(t, func(t *testing.T, k *kept) {
		k.win(t, 0)
		g, held := k.Holder(0)
		require.True(t, held)
		require.True(t, k.traits.Ours(g, "a", g.Token))
		require.Equal(t, g.Session, k.traits.As(lease.Session{Process: "a", N: g.Session.N}))
		require.Equal(t, !k.many(), k.traits.Earlier(0, 0, g.Token-1, g.Token), "its sender had not read as far")
		require.Equal(t, !k.many(), k.traits.Earlier(1, 0, g.Token, g.Token), "it is in another log")
		require.False(t, k.traits.Earlier(0, 0, g.Token, g.Token))
		for log := range k.ends {
			claim := lease.Record{Kind: lease.Claim, Session: lease.Session{Process: "b", N: 1}, Name: "b", Read: k.ends[log] - 1, Seq: 1,
				T: time.Second, Longest: lease.Unsaid, Roles: []int32{0}}
			k.read(log, claim)
		}
		g, held = k.Holder(0)
		require.True(t, held)
		require.Equal(t, "b", g.Session.Process)
		require.False(t, k.traits.Ours(g, "a", 0), "another one holds it")
	})
}

// from is a record of process b, which has read all there is of a log.
func (k *kept) from(log int, r lease.Record) lease.Record {
	r.Session, r.Name, r.T, r.Longest = lease.Session{Process: "b", N: 1}, "b", time.Second, lease.Unsaid
	r.Read, r.Seq = k.ends[log]-1, uint64(k.ends[log]+1)
	return r
}

// Turns grows if a record changes what leases say of any role. It does not grow by a Beat of a holder
// that is not silent.
func TestTurnsGrowsWithChanges(t *testing.T) {
	everyLeases(t, func(t *testing.T, k *kept) {
		turns := k.Turns()
		counted := func(yes bool, what string) {
			t.Helper()
			require.Equal(t, yes, k.Turns() > turns, what)
			turns = k.Turns()
		}
		k.win(t, 0)
		k.Changed()
		counted(true, "a role was won")
		for log := range k.ends {
			r, _ := k.Beat(log, k.now)
			k.read(log, r)
		}
		k.Tick(100, time.Millisecond, k.now)
		k.Changed()
		turns = k.Turns() // with several logs a term may begin with a Beat
		for log := range k.ends {
			r, _ := k.Beat(log, k.now)
			k.read(log, r)
			k.Read(log, Entry{Offset: k.ends[log]}, nil, lease.ErrForeign, k.now)
			k.ends[log]++
		}
		k.Tick(100, time.Millisecond, k.now)
		k.Changed()
		counted(false, "a holder is alive, and was")
		k.read(0, k.from(0, lease.Record{Kind: lease.Claim, Roles: []int32{5}}))
		counted(true, "another process has claimed a role")
		k.Read(0, Entry{Reset: true, Offset: 50, End: 50}, nil, nil, k.now)
		counted(true, "a log begins anew")
	})
}

// On small logs one log alone may delay a role, because of a process that holds nothing on most of
// them. Turns counts that, too.
func TestTurnsGrowsWithDelaysOnSmallLogs(t *testing.T) {
	everyLeases(t, func(t *testing.T, k *kept) {
		if !k.many() {
			return // on one log the bound for all roles shows it
		}
		k.win(t, 0)
		k.read(1, k.from(1, lease.Record{Kind: lease.Claim, Roles: []int32{5}}))
		k.Changed()
		turns := k.Turns()
		k.Read(0, Entry{Offset: k.ends[0]}, &lease.Record{}, lease.ErrNewer, k.now)
		k.ends[0]++
		require.Greater(t, k.Turns(), turns, "a newer version may hold it there")

		k.pass(990 * time.Millisecond)
		k.pass(990 * time.Millisecond)
		k.Tick(100, time.Millisecond, k.now)
		k.Changed()
		require.LessOrEqual(t, k.FreeAt(5), k.now.Raw)
		turns = k.Turns()
		k.read(1, k.from(1, lease.Record{Kind: lease.Beat}))
		require.Greater(t, k.Turns(), turns, "its holder on that log is alive")
		turns = k.Turns()
		k.read(1, k.from(1, lease.Record{Kind: lease.Beat}))
		require.Equal(t, turns, k.Turns(), "as it was")

		k.Read(2, Entry{Reset: true}, nil, nil, k.now)
		k.ends[2] = 0
		turns = k.Turns()
		k.pass(500 * time.Millisecond)
		k.read(2, k.from(2, lease.Record{Kind: lease.Hello, Hello: &lease.Announcement{}}))
		require.Equal(t, turns, k.Turns(), "a Hello is no evidence")
		k.pass(500 * time.Millisecond)
		k.read(2, k.from(2, lease.Record{Kind: lease.Beat}))
		require.Greater(t, k.Turns(), turns, "it may hold anything on a log of which nothing is known")
	})
}
