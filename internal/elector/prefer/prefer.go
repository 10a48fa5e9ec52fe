// Package prefer calls the application's Preference, on a goroutine of its own.
package prefer

import (
	"log/slog"
	"sync"
	"time"

	"github.com/goneli/neli/internal/elector/roster"
)

// Calls are the calls of the application's Preference. One goroutine uses Busy and Ask.
type Calls struct {
	Prefer func(m roster.Member, role int) int
	Logger *slog.Logger

	calls sync.WaitGroup
	busy  chan struct{} // closed when the calls have returned; nil: none are awaited
}

// slow is how long the calls for the members that are new may take until that is logged.
const slow = 5 * time.Second

// Wait returns when no call of the application's code is left.
func (c *Calls) Wait() { c.calls.Wait() }

// Busy reports whether calls have not returned yet.
func (c *Calls) Busy() bool {
	if c.busy == nil {
		return false
	}
	select {
	case <-c.busy:
		c.busy = nil
		return false
	default:
		return true
	}
}

// Ask calls Preference for some members and the roles below a number. It must not be Busy. It waits
// for the results, so that the first plan has them, but for limit at most: beats must not wait for the
// application. got gets the results of each member, and ended is called after all, both on another goroutine.
func (c *Calls) Ask(members []roster.Member, roles int, limit time.Duration, got func(roster.Member, []int32), ended func()) {
	if len(members) == 0 {
		return
	}
	done := make(chan struct{})
	c.busy = done
	late := time.AfterFunc(slow, func() {
		c.Logger.Warn("Config.Preference has not returned: new members are not preferred", "after", slow)
	})
	c.calls.Go(func() {
		defer late.Stop()
		defer ended()
		defer close(done)
		for _, m := range members {
			got(m, c.preferences(m, roles))
		}
	})
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		c.busy = nil
	case <-timer.C:
	}
}

// preferences returns the user's Preference of a member for each role. If Preference ends its
// goroutine, as t.FailNow does, the member is not preferred for the roles that are left.
func (c *Calls) preferences(m roster.Member, roles int) []int32 {
	prefs, done := make([]int32, roles), 0
	var call sync.WaitGroup
	call.Go(func() {
		for ; done < roles; done++ {
			prefs[done] = int32(min(max(c.Prefer(m, done), -1<<31), 1<<31-1))
		}
	})
	call.Wait()
	if done < roles {
		c.Logger.Error("Config.Preference ended its goroutine", "role", done, "member", m.Process)
	}
	return prefs
}
