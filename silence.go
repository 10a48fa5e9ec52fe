package neli

import (
	"math"
	"sync"
	"time"

	"github.com/goneli/neli/internal/clock"
)

// The application's silence: how long it may go without a sign of life, what counts as one, and what
// the log says before that costs leadership.

// application is what the arbiter asks about the application at each step. Its methods do not block.
type application interface {
	// alive reports whether beats may be sent. A hung application must be replaced, so its process
	// stops beating.
	alive(now clock.Instant) bool
	// deaf reports whether the application might not learn of a new term for long, as the barrier is
	// still at work on a former event. Its process claims nothing then, and gives back terms of which
	// the application was not told: others may lead these roles meanwhile.
	deaf(now clock.Instant) bool
}

const never64 = math.MinInt64

func (n *Neli) alive(now clock.Instant) bool {
	n.mindSilence(now)
	return n.waiting.Load() > 0 || n.barrierAt.Load() != never64 ||
		now.Mono.Sub(clock.Mono(n.lastPulse.Load())) < n.set.maxPulse
}

func (n *Neli) deaf(now clock.Instant) bool {
	return n.inBarrier(now) >= min(n.set.timeout, n.set.maxPulse)
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
func (n *Neli) warnAfter() time.Duration { return n.set.maxPulse / 3 * 2 }

// slow logs a call of the application's code that lasts long: at two thirds of MaxPulseInterval, and
// whenever its time has doubled. The returned function ends that.
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

// mindSilence logs that the application of a process that contends has been silent for two thirds of
// MaxPulseInterval, once for each silence. The arbiter's questions lead here, at least one a second,
// under its lock: the logger only queues lines.
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
		"max_pulse_interval", n.set.maxPulse, "in", where)
}
