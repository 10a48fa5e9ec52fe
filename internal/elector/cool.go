package elector

import (
	"time"

	"github.com/goneli/neli/internal/clock"
)

const (
	// cooldown is how long nothing is handed to a process that did not claim what it was
	// given, and maxCooldown that time after it has doubled with each further failure.
	// It is short at first: where many processes start on few cores, one that answers too late
	// is busy and will soon answer, and meanwhile others lead more than their share.
	cooldown    = 5 * time.Second
	maxCooldown = time.Minute
)

// cooldowns are the processes that did not claim what they were given.
type cooldowns map[string]failure

// failure is a process in cooldown until `until`; `long` doubles with each failure.
type failure struct {
	long  time.Duration
	until clock.Mono
}

// leaves reports whether a process is in cooldown, so that nothing is handed to it.
func (c cooldowns) leaves(id string, now clock.Mono) bool {
	f, failed := c[id]
	return failed && now < f.until
}

// failed begins the cooldown of a process that did not claim what it was given, and returns
// how long it lasts. A failure of long ago does not count.
func (c cooldowns) failed(id string, now clock.Mono) time.Duration {
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
