// Package pace knows when a Node opened its logs, last verified them, and is to tick.
package pace

import (
	"time"

	"github.com/goneli/neli/internal/clock"
)

// Timing is when a Node opened its logs, last verified them, and is to tick.
type Timing struct {
	asked  clock.Instant // when the log was last verified
	due    clock.Mono    // when Tick is due
	opened clock.Mono    // when the logs were opened
	waits  bool          // it was checked whether this process waits for leases of others
}

// Late reports whether a step is late. A process that was suspended may not know yet that its
// session is over and others have its partitions: for a while it must not announce what it wants.
func (t *Timing) Late(now clock.Instant) bool {
	return t.due != 0 && now.Mono.Sub(t.due) > time.Second
}

// Open notes that the logs were opened, and OpenFor is for how long they have been.
func (t *Timing) Open(now clock.Instant)                  { t.opened = now.Mono }
func (t *Timing) OpenFor(now clock.Instant) time.Duration { return now.Mono.Sub(t.opened) }

// Next notes when Tick is due.
func (t *Timing) Next(at clock.Mono) { t.due = at }

// Asks reports whether the log is to be verified, since nothing has come back for a while, and notes that it is.
func (t *Timing) Asks(silent, wait time.Duration, now clock.Instant) bool {
	if silent < wait || now.Mono.Sub(t.asked.Mono) < wait {
		return false
	}
	t.asked = now
	return true
}

// Looked notes that it was checked for which leases this process waits, and HasLooked reports whether it was.
func (t *Timing) Looked()         { t.waits = true }
func (t *Timing) HasLooked() bool { return t.waits }
