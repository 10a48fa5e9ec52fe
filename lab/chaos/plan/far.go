package plan

import "time"

// Far is how much longer a round trip takes for the far member of a run that has one.
const Far = 40 * time.Millisecond

// FarOf returns the member that is farther than the others from brokers, or from the other members' logs. Every third
// seed has one.
func FarOf(seed uint64, members int) (member int, some bool) {
	if seed%3 != 2 {
		return 0, false
	}
	return int(seed / 3 % uint64(members)), true
}
