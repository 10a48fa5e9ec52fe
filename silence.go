package neli

import (
	"math"
	"sync"
	"time"

	"github.com/goneli/neli/internal/clock"
)

// This file handles the application's silence: how long it may give no sign of life, what counts as
// one, and what is logged before the silence costs leadership.

// application is what the arbiter asks about the application at each step. Its methods do not block.
type application interface {
	// alive reports whether beats may be sent. The process of a hung application stops beating, so
	// that another one takes over.
	alive(now clock.Instant) bool
	// deaf reports whether the application might not learn of a new term for long, because the
	// barrier is still at work on an earlier event. Its process then claims nothing and gives back
	// the terms of which the application was not told, so that other processes can lead these roles.
	deaf(now clock.Instant) bool
}

const never64 = math.MinInt64

func (n *Neli) alive(now clock.Instant) bool {
	n.mindSilence(now)
	return n.waiting.Load() > 0 || n.barrierAt.Load() != never64 ||
		now.Mono.Sub(clock.Mono(n.lastPulse.Load())) < n.set.MaxPulseInterval
}

func (n *Neli) deaf(now clock.Instant) bool {
	return n.inBarrier(now) >= min(n.set.HeartbeatTimeout, n.set.MaxPulseInterval)
}

// inBarrier returns for how long the barrier has been at work on an event, 0 if it is not.
func (n *Neli) inBarrier(now clock.Instant) time.Duration {
	at := n.barrierAt.Load()
	if at == never64 {
		return 0
	}
	return max(0, now.Mono.Sub(clock.Mono(at)))
}

// silent returns for how long the application has given no sign of life.
func (n *Neli) silent(now clock.Instant) time.Duration {
	if n.waiting.Load() > 0 || n.barrierAt.Load() != never64 {
		return 0
	}
	return max(0, now.Mono.Sub(clock.Mono(n.lastPulse.Load())))
}

// warnAfter is when a silence or a long call is first logged.
func (n *Neli) warnAfter() time.Duration { return n.set.MaxPulseInterval / 3 * 2 }

// slow logs a call of the application's code that takes long: first at two thirds of
// MaxPulseInterval, then each time its duration has doubled. Call the returned function when the
// application's code has returned.
func (n *Neli) slow(text string, args ...any) (returned func()) {
	var mu sync.Mutex
	over, after := false, n.warnAfter()
	mu.Lock()
	defer mu.Unlock()
	var timer *time.Timer
	timer = time.AfterFunc(after, func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		n.set.logger.Warn(text, append([]any{"after", after}, args...)...)
		timer.Reset(after)
		after *= 2
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		timer.Stop()
	}
}

// mindSilence logs, once for each silence, that the application has been silent for two thirds of
// MaxPulseInterval, if the process contends. The arbiter calls it at least once a second, and holds
// its lock meanwhile; that is safe because the logger only queues lines.
func (n *Neli) mindSilence(now clock.Instant) {
	last, silent := n.lastPulse.Load(), n.silent(now)
	if silent < n.warnAfter() || !n.contends.Load() || n.reported.Swap(last) == last {
		return
	}
	where := "outside of the library"
	if n.inTask.Load() {
		where = "the task of Background"
	}
	n.set.logger.Warn("the application does not pulse: it counts as hung after MaxPulseInterval", "after", silent.Round(time.Millisecond),
		"max_pulse_interval", n.set.MaxPulseInterval, "in", where)
}
