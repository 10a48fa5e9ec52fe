package roster

import "time"

const (
	// HelloEvery is how often a process announces itself. A process that was not heard for
	// three times as long counts as gone.
	HelloEvery = 5 * time.Second
	// maxHelloPeriod limits how long a crashed process without roles is remembered.
	maxHelloPeriod = time.Minute
)

// HelloPeriod is the time between a member's Hellos: HelloEvery, more if n is large. All members read each, so the cost
// grows with the square of n: 26 to 300 members say five a second together.
func HelloPeriod(n int) time.Duration {
	return min(maxHelloPeriod, max(HelloEvery, time.Duration(n)*HelloEvery/25))
}

// HelloGap is the least time between two Hellos of a process that has news, for instance of a new
// member. More than 20 members say twenty a second together.
func HelloGap(n int) time.Duration { return max(time.Second, time.Duration(n)*time.Second/20) }

// SteadyAfter is how long a process must be present and healthy to get roles for balance, unless the group is young.
const SteadyAfter = 3 * HelloEvery
