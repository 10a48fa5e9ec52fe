package quorum

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goneli/neli/internal/clock"
)

// TestBoundIsTheMajoritythLargest asserts the rule of the gist "Leader election on top of
// Scuttlebutt": a process leads iff the majority-th largest of its lower bounds is young. A lower
// bound is the time at which a log last proved that the process was alive. A log that proved
// nothing does not count, and two equal bounds count as two.
func TestBoundIsTheMajoritythLargest(t *testing.T) {
	at := func(s int) clock.Instant {
		return clock.Instant{Mono: clock.Mono(s) * clock.Mono(time.Second), Wall: simEpoch.Add(time.Duration(s) * time.Second)}
	}
	none := clock.Instant{}
	for _, c := range []struct {
		name  string
		bound [3]clock.Instant
		line  logs
		want  clock.Instant
	}{
		{"three logs gave evidence", [3]clock.Instant{at(3), at(1), at(2)}, 0b111, at(2)},
		{"two logs are in the line", [3]clock.Instant{at(3), at(1), at(2)}, 0b011, at(1)},
		{"one log gave none", [3]clock.Instant{at(3), none, at(1)}, 0b111, at(1)},
		{"two logs gave none", [3]clock.Instant{at(3), none, none}, 0b111, none},
		{"one counts", [3]clock.Instant{at(3), at(2), at(1)}, 0b100, none},
		{"two are equal", [3]clock.Instant{at(3), at(3), at(1)}, 0b111, at(3)},
		{"all are equal", [3]clock.Instant{at(3), at(3), at(3)}, 0b111, at(3)},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, majorityth(c.bound[:], c.line, 2), "the bound is the majority-th largest")
		})
	}
}
