package elector

import (
	"log/slog"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// Ready is what the caller of a Node has to do: first of all append, without holding
// anybody up. In which order records reach the log does not matter.
type Ready struct {
	Append    []Append
	Notes     []Note
	Outcomes  []Outcome
	Verify    bool          // the log may be another one by now
	Back      []int         // logs of which reading is to begin again, farther back
	Join      bool          // whether to take part in the nominator's group
	Changed   bool          // what others are told of holders has changed
	Requested bool          // there is a request for the application
	Finished  bool          // closing, and there is nothing more to wait for
	WakeIn    time.Duration // Tick is due then, if nothing happens before
}

// Append is a record on its way to a log.
type Append struct {
	Partition int
	ID        string // of the incarnation of a small log
	Record    lease.Record
}

// Note is a line for the log: it is written by the caller, without a lock.
type Note struct {
	Level slog.Level
	Text  string
	Args  []any
}

// lookEvery is how often a Node looks at itself when nothing else wakes it: it bounds
// how late a hung application is noticed.
const lookEvery = time.Second

// Ready returns what there is to do and begins a new list.
func (n *Node) Ready(now clock.Instant) Ready {
	n.correspond(now)
	r := n.ready
	n.ready = Ready{}
	r.Join = n.joins(now)
	r.WakeIn = n.wakeIn(now)
	return r
}

func (k *common) note(level slog.Level, text string, args ...any) {
	k.ready.Notes = append(k.ready.Notes, Note{level, text, args})
}

func (k *common) tell(notes []Note) { k.ready.Notes = append(k.ready.Notes, notes...) }

// wakeIn is how long nothing will be due, if nothing happens.
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
