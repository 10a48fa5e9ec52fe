package seeded

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// World has true time, which no simulated process can read, and the future events. Only one
// goroutine may use it. The simulation has to set T, Heavy and Limit.
type World struct {
	R     *rand.Rand // the source of everything random
	Seed  uint64
	T     time.Duration // the unit of Spread and Latency: about a lease
	Heavy float64       // probability of a message of the greatest delay
	Limit int           // the largest number of events

	Now      time.Duration // true time since the beginning
	Happened int           // the number of events so far
	Calm     bool          // the adversary has stopped
	Fault    string        // the first fault found
	Trace    func(format string, args ...any)
	queue    queue
}

// Begin begins a world with a seed. If it is the seed of NELI_SEED, the world prints everything
// that happens. Simulations with different streams draw differently.
func (w *World) Begin(seed, stream uint64) {
	*w = World{R: rand.New(rand.NewPCG(seed, stream)), Seed: seed, Trace: func(string, ...any) {}}
	if only, ok := one(); ok && only == seed {
		w.Trace = func(format string, args ...any) {
			fmt.Printf("%10.4f  %s\n", w.units(), fmt.Sprintf(format, args...))
		}
	}
}

func (w *World) units() float64 { return float64(w.Now) / float64(w.T) }

// Note notes a fault. Only the first one counts, since the rest may follow from it.
func (w *World) Note(format string, args ...any) {
	if w.Fault == "" {
		w.Fault = fmt.Sprintf(format, args...)
	}
	w.Trace("FAULT: "+format, args...)
}

// Complaint returns the fault and when it was found; "" if there is none.
func (w *World) Complaint() string {
	if w.Fault == "" {
		return ""
	}
	return fmt.Sprintf("%s, at %.4f T", w.Fault, w.units())
}

// Run lets time pass until the given time, a fault or Limit events, or until enough returns true
// after an event. A nil enough never does.
func (w *World) Run(until time.Duration, enough func() bool) {
	for w.queue.soonest() <= until && w.Fault == "" && w.Happened < w.Limit {
		e := w.queue.pop()
		w.Now = max(w.Now, e.at)
		w.Happened++
		e.do()
		if enough != nil && enough() {
			return
		}
	}
}

// After schedules an event.
func (w *World) After(d time.Duration, do func()) { w.queue.push(w.Now+max(0, d), do) }

// Every schedules events at random times, mean apart on average, until the world is calm. If mean
// is 0, it schedules none.
func (w *World) Every(mean time.Duration, do func()) {
	if mean <= 0 || w.Calm {
		return
	}
	w.After(time.Duration(w.R.ExpFloat64()*float64(mean)), func() {
		if w.Calm {
			return
		}
		do()
		w.Every(mean, do)
	})
}

// Soon moves all scheduled events to within d.
func (w *World) Soon(d time.Duration) {
	for _, e := range w.queue.drain() {
		w.queue.push(min(e.at, w.Now+w.Span(d)), e.do)
	}
}

// Forget drops all scheduled events.
func (w *World) Forget() { w.queue.drain() }

// Pending returns the number of scheduled events.
func (w *World) Pending() int { return len(w.queue.heap) }

// Span returns a random duration below d, uniformly distributed.
func (w *World) Span(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(w.R.Int64N(int64(d)))
}

// Spread returns a random duration between low · T and high · T, with all magnitudes equally likely.
func (w *World) Spread(low, high float64) time.Duration {
	return time.Duration(float64(w.T) * low * math.Exp(w.R.Float64()*math.Log(high/low)))
}

// Maybe returns true with probability p.
func (w *World) Maybe(p float64) bool { return p > 0 && w.R.Float64() < p }

// Latency returns a message's delay: for class 0 none, for 1 below T/200, for 2 below T/5,
// otherwise of any magnitude up to T. With probability Heavy it is T/20 to 10 T. In a calm world
// it is log-normal around T/200.
func (w *World) Latency(class int) time.Duration {
	if w.Calm {
		return time.Duration(float64(w.T) / 200 * math.Exp(w.R.NormFloat64()*0.4))
	}
	if w.Maybe(w.Heavy) {
		return w.Spread(0.05, 10)
	}
	switch class {
	case 0:
		return 0
	case 1:
		return w.Span(w.T / 200)
	case 2:
		return w.Span(w.T / 5)
	}
	return w.Spread(0.001, 1)
}
