package quorum

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goneli/neli/internal/clock"
)

// TestTheBoundIsTheMajoritythLargest states the rule of the gist "Leader election on top of
// Scuttlebutt", leader iff the majority-th largest lower bound is young, by which a majority
// of lower bounds makes a leader (that it is the rule here in every state the model asserts): order them from the youngest, and the one in the middle decides. Each log
// is a witness of when this process was last alive; who has not been heard bears no witness,
// and two who were heard at the same time are two.
func TestTheBoundIsTheMajoritythLargest(t *testing.T) {
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
		{"three were heard", [3]clock.Instant{at(3), at(1), at(2)}, 0b111, at(2)},
		{"two of them count", [3]clock.Instant{at(3), at(1), at(2)}, 0b011, at(1)},
		{"one was not heard", [3]clock.Instant{at(3), none, at(1)}, 0b111, at(1)},
		{"two were not heard", [3]clock.Instant{at(3), none, none}, 0b111, none},
		{"one counts", [3]clock.Instant{at(3), at(2), at(1)}, 0b100, none},
		{"ties are two", [3]clock.Instant{at(3), at(3), at(1)}, 0b111, at(3)},
		{"all at once", [3]clock.Instant{at(3), at(3), at(3)}, 0b111, at(3)},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, majorityth(c.bound[:], c.line, 2), "the bound is the majority-th largest")
		})
	}
}
