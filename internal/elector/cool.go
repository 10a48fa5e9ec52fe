package elector

import (
	"time"

	"github.com/goneli/neli/internal/clock"
)

const (
	// cooldown is how long nothing is handed to a process that did not claim what it was
	// given, and maxCooldown that time after it has doubled with each further failure.
	// Short at first: where many start on few cores, who answers too late is busy, and soon
	// answers; and what it lacks, others have too much.
	cooldown    = 5 * time.Second
	maxCooldown = time.Minute
)

// cooling is the processes that did not claim what they were given.
type cooling map[string]failure

// failure is that of one process: nothing is handed to it for so long, until then.
type failure struct {
	long  time.Duration
	until clock.Time // monotonic
}

// leaves reports whether a process is left alone for now.
func (c cooling) leaves(id string, now clock.Time) bool {
	f, failed := c[id]
	return failed && now < f.until
}

// failed says that a process did not claim what it was given, and returns for how long
// nothing is handed to it. One that did long ago begins anew.
func (c cooling) failed(id string, now clock.Time) time.Duration {
	for other, f := range c {
		if now >= f.until.Add(maxCooldown) {
			delete(c, other)
		}
	}
	long := cooldown
	if f, before := c[id]; before {
		long = min(2*f.long, maxCooldown)
	}
	c[id] = failure{long, now.Add(long)}
	return long
}
