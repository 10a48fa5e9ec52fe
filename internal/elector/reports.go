package elector

import (
	"errors"
	"log/slog"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// reports decides what the log is told of trouble in the records. Trouble that repeats must
// not fill the log: each kind of odd record is told of once, all else once in ten seconds.
type reports struct {
	malformed, newer, copied                  bool
	resets, lost, claims                      limiter
	contradictions, confirmed, outvoted, tied limiter
}

// limiter lets one line in ten seconds pass.
type limiter struct {
	next clock.Mono
}

// due reports whether it is time for another line.
func (l *limiter) due(now clock.Instant) bool {
	if now.Mono < l.next {
		return false
	}
	l.next = now.Mono.Add(10 * time.Second)
	return true
}

// line returns a line if the limiter lets it pass.
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

// skipped tells of a record that plays no part. That of another incarnation of a small log was
// on its way when that went.
func (r *reports) skipped(bad error, e Entry) []Note {
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

// rewound tells of a log that went back or contradicts what is known of it; resets counts how
// often logs did.
func (r *reports) rewound(ev lease.Event, partition int, offset int64, resets uint64, now clock.Instant) []Note {
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

// contradicted tells of a record that shows that another process has another fold.
func (r *reports) contradicted(partition int, offset int64, rec *lease.Record, name string, now clock.Instant) []Note {
	return r.contradictions.line(now, slog.LevelError, "state of another process contradicts the own one: snapshots of all will tell who has to rejoin",
		"partition", partition, "offset", offset, "by_name", name, "process", rec.Session.Process, "record", rec.Kind)
}

// confirm tells that the Snapshots of others have shown that the own fold is right.
func (r *reports) confirm(partition int, offset int64, process, name string, now clock.Instant) []Note {
	return r.confirmed.line(now, slog.LevelError, "own state is confirmed by others: the process that contradicts it has to rejoin",
		"partition", partition, "offset", offset, "by_name", name, "process", process)
}
