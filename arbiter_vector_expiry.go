package neli

import (
	"context"
	"time"

	"github.com/goneli/neli/internal/clock"
)

// starved returns the partition that is the first to be given up for want of records,
// and when; −1 if none is. A process that is cut off from a partition's broker, and
// not from the group's coordinator, is healthy as far as the group knows: it would
// stay assigned, and nobody would lead once V has lapsed.
func (a *vectorArbiter) starved() (partition int, at clock.Time) {
	partition = -1
	for p, has := range a.assigned {
		if t := a.heard[p].Mono.Add(a.set.starvedAfter); has == assignedHere && !a.leaving() && (partition < 0 || t < at) {
			partition, at = p, t
		}
	}
	return partition, at
}

// expireWhenDue ends terms as soon as they have lapsed.
func (a *vectorArbiter) expireWhenDue(ctx context.Context) error {
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

// expire ends terms that are over. It returns how long nothing will be due, and
// whether a closing process holds nothing any more.
func (a *vectorArbiter) expire() (time.Duration, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	alive := a.alive(now)
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
			a.end(p, Reason(a.desired.Reason(p, now)), true)
		default:
			held = true
			v, _ := a.V(p)
			next = min(next, v.Mono.Add(a.set.timeout))
			if a.leaving() {
				next = min(next, a.leaveAt.Mono)
			}
		}
	}
	return max(next.Sub(now.Mono), 100*time.Microsecond), a.desired.Closing && !held
}

// lapse ends a term whose V has become older than T.
func (a *vectorArbiter) lapse(p int, alive bool) {
	why, graceful := ReasonLapsed, a.assigned[p] == assignedElsewhere
	switch {
	case a.leaving():
		why, graceful = Reason(a.desired.Reason(p, a.now())), true
	case graceful:
		why = ReasonUnassigned
	case !alive:
		why = ReasonNotPulsed
	case a.desired.Unhealthy:
		why, graceful = ReasonUnhealthy, true
	}
	a.end(p, why, graceful)
}

// endLapsed ends what has lapsed at this instant, which it returns: the table would
// call it a lapse, whatever the reason.
func (a *vectorArbiter) endLapsed() clock.Instant {
	now := a.now()
	alive := a.alive(now)
	for p := range a.assigned {
		if a.held(p) && !a.current(p, now) {
			a.lapse(p, alive)
		}
	}
	return now
}
