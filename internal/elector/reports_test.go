package elector

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Of trouble that goes on, with each record or each rejoining, one line in ten seconds is
// logged for each kind, and the first one at once.
func TestTroubleThatRepeatsIsToldOnceInAWhile(t *testing.T) {
	rec := &lease.Record{Kind: lease.Beat, Session: lease.Session{Process: "p"}}
	for _, c := range []struct {
		level slog.Level
		text  string
		of    func(*reports, clock.Instant) []Note
	}{
		{slog.LevelError, "most others", func(r *reports, now clock.Instant) []Note {
			return r.rewound(lease.Event{Outvoted: true}, 1, 2, 3, now)
		}},
		{slog.LevelError, "as many have another one", func(r *reports, now clock.Instant) []Note {
			return r.rewound(lease.Event{Tied: true}, 1, 2, 3, now)
		}},
		{slog.LevelWarn, "lost on their way", func(r *reports, now clock.Instant) []Note {
			return r.rewound(lease.Event{Missing: 4}, 1, 2, 3, now)
		}},
		{slog.LevelWarn, "log rewound", func(r *reports, now clock.Instant) []Note {
			return r.rewound(lease.Event{Rewound: true}, 1, 2, 3, now)
		}},
		{slog.LevelError, "contradicts the own one", func(r *reports, now clock.Instant) []Note {
			return r.contradicted(1, 2, rec, "b", now)
		}},
		{slog.LevelError, "confirmed by others", func(r *reports, now clock.Instant) []Note {
			return r.confirm(1, 2, "p", "b", now)
		}},
	} {
		t.Run(c.text, func(t *testing.T) {
			r, lines := &reports{}, 0
			for s := range 30 {
				for range 100 {
					notes := c.of(r, at(time.Duration(s)*time.Second))
					lines += len(notes)
					require.Equal(t, min(len(notes), s/10+1-(lines-len(notes))), len(notes))
					for _, n := range notes {
						require.Equal(t, c.level, n.Level)
						require.Contains(t, n.Text, c.text)
						require.Contains(t, n.Args, int64(2))
					}
				}
			}
			require.Equal(t, 3, lines)
		})
	}
}

// One kind of trouble does not hide another.
func TestTroubleHidesNoOther(t *testing.T) {
	r := &reports{}
	require.Len(t, r.rewound(lease.Event{Rewound: true}, 0, 0, 1, at(0)), 1)
	require.Len(t, r.rewound(lease.Event{Outvoted: true}, 0, 0, 1, at(0)), 1)
	require.Len(t, r.rewound(lease.Event{Tied: true}, 0, 0, 1, at(0)), 1)
	require.Len(t, r.rewound(lease.Event{Missing: 1}, 0, 0, 1, at(0)), 1)
	require.Len(t, r.confirm(0, 0, "p", "", at(0)), 1)
}

// Each kind of odd record is told of once, and all are counted.
func TestOddRecords(t *testing.T) {
	r, c := &reports{}, &counts{}
	for _, odd := range []struct {
		err  error
		text string
	}{
		{lease.ErrForeign, ""},
		{lease.ErrOtherLog, "another topic"},
		{lease.ErrNewer, "newer version"},
		{errors.New("too short"), "malformed"},
	} {
		var lines []string
		for range 5 {
			c.skipped(odd.err)
			for _, n := range r.skipped(odd.err, Entry{Partition: 1, Offset: 2}) {
				lines = append(lines, n.Text)
			}
		}
		if odd.text == "" {
			require.Empty(t, lines)
			continue
		}
		require.Len(t, lines, 1)
		require.Contains(t, lines[0], odd.text)
	}
	require.Equal(t, [3]uint64{10, 5, 5}, [3]uint64{c.Foreign, c.Newer, c.Malformed})
	require.Empty(t, (&reports{}).skipped(lease.ErrOtherLog, Entry{Partition: 1, ID: "x", Offset: 2}), "on small logs it was on its way to an incarnation that is gone")
}

// Roles become vacant and are won in any order, R changes, time passes: what is counted is
// what a naive count finds.
func TestVacancyStatsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := newRooms(1, 12, nil)
		k.begin()
		k.counts = counts{}
		v, c := &k.shards[0].vacancyStats, &k.counts.Counters
		v.spans = spans{}
		naive, below, now := map[int32]time.Duration{}, int32(8), time.Second
		leaderless, lasted, won := 0.0, 0.0, uint64(0)
		roles := rapid.SliceOfNDistinct(rapid.Int32Range(0, 11), 0, 6, func(r int32) int32 { return r })
		v.account(0, false, c, at(now))
		t.Repeat(map[string]func(*rapid.T){
			"vacated": func(t *rapid.T) {
				some := roles.Draw(t, "roles")
				number := v.open(at(now).Raw, at(now).Raw)
				for _, r := range some {
					v.vacated(r, below, number)
					if _, is := naive[r]; !is && r < below {
						naive[r] = now
					}
				}
				v.close(number)
			},
			"occupied": func(t *rapid.T) {
				some := roles.Draw(t, "roles")
				over := endedSpans{v: v, now: at(now)}
				for _, r := range some {
					if number := v.occupied(r); number != 0 {
						over.add(number)
					}
					if since, is := naive[r]; is {
						won++
						lasted += (now - since).Seconds()
						delete(naive, r)
					}
				}
				over.count()
			},
			"resize": func(t *rapid.T) {
				below = rapid.Int32Range(0, 12).Draw(t, "below")
				v.resize(int(below))
				for r := range naive {
					if r >= below {
						delete(naive, r)
					}
				}
			},
			"free": func(*rapid.T) { v.free() },
			"time": func(t *rapid.T) {
				d := time.Duration(rapid.IntRange(1, 9).Draw(t, "s")) * time.Second
				now += d
				leaderless += d.Seconds() * float64(len(naive))
				v.account(0, false, c, at(now))
			},
			"": func(t *rapid.T) {
				if v.count != len(naive) || c.Vacancies.Count != won || c.Leaderless != leaderless || c.Vacancies.Sum != lasted {
					t.Fatalf("%d vacant, %d won after %v s, %v s; should be %d, %d after %v s, %v s", v.count, c.Vacancies.Count, c.Vacancies.Sum, c.Leaderless,
						len(naive), won, lasted, leaderless)
				}
				if used := len(v.list) - len(v.unused); used > len(naive) {
					t.Fatalf("%d spans for %d vacant roles", used, len(naive))
				}
			},
		})
	})
}

// What a newer version may hold is not counted as vacant for that time.
func TestANewerVersionMayHoldWhatIsVacant(t *testing.T) {
	v, c := &spans{}, &Counters{}
	v.account(0, false, c, at(0))
	number := v.open(at(0).Raw, at(0).Raw)
	v.vacated(0, 2, number)
	v.vacated(1, 2, number)
	v.account(at(3*time.Second).Raw, false, c, at(2*time.Second))
	require.Zero(t, c.Leaderless)
	v.account(at(3*time.Second).Raw, false, c, at(5*time.Second))
	require.InDelta(t, 4, c.Leaderless, 1e-9)
}
