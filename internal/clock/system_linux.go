package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// kernelClocks reads CLOCK_MONOTONIC_RAW and CLOCK_BOOTTIME. Kernels since 2.6.39 have both. If a
// sandbox refuses one, the ordinary monotonic clock takes its place.
func kernelClocks(t Instant) (raw Raw, boot Boot) { return readClocks(t, unix.ClockGettime) }

func readClocks(t Instant, gettime func(id int32, ts *unix.Timespec) error) (raw Raw, boot Boot) {
	raw = Raw(t.Mono)
	var ts unix.Timespec
	if gettime(unix.CLOCK_MONOTONIC_RAW, &ts) == nil {
		raw = Raw(ts.Nano()) + origin
	}
	if gettime(unix.CLOCK_BOOTTIME, &ts) == nil {
		boot = Boot(ts.Nano()) + origin
	}
	return raw, boot
}

// origin keeps readings off zero, which means "not read".
const origin = 1

// kernelWall returns the kernel's wall clock, even in simulated time.
func kernelWall() (time.Time, bool) {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_REALTIME, &ts) != nil {
		return time.Time{}, false
	}
	return time.Unix(ts.Unix()), true
}
