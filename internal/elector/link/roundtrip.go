package link

import (
	"time"

	"github.com/goneli/neli/internal/clock"
)

const (
	// A measured round trip is limited to this range, or up to a hundredth of T if that is
	// longer. Below minRoundTrip the scheduling of processes matters more.
	minRoundTrip = 2 * time.Millisecond
	MaxRoundTrip = 20 * time.Millisecond
)

// RoundTrip is how long own records take to come back.
type RoundTrip struct {
	t        time.Duration
	smoothed time.Duration
	lastBack clock.Instant // when an own record was last read back, or none was expected
}

func NewRoundTrip(t time.Duration) RoundTrip { return RoundTrip{t: t, smoothed: MaxRoundTrip} }

// Back handles an own record that was sent at a time and has come back. Shorter round trips have
// more weight, very long ones none: the first one sets up a connection, and later ones may wait
// for a broker that is gone.
func (r *RoundTrip) Back(sent, now clock.Instant) {
	r.lastBack = now
	if sent == (clock.Instant{}) {
		return
	}
	d := now.Mono.Sub(sent.Mono)
	switch {
	case d >= max(time.Second, clock.Behind(r.t)):
	case d < r.smoothed:
		r.smoothed += (d - r.smoothed) / 2
	default:
		r.smoothed += (d - r.smoothed) / 8
	}
}

// Idle notes that no own record is expected.
func (r *RoundTrip) Idle(now clock.Instant) { r.lastBack = now }

// SilentFor is for how long no own record has come back.
func (r *RoundTrip) SilentFor(now clock.Instant) time.Duration { return now.Mono.Sub(r.lastBack.Mono) }

// Takes is how long a record takes to come back, for processes that wait for each other.
func (r *RoundTrip) Takes() time.Duration {
	return min(max(r.smoothed, minRoundTrip), max(MaxRoundTrip, clock.LongTrip(r.t)))
}
