//go:build !linux

package clock

import "time"

// kernelClocks: the ordinary monotonic clock is all there is.
func kernelClocks(t Instant) (raw Raw, boot Boot) { return Raw(t.Mono), 0 }

// kernelWall is not needed: there is no clock beside time.Now's.
func kernelWall() (time.Time, bool) { return time.Time{}, false }
