package crowd

import (
	"fmt"
	"time"

	"github.com/goneli/neli/bench/idle"
)

// Size is how much there is of everything.
type Size struct {
	Processes, Each int // processes, and members in each
	Partitions      int
	Roles           int
	T               time.Duration
	One             bool   `json:",omitempty"` // who started first is preferred, and leads everything; nobody dies
	Client          string `json:",omitempty"` // of Kafka; "" for the library's default
}

// Members in all.
func (s Size) Members() int { return s.Processes * s.Each }

// String is what a row is called.
func (s Size) String() string {
	text := fmt.Sprintf("%d members in %d processes, partitions: %d, %d roles, T = %v", s.Members(), s.Processes, s.Partitions, s.Roles, s.T)
	if s.One {
		text += ", one leads all"
	}
	if s.Client != "" {
		text += ", client: " + s.Client
	}
	return text
}

// Sizes are those that there are aims for.
func Sizes() []Size {
	const t = 5 * time.Second
	return []Size{
		{Processes: 10, Each: 10, Partitions: 1, Roles: 100_000, T: t},
		{Processes: 4, Each: 5, Partitions: 1, Roles: 1000, T: t},
		{Processes: 3, Each: 1, Partitions: 1, Roles: 1000, T: t, One: true},
	}
}

// Kinds of phases.
const (
	LedFirst    = "all have been led after the start"
	SharedFirst = "shared out after the start"
	LedAgain    = "all have been led after %d died"
	SharedAgain = "shared out after that"
	SharedLast  = "shared out after %d joined"
	LedAnew     = "all led after a clean restart"
)

// Phase is how long something took, and how even it left the shares.
type Phase struct {
	What    string
	Seconds float64
	Spread  float64 // of members' shares: maximum over mean
	Least   float64 // minimum over mean
	Vacant  int     // roles without a leader at that moment: being handed over, mostly
	Unmet   bool    // it was not so within that time
	Started float64 `json:",omitempty"` // LedAnew: when the last member had begun
}

// Outcome is what was seen.
type Outcome struct {
	Size
	Run     string  // when, on what, by which command: a key of the results
	Started float64 // when the last member had begun, in seconds since the first process was started
	Phases  []Phase
	Quiet   idle.Usage // all members together, and the broker, each second
	Window  string     // of that
	// Memory of a member, in bytes: its part of what is resident of its process, and of
	// what Go's heap has after a collection. The largest of all processes.
	Resident, Heap float64
	Lost           int    // terms lost otherwise than with the process that died
	LostInQuiet    int    // of these, while nothing happened
	Steps          *Steps `json:",omitempty"` // of all members until the end, but for those of the process that died after it was last asked
}
