package crowd

import (
	"fmt"
	"time"

	"github.com/goneli/neli/lab/bench/idle"
)

// Size is the size of a crowd.
type Size struct {
	Processes, Each int // processes, and members in each
	Partitions      int
	Roles           int
	T               time.Duration
	One             bool   `json:",omitempty"` // the member that started first is preferred, and leads everything; no process is killed
	Client          string `json:",omitempty"` // Kafka client; "" for the library's default
}

// Members in all.
func (s Size) Members() int { return s.Processes * s.Each }

// String is the name of the row.
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

// Sizes are the sizes that have targets.
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
	FirstAnew   = "a first role led after a clean restart"
	LedAnew     = "all led after a clean restart"
)

// Phase is how long something took, and how even it left the shares.
type Phase struct {
	What    string
	Seconds float64
	Spread  float64 // of members' shares: maximum over mean
	Least   float64 // minimum over mean
	Vacant  int     // roles without a leader at the end; most of them are being handed over
	Unmet   bool    // the phase's goal was not reached within that time
	Started float64 `json:",omitempty"` // FirstAnew, LedAnew: when the last member had begun
}

// Outcome is the result of one size.
type Outcome struct {
	Size
	Run     string  // the run's key in the results, which have its time, machine and command
	Started float64 // when the last member had begun, in seconds since the first process was started
	Phases  []Phase
	Quiet   idle.Usage // all members together, and the broker, each second
	Window  string     // of that
	// Memory of a member, in bytes: its part of the process's resident set, and of Go's heap after
	// a collection. The figures are of the process where they are largest.
	Resident, Heap float64
	Lost           int     // terms lost, without those of the killed process
	LostInQuiet    int     // of these, the terms lost while nothing happened
	Steps          *Steps  `json:",omitempty"` // of all members until the end; of the process that was killed, until it was last asked
	Checks         *Checks `json:",omitempty"` // likewise
}
