package trial

import (
	"sync"

	"github.com/goneli/neli/lab/bench/member"
)

// Results of one system. Times are in milliseconds.
type Results struct {
	First []float64 // start of three processes → the first answer "I lead"
	// All members had closed: from the start of one process to its first answer "I lead".
	Restarted []float64 `json:",omitempty"`

	Killed  []float64 // SIGKILL of the leader → the next one's first answer
	Stopped []float64 // SIGSTOP of the leader → the same

	Asked []float64 // a graceful close is asked for → the same
	Gap   []float64 // of that, the time from the old leader's last answer on

	Woken    int       // leaders that went on after the next one had begun
	WokenLed int       // those of them that answered "I lead" once more
	Double   []float64 // for how long two led then, for each that woke

	Terms    int // all
	Overlaps int // pairs of terms in which two led at one instant, without a suspension

	Leading *member.Check

	Failures []string // trials that could not be carried out

	mu sync.Mutex
}

func (r *Results) take(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}
