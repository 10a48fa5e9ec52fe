//go:build unix

package show

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now reads CLOCK_MONOTONIC, which all processes of a machine share. Go's own
// monotonic readings mean nothing to another process.
func Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // POSIX has this clock
	}
	return time.Duration(ts.Nano())
}
