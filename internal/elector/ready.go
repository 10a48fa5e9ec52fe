package elector

import (
	"errors"
	"log/slog"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// Ready is what the caller of a Node has to do: first of all to append, without delay. The order
// in which records reach the log does not matter.
type Ready struct {
	Append    []Append
	Notes     []Note
	Outcomes  []Outcome
	Verify    bool          // check whether the log is still the same
	Back      []int         // logs to read again from farther back
	Join      bool          // take part in the nominator's group
	Changed   bool          // Holder, Watch, Members or Busy may answer differently
	Requested bool          // there is a request for the application
	Finished  bool          // closing is complete
	WakeIn    time.Duration // Tick is due after this time, if nothing happens before
}

// Append is a record to be appended.
type Append struct {
	Partition int
	ID        string // of the incarnation of a small log
	Record    lease.Record
}

// Note is a line for the log file, which the caller writes without a lock.
type Note struct {
	Level slog.Level
	Text  string
	Args  []any
}

// lookEvery is the longest time between two Ticks. It limits how late a hung application is
// noticed.
const lookEvery = time.Second

// Ready returns what there is to do, and begins a new list.
func (n *Node) Ready(now clock.Instant) Ready {
	n.correspond(now)
	r := n.ready
	n.ready = Ready{}
	r.Changed = n.changed(now)
	r.Join = n.joins(now)
	r.WakeIn = n.wakeIn(now)
	return r
}

func (k *common) note(level slog.Level, text string, args ...any) {
	k.ready.Notes = append(k.ready.Notes, Note{level, text, args})
}

func (k *common) tell(notes []Note) { k.ready.Notes = append(k.ready.Notes, notes...) }

// wakeIn returns the time until the next Tick is due.
func (n *Node) wakeIn(now clock.Instant) time.Duration {
	next := lookEvery
	if len(n.shards) == 0 {
		return next
	}
	next = min(next, n.mover.lookAt.Sub(now.Mono))
	if !n.set.Observer && !n.announcer.over() {
		next = min(next, n.announceDue(now).Sub(now.Mono))
	}
	next = min(next, n.requests.due().Sub(now.Mono))
	if n.desired.Away > now.Mono {
		next = min(next, n.desired.Away.Sub(now.Mono))
	}
	if by := n.succeedBy(); n.timing.freeAt != 0 && now.Mono < by {
		next = min(next, by.Sub(now.Mono))
	}
	for _, p := range n.shards {
		next = min(next, p.dueAt.Sub(now.Mono))
	}
	next = max(next, 100*time.Microsecond)
	n.timing.due = now.Mono.Add(next)
	return next
}

// reports decides which trouble with records is logged. Repeated trouble must not fill the log:
// each kind of odd record is logged once, everything else at most once in ten seconds.
type reports struct {
	malformed, newer, copied                  bool
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

// skipped reports a skipped record. A record of another incarnation of a small log was in flight
// when that incarnation ended, and is not reported.
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

// rewound reports a log that went back or contradicts what this process has read; resets is how
// often logs did so.
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

// contradicted reports a record whose sender has another fold.
func (r *reports) contradicted(partition int, offset int64, rec *lease.Record, name string, now clock.Instant) []Note {
	return r.contradictions.line(now, slog.LevelError, "state of another process contradicts the own one: snapshots of all will tell who has to rejoin",
		"partition", partition, "offset", offset, "by_name", name, "process", rec.Session.Process, "record", rec.Kind)
}

// confirm reports that the Snapshots of others have confirmed this process's fold.
func (r *reports) confirm(partition int, offset int64, process, name string, now clock.Instant) []Note {
	return r.confirmed.line(now, slog.LevelError, "own state is confirmed by others: the process that contradicts it has to rejoin",
		"partition", partition, "offset", offset, "by_name", name, "process", process)
}
