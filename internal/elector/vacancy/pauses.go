package vacancy

import (
	"time"

	"github.com/goneli/neli/internal/clock"
)

// AssignTime is how long members take to assign and claim some of all roles, if they do it at the
// same time on one machine: for each of them, about a seventh of a microsecond for each role. It is
// at most T/2 for all roles, and a tenth of that for a tenth of them: where many members have
// machines of their own, what a few have led when they crashed must not wait as long as a start.
func AssignTime(roles, all, members int, t time.Duration) time.Duration {
	return min(clock.Patience(t)*time.Duration(roles)/time.Duration(max(1, all)), time.Duration(roles*members)*150*time.Nanosecond)
}

// assignPauses is how often vacant roles were assigned recently.
type assignPauses struct {
	next clock.Mono    // no assigning before then
	last time.Duration // the pause until then
	made int           // in a row
}

// row is the number of recent assignments in a row, each soon after the one before.
func (s *assignPauses) row(now clock.Mono) int {
	if now.Sub(s.next) > s.last {
		return 0
	}
	return s.made
}

// pause is the pause after a assigning made now: an eighth of whole after the first one of a
// row, and twice as long after each further one. Processes that die together are found silent
// within much less than whole, and their roles need not wait for it. If that goes on, assignments
// soon become as rare as whole makes them.
func (s *assignPauses) pause(now clock.Mono, whole time.Duration) time.Duration {
	return whole >> max(0, 3-s.row(now))
}

// least is the least time from a assigning made now to the next one. After an outage a hundred
// holders are found silent, or release, one after the other, and each assigning counts all held
// roles. With few roles the pause is far below a round trip. A process that is behind would share
// out roles that others have claimed already, and reads on first.
func (s *assignPauses) least(behind bool, roles, members int, t time.Duration, now clock.Instant) time.Duration {
	if behind {
		return clock.Patience(t)
	}
	return s.pause(now.Mono, min(clock.Pause(t), time.Duration(roles*(members+1))*50*time.Nanosecond))
}

// add notes a assigning.
func (s *assignPauses) add(now clock.Mono, pause time.Duration) {
	*s = assignPauses{next: now.Add(pause), last: pause, made: s.row(now) + 1}
}
