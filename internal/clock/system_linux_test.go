package clock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The kernel's other monotonic clocks are slewed, or stand still during a suspension. On a machine
// where nothing was slewed yet, their readings look equal, so the test simulates the kernel.
func TestEachReadingComesFromItsOwnClock(t *testing.T) {
	shown := map[int32]time.Duration{unix.CLOCK_REALTIME: 1 * time.Hour, unix.CLOCK_MONOTONIC: 2 * time.Hour,
		unix.CLOCK_MONOTONIC_RAW: 3 * time.Hour, unix.CLOCK_BOOTTIME: 4 * time.Hour}
	refused := map[int32]bool{}
	gettime := func(id int32, ts *unix.Timespec) error {
		d, ok := shown[id]
		if !ok || refused[id] {
			return unix.EPERM
		}
		*ts = unix.NsecToTimespec(int64(d))
		return nil
	}
	glance := Instant{Mono: 77}
	raw, boot := readClocks(glance, gettime)
	require.Equal(t, 3*time.Hour+origin, time.Duration(raw), "the raw clock is the one that nobody slews")
	require.Equal(t, 4*time.Hour+origin, time.Duration(boot), "the boot clock goes on in a suspension")

	refused[unix.CLOCK_MONOTONIC_RAW] = true
	refused[unix.CLOCK_BOOTTIME] = true
	raw, boot = readClocks(glance, gettime)
	require.Equal(t, Raw(glance.Mono), raw, "the ordinary clock takes the place of a refused one")
	require.Zero(t, boot)
}
