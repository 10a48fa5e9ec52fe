package elector

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/announce"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/quorum"
	"github.com/stretchr/testify/require"
)

// kept is the logs of some leases: what is made for a log is read back at once.
type kept struct {
	leases
	now  clock.Instant
	ends []int64
}

// everyLeases runs a test of what one log and three small ones have in common.
func everyLeases(t *testing.T, test func(*testing.T, *kept)) {
	const T = time.Second
	start := clock.Instant{Mono: clock.Mono(time.Hour), Wall: clock.Wall(time.Hour), Raw: clock.Raw(time.Hour)}
	t.Run("one log", func(t *testing.T) {
		l := lease.New(lease.Rules{Process: "a", Name: "a", T: T, History: announce.History})
		test(t, &kept{&oneLog{Lease: l, line: 0, t: T}, start, make([]int64, 1)})
	})
	t.Run("three small logs", func(t *testing.T) {
		q := quorum.New(quorum.Rules{Logs: 3, Process: "a", Name: "a", T: T, History: announce.History, Random: func(time.Duration) time.Duration { return 0 }})
		test(t, &kept{&majority{Lease: q}, start, make([]int64, 3)})
	})
}

func (k *kept) begin() {
	for log := range k.ends {
		k.Begin(log, Entry{Partition: log, Reset: true, Whole: true}, k.now)
	}
}

func (k *kept) pass(d time.Duration) {
	k.now = k.now.Add(d)
	for log := range k.ends {
		k.Answered(log, k.now)
	}
}

func (k *kept) read(log int, r lease.Record) lease.Event {
	k.ends[log]++
	ev, _ := k.Read(log, k.ends[log]-1, &r, nil, k.now)
	return ev
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
			token, line, ok := k.Term(local)
			require.True(t, ok)
			mine, _ := k.Mine(local)
			require.Equal(t, mine, token)
			require.Contains(t, lines(k), line, "V of the line is published")
			require.NotZero(t, k.V(line))
			require.True(t, k.Held(local, k.now))
			require.False(t, k.Vacant(local, k.now))
		}
		require.False(t, k.Held(2, k.now))
	})
}

func lines(k *kept) (all []int) {
	for line := range k.InUse() {
		all = append(all, line)
	}
	return all
}

func TestLeasesKeepAliveWhatIsHeld(t *testing.T) {
	everyLeases(t, func(t *testing.T, k *kept) {
		k.begin()
		for log := range k.ends {
			require.False(t, k.Keeps(log, false))
			_, ok := k.Beat(log, k.now)
			require.False(t, ok, "nothing is held")
		}
		k.win(t, 0)
		for log := range k.ends {
			require.True(t, k.Keeps(log, true))
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
		out, lapsed := k.Tick(100, time.Millisecond, k.now)
		require.NotEmpty(t, out, "what was held is released")
		_, leads := k.Leads(0, k.now)
		require.False(t, leads)
		if !lapsed {
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

// many tells that these are leases of several logs.
func (k *kept) many() bool { return len(k.ends) > 1 }

func TestLeasesAfterALogThatBeginsAnew(t *testing.T) {
	everyLeases(t, func(t *testing.T, k *kept) {
		k.win(t, 0)
		k.Changed()
		lost := k.Begin(0, Entry{Reset: true, Offset: 5, End: 5}, k.now)
		require.Equal(t, !k.many(), lost, "terms on several logs outlast one of them")
		_, leads := k.Leads(0, k.now)
		require.Equal(t, k.many(), leads)
	})
}

func TestLeasesSayWhatIsKnownAnew(t *testing.T) {
	everyLeases(t, func(t *testing.T, k *kept) {
		k.begin()
		k.pass(1100 * time.Millisecond)
		k.Tick(100, time.Millisecond, k.now)
		for _, o := range k.Contest([]int32{0}, k.now) {
			k.ends[o.Log]++
			ev, anew := k.Read(o.Log, k.ends[o.Log]-1, &o.Record, nil, k.now)
			require.True(t, ev.Known)
			require.Equal(t, !k.many(), anew, "of several logs the others were known before")
		}
		_, anew := k.Read(0, k.ends[0], nil, lease.ErrForeign, k.now)
		require.False(t, anew, "a record that plays no part")
		ev, anew := k.Read(0, 0, nil, lease.ErrForeign, k.now)
		require.True(t, ev.Rewound)
		require.Equal(t, !k.many(), anew)
	})
}

func TestLeasesHoldClaimsBack(t *testing.T) {
	everyLeases(t, func(t *testing.T, k *kept) {
		k.begin()
		require.Equal(t, k.many(), k.FreshAt() == clock.Never, "of several logs each is waited for by itself")
		require.Empty(t, k.Free(2, k.now), "nothing is known")
		k.pass(1100 * time.Millisecond)
		k.Tick(100, time.Millisecond, k.now)
		out := k.Contest([]int32{0}, k.now)
		require.NotEmpty(t, out)
		inFlight, _ := k.Claiming()
		require.NotZero(t, inFlight)
		require.Equal(t, !k.many(), k.Waits())
		again := k.Failed(0, &out[0].Record, k.now)
		require.False(t, k.Waits())
		if k.many() {
			require.Empty(t, again, "each log claims again by itself")
			return
		}
		require.Equal(t, []int32{0}, again)
		k.Contest([]int32{0}, k.now)
		require.True(t, k.Waits())
		k.GiveUp(k.now)
		require.False(t, k.Waits(), "it is decided, or lost")
	})
}

func TestLeasesTellTheOwnTermFromOthers(t *testing.T) {
	everyLeases(t, func(t *testing.T, k *kept) {
		k.win(t, 0)
		g, held := k.Holder(0)
		require.True(t, held)
		require.True(t, k.Ours(g, g.Token))
		require.Equal(t, !k.many(), k.Lapses(k.Session()), "on several logs each term lapses by itself")
		require.False(t, k.Lapses(lease.Session{Process: "b", N: 1}))
		require.Equal(t, !k.many(), k.Earlier(0, g.Token-1, g.Token), "its sender had not read as far")
		require.False(t, k.Earlier(0, g.Token, g.Token))
		require.Equal(t, k.many(), k.Reminds())
		require.False(t, k.Exhausted())
		for log := range k.ends {
			claim := lease.Record{Kind: lease.Claim, Session: lease.Session{Process: "b", N: 1}, Name: "b", Read: k.ends[log] - 1, Seq: 1,
				T: time.Second, Longest: lease.Unsaid, Roles: []int32{0}}
			k.read(log, claim)
		}
		g, held = k.Holder(0)
		require.True(t, held)
		require.Equal(t, "b", g.Session.Process)
		require.False(t, k.Ours(g, 0), "another one holds it")
	})
}
