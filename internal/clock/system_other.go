//go:build !linux

package clock

import "time"

// kernelClocks uses the ordinary monotonic clock, which is the only one.
func kernelClocks(t Instant) (raw Raw, boot Boot) { return Raw(t.Mono), 0 }

// kernelWall is not needed here, since there is no clock besides time.Now's.
func kernelWall() (time.Time, bool) { return time.Time{}, false }
