package vacancy

import (
	"time"

	"github.com/goneli/neli/internal/clock"
)

// AssignTime is how long members take to assign and claim some of all roles, if they do it at the
// same time on one machine: about a seventh of a microsecond for each member and role. It is at most
// T/2 for all roles, and a tenth of that for a tenth of them: where many members have machines of
// their own, the roles of a few that crash must not wait as long as all roles do at a start.
func AssignTime(roles, all, members int, t time.Duration) time.Duration {
	return min(clock.Patience(t)*time.Duration(roles)/time.Duration(max(1, all)), time.Duration(roles*members)*150*time.Nanosecond)
}

// assignPauses is how often vacant roles were assigned recently.
type assignPauses struct {
	next clock.Mono    // no assignment before then
	last time.Duration // the pause until then
	made int           // how many were made in a row
}

// row is the number of recent assignments in a row, each soon after the one before.
func (s *assignPauses) row(now clock.Mono) int {
	if now.Sub(s.next) > s.last {
		return 0
	}
	return s.made
}

// pause is the pause after an assignment made now: an eighth of whole after the first one of a row,
// and twice as long after each further one, up to whole. Processes that die together are found
// silent within much less than whole, so their roles need not wait that long. If assignments go on,
// they soon become as rare as whole makes them.
func (s *assignPauses) pause(now clock.Mono, whole time.Duration) time.Duration {
	return whole >> max(0, 3-s.row(now))
}

// least is the least time from an assignment made now to the next one. After an outage a hundred
// holders are found silent, or release, one after the other, and each assignment counts all held
// roles. With few roles the pause is far below a round trip. A process that is behind would share
// out roles that others have claimed already, and reads on first.
func (s *assignPauses) least(behind bool, roles, members int, t time.Duration, now clock.Instant) time.Duration {
	if behind {
		return clock.Patience(t)
	}
	return s.pause(now.Mono, min(clock.Pause(t), time.Duration(roles*(members+1))*50*time.Nanosecond))
}

// add notes an assignment.
func (s *assignPauses) add(now clock.Mono, pause time.Duration) {
	*s = assignPauses{next: now.Add(pause), last: pause, made: s.row(now) + 1}
}
