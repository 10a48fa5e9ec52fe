package nonexclusive

import (
	"context"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/term"
)

// expireWhenDue ends terms as soon as they have lapsed.
func (a *Arbiter) expireWhenDue(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-a.wakeup:
		}
		a.attend()
		d, finished := a.expire()
		if finished {
			return errFinished
		}
		timer.Reset(d)
	}
}

// expire ends terms that are over. It returns the time until it has to be called again, and
// whether a closing process holds nothing any more.
func (a *Arbiter) expire() (time.Duration, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.set.Now()
	alive := a.set.Alive(now)
	next, held := now.Mono.Add(lookEvery), false
	if p, at := a.starved(); p >= 0 && at > now.Mono {
		next = min(next, at)
	}
	if a.away > now.Mono {
		next = min(next, a.away)
	}
	for p := range a.assigned {
		if !a.held(p) {
			continue
		}
		switch {
		case !a.current(p, now):
			a.lapse(p, alive)
		case a.leaving() && now.Mono.Sub(a.leaveAt.Mono) >= 0, p >= a.desired.Roles:
			a.end(p, a.desired.Reason(p, now), true)
		default:
			held = true
			v, _ := a.table.V(p)
			next = min(next, v.Mono.Add(a.set.T))
			if a.leaving() {
				next = min(next, a.leaveAt.Mono)
			}
		}
	}
	return max(next.Sub(now.Mono), 100*time.Microsecond), a.desired.Closing && !held
}

// lapse ends a term whose V is older than T.
func (a *Arbiter) lapse(p int, alive bool) {
	why, graceful := term.Lapsed, a.assigned[p] == assignedElsewhere
	switch {
	case a.leaving():
		why, graceful = a.desired.Reason(p, a.set.Now()), true
	case graceful:
		why = term.Unassigned
	case !alive:
		why = term.NotPulsed
	case a.desired.Unhealthy:
		why, graceful = term.Unhealthy, true
	}
	a.end(p, why, graceful)
}

// endLapsed ends the terms that have lapsed by now, and returns now. If the table ended them, it
// would always give a lapse as the reason.
func (a *Arbiter) endLapsed() clock.Instant {
	now := a.set.Now()
	alive := a.set.Alive(now)
	for p := range a.assigned {
		if a.held(p) && !a.current(p, now) {
			a.lapse(p, alive)
		}
	}
	return now
}
