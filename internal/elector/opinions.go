package elector

import (
	"sync"
	"time"

	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/elector/watch"
)

// opinions is the goroutine that calls the application's Preference. It is used by the goroutine that
// calls Tick.
type opinions struct {
	calls sync.WaitGroup
	busy  chan struct{} // closed when the calls have returned; nil: there were none
}

// slowPreference is how long the calls of Preference for the members that are new may take until that
// is logged.
const slowPreference = 5 * time.Second

// Wait returns when no call of the application's code is left. Call it after Run.
func (e *Elector) Wait() { e.opinions.calls.Wait() }

// consult has the application's Preference called, without the lock, for members for which it was not
// called yet. It waits for the results, so that the first plan has them, but for a fiftieth of T at
// most: beats must not wait for the application. Until there are results, the members are not
// preferred.
func (e *Elector) consult() {
	o := &e.opinions
	if o.busy != nil {
		select {
		case <-o.busy:
			o.busy = nil
		default:
			return
		}
	}
	e.mu.Lock()
	ask, roles := e.node.Unasked()
	prefer := e.node.set.Preference
	e.mu.Unlock()
	if len(ask) == 0 {
		return
	}
	done := make(chan struct{})
	o.busy = done
	slow := time.AfterFunc(slowPreference, func() {
		e.logger.Warn("Config.Preference has not returned: new members are not preferred", "after", slowPreference)
	})
	o.calls.Go(func() {
		defer slow.Stop()
		defer watch.Ring(e.wakeup) // Tick plans with the results
		defer close(done)
		for _, m := range ask {
			prefs := e.preferences(prefer, m, roles)
			e.mu.Lock()
			e.node.planner.Preferred(m, prefs)
			e.mu.Unlock()
		}
	})
	limit := time.NewTimer(e.node.set.T / 50)
	defer limit.Stop()
	select {
	case <-done:
		o.busy = nil
	case <-limit.C:
	}
}

// preferences returns the user's Preference of a member for each role. If Preference ends its
// goroutine, as t.FailNow does, the member is not preferred for the roles that are left.
func (e *Elector) preferences(prefer func(roster.Member, int) int, m roster.Member, roles int) []int32 {
	prefs, done := make([]int32, roles), 0
	var call sync.WaitGroup
	call.Go(func() {
		for ; done < roles; done++ {
			prefs[done] = int32(min(max(prefer(m, done), -1<<31), 1<<31-1))
		}
	})
	call.Wait()
	if done < roles {
		e.logger.Error("Config.Preference ended its goroutine", "role", done, "member", m.Process)
	}
	return prefs
}
