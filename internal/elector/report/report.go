// Package report says which trouble with records is logged, and how often.
package report

import (
	"errors"
	"log/slog"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/leases"
	"github.com/goneli/neli/internal/lease"
)

// Reports decides which trouble with records is logged. Repeated trouble must not fill the log:
// each kind of odd record is logged once, everything else at most once in ten seconds.
type Reports struct {
	malformed, newer, copied, spent           bool
	resets, lost, claims                      limiter
	contradictions, confirmed, outvoted, tied limiter
}

// limiter lets one line in ten seconds pass.
type limiter struct {
	next clock.Mono
}

// due reports whether another line may be logged.
func (l *limiter) due(now clock.Instant) bool {
	if now.Mono < l.next {
		return false
	}
	l.next = now.Mono.Add(10 * time.Second)
	return true
}

// line returns a line, or nothing if the limiter stops it.
func (l *limiter) line(now clock.Instant, level slog.Level, text string, args ...any) []Note {
	if !l.due(now) {
		return nil
	}
	return []Note{{level, text, args}}
}

func once(said *bool, level slog.Level, text string, args ...any) []Note {
	if *said {
		return nil
	}
	*said = true
	return []Note{{level, text, args}}
}

// Skipped reports a skipped record, unless it is another group's, or was in flight to a small log when
// the log's incarnation ended.
func (r *Reports) Skipped(bad error, e leases.Entry) []Note {
	switch {
	case errors.Is(bad, lease.ErrForeign):
		return nil
	case errors.Is(bad, lease.ErrOtherLog):
		if e.ID != "" {
			return nil
		}
		return once(&r.copied, slog.LevelWarn, "skipping records of another topic; logged once", "partition", e.Partition, "offset", e.Offset)
	case errors.Is(bad, lease.ErrNewer):
		return once(&r.newer, slog.LevelWarn, "records of a newer version read: claiming nothing for about a minute after the newest",
			"partition", e.Partition, "offset", e.Offset)
	}
	return once(&r.malformed, slog.LevelWarn, "skipping malformed records; logged once", "partition", e.Partition, "offset", e.Offset, "error", bad)
}

// Rewound reports a log that went back or contradicts what this process has read; resets is Counters.LogResets.
func (r *Reports) Rewound(ev lease.Event, partition int, offset int64, resets uint64, now clock.Instant) []Note {
	switch {
	case ev.Outvoted:
		return r.outvoted.line(now, slog.LevelError, "own state contradicts that of most others: rejoining", "partition", partition, "offset", offset)
	case ev.Tied:
		return r.tied.line(now, slog.LevelError, "own state is contradicted, and as many have another one: rejoining, and not believing their snapshots for now",
			"partition", partition, "offset", offset)
	case ev.Missing > 0:
		return r.lost.line(now, slog.LevelWarn, "records of a small log were lost on their way: rejoining",
			"log", partition, "offset", offset, "missing", ev.Missing, "resets", resets)
	}
	return r.resets.line(now, slog.LevelWarn, "leader log rewound: rejoining", "partition", partition, "offset", offset, "resets", resets)
}

// Exhausted reports that an entry has used up the ballots.
func (r *Reports) Exhausted(e leases.Entry) []Note {
	return once(&r.spent, slog.LevelError, "ballots of the small logs are used up: no term can begin any more", "log", e.Partition, "offset", e.Offset)
}

// Doubt reports a record of a process that has another fold, or that Snapshots have confirmed the own one.
func (r *Reports) Doubt(ev lease.Event, partition int, offset int64, rec *lease.Record, process, name string, now clock.Instant) (notes []Note) {
	if ev.Differs {
		notes = r.contradictions.line(now, slog.LevelError, "state of another process contradicts the own one: snapshots of all will tell who has to rejoin",
			"partition", partition, "offset", offset, "by_name", name, "process", process, "record", rec.Kind)
	}
	if ev.Confirmed {
		notes = append(notes, r.confirmed.line(now, slog.LevelError, "own state is confirmed by others: the process that contradicts it has to rejoin",
			"partition", partition, "offset", offset, "by_name", name, "process", process)...)
	}
	return notes
}

// GivenUp reports Claims on a partition that did not come back. One line is enough if all partitions stand still.
func (r *Reports) GivenUp(partition int, after time.Duration, now clock.Instant) []Note {
	return r.claims.line(now, slog.LevelWarn, "claim did not come back: given up", "partition", partition, "after", after)
}

// Note is a line for the log file, which the caller writes without a lock.
type Note struct {
	Level slog.Level
	Text  string
	Args  []any
}
