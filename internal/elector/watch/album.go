package watch

import (
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/observe"
)

// Album shares looks at all roles among those who look at the same time. The zero value is empty, and
// its methods may be called concurrently.
type Album struct {
	picturing sync.Mutex                                    // held while a picture is made
	newest    atomic.Pointer[weak.Pointer[observe.Picture]] // kept as long as a Watch has it

	surveying sync.Mutex      // held while a survey is made, so that concurrent callers get that one
	last      *observe.Survey // kept for a short time
	at        clock.Instant
}

// Picture returns the newest picture if it is current, and else one that take makes from it.
func (a *Album) Picture(current func(*observe.Picture) bool, take func(last *observe.Picture) *observe.Picture) *observe.Picture {
	if p := a.picture(); current(p) {
		return p
	}
	a.picturing.Lock()
	defer a.picturing.Unlock()
	last := a.picture()
	if current(last) {
		return last
	}
	p := take(last)
	of := weak.Make(p)
	a.newest.Store(&of)
	return p
}

// picture returns the newest picture, or nil.
func (a *Album) picture() *observe.Picture {
	if of := a.newest.Load(); of != nil {
		return of.Value()
	}
	return nil
}

// Survey returns the last survey if it is younger than fresh, and else one that take makes. Only
// surveys of more than one slice are kept.
func (a *Album) Survey(fresh time.Duration, now func() clock.Instant, take func(*observe.Survey) (slices int, at clock.Instant)) ([]observe.Standing, clock.Instant) {
	a.surveying.Lock()
	defer a.surveying.Unlock()
	if now := now(); a.last != nil && now.Age(a.at) < fresh {
		return a.last.Out, now
	}
	v, slices := &observe.Survey{}, 0
	slices, a.at = take(v)
	if a.last = nil; slices > 1 {
		a.last = v
		time.AfterFunc(fresh, func() { a.forget(v) }) // it may be large
	}
	return v.Out, a.at
}

func (a *Album) forget(v *observe.Survey) {
	a.surveying.Lock()
	defer a.surveying.Unlock()
	if a.last == v {
		a.last = nil
	}
}
