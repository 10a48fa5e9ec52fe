package report

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/leases"
	"github.com/goneli/neli/internal/elector/stats"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

var at = clock.HourAnd // an instant after the beginning of a test

// If trouble repeats with each record or each rejoining, one line in ten seconds is logged for each
// kind, and the first one at once.
func TestRepeatedTroubleIsLoggedOnceInAWhile(t *testing.T) {
	rec := &lease.Record{Kind: lease.Beat, Session: lease.Session{Process: "p"}}
	for _, c := range []struct {
		level slog.Level
		text  string
		of    func(*Reports, clock.Instant) []Note
	}{
		{slog.LevelError, "most others", func(r *Reports, now clock.Instant) []Note {
			return r.Rewound(lease.Event{Outvoted: true}, 1, 2, 3, now)
		}},
		{slog.LevelError, "as many have another one", func(r *Reports, now clock.Instant) []Note {
			return r.Rewound(lease.Event{Tied: true}, 1, 2, 3, now)
		}},
		{slog.LevelWarn, "lost on their way", func(r *Reports, now clock.Instant) []Note {
			return r.Rewound(lease.Event{Missing: 4}, 1, 2, 3, now)
		}},
		{slog.LevelWarn, "log rewound", func(r *Reports, now clock.Instant) []Note {
			return r.Rewound(lease.Event{Rewound: true}, 1, 2, 3, now)
		}},
		{slog.LevelError, "contradicts the own one", func(r *Reports, now clock.Instant) []Note {
			return r.Doubt(lease.Event{Differs: true}, 1, 2, rec, "p", "b", now)
		}},
		{slog.LevelError, "confirmed by others", func(r *Reports, now clock.Instant) []Note {
			return r.Doubt(lease.Event{Confirmed: true}, 1, 2, rec, "p", "b", now)
		}},
	} {
		t.Run(c.text, func(t *testing.T) {
			r, lines := &Reports{}, 0
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
func TestTroubleDoesNotHideOtherKinds(t *testing.T) {
	r := &Reports{}
	require.Len(t, r.Rewound(lease.Event{Rewound: true}, 0, 0, 1, at(0)), 1)
	require.Len(t, r.Rewound(lease.Event{Outvoted: true}, 0, 0, 1, at(0)), 1)
	require.Len(t, r.Rewound(lease.Event{Tied: true}, 0, 0, 1, at(0)), 1)
	require.Len(t, r.Rewound(lease.Event{Missing: 1}, 0, 0, 1, at(0)), 1)
	require.Len(t, r.Doubt(lease.Event{Confirmed: true}, 0, 0, nil, "p", "", at(0)), 1)
}

// Each kind of odd record is logged once, and all are counted.
func TestOddRecords(t *testing.T) {
	r, c := &Reports{}, &stats.Counters{}
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
			c.Skipped(odd.err)
			for _, n := range r.Skipped(odd.err, leases.Entry{Partition: 1, Offset: 2}) {
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
	require.Empty(t, (&Reports{}).Skipped(lease.ErrOtherLog, leases.Entry{Partition: 1, ID: "x", Offset: 2}), "on small logs it was on its way to an incarnation that is gone")
}
