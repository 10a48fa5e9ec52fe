package handover

import (
	"time"

	"github.com/goneli/neli/internal/clock"
)

// Closing is what a process that closes still waits for.
type Closing struct {
	farewells int           // Releases, Snapshots and last Hellos in flight
	parted    clock.Mono    // when something was last released
	heirs     time.Duration // the longest Wait of a Release so far
	freeAt    clock.Mono    // since when a closing process holds nothing; 0: it holds something, or is not closing
}

// Sent notes that a farewell was sent, and Reported that there is a report on one.
func (c *Closing) Sent() { c.farewells++ }

func (c *Closing) Reported() { c.farewells-- }

// NothingSent reports whether none is in flight.
func (c *Closing) NothingSent() bool { return c.farewells == 0 }

// Released notes that roles were released.
func (c *Closing) Released(now clock.Instant) { c.parted = now.Mono }

// Inherit notes the Wait of a Release.
func (c *Closing) Inherit(wait time.Duration) { c.heirs = max(c.heirs, wait) }

// Free notes that a closing process holds nothing.
func (c *Closing) Free(now clock.Instant) {
	if c.freeAt == 0 {
		c.freeAt = now.Mono
	}
}

// SucceedBy is the time by which most successors have claimed: they have at least as long as others
// leave them their roles.
func (c *Closing) SucceedBy(least time.Duration) clock.Mono {
	return c.freeAt.Add(max(least, c.heirs))
}

// Succession is SucceedBy while that is still to come and this process holds nothing; else Never.
func (c *Closing) Succession(least time.Duration, now clock.Instant) clock.Mono {
	if by := c.SucceedBy(least); c.freeAt != 0 && now.Mono < by {
		return by
	}
	return clock.Never
}

// Waited reports whether a process without roles has waited long enough; late says that it is still
// reading and has not reached its own Releases.
func (c *Closing) Waited(late bool, now clock.Instant) bool {
	if late {
		return now.Mono.Sub(c.freeAt) >= closeLag
	}
	return now.Mono.Sub(c.freeAt) >= CloseTail
}

// Busy reports whether a farewell is in flight, up to CloseTail after the last Release.
func (c *Closing) Busy(now clock.Instant) bool {
	return c.farewells > 0 && now.Mono.Sub(c.parted) < CloseTail
}

// CloseTail is how long a closing process without roles waits for its last records to be
// acknowledged and for Claims in flight to be decided.
const CloseTail = 2 * time.Second

// closeLag is how long a closing process waits if it is still reading and has not reached its own
// Releases yet. If a large group closes together, all are late, and the last one that finds the log
// vacant has to write that in a Snapshot.
const closeLag = 3 * CloseTail
