package seeded

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// World is true time, which no simulated process can read, and what is yet to happen. One
// goroutine uses it. What it has to be told of the protocol: T, Heavy and Limit.
type World struct {
	R     *rand.Rand // everything that is random
	Seed  uint64
	T     time.Duration // the unit of Spread and Latency: a lease, or about that
	Heavy float64       // how often a message is as late as can be
	Limit int           // no more things happen than these

	Now      time.Duration // since the beginning
	Happened int           // things
	Calm     bool          // the adversary has gone
	Fault    string        // the first thing that was wrong
	Trace    func(format string, args ...any)
	queue    queue
}

// Begin makes a world of a seed, which tells everything if it is that of NELI_SEED.
// Simulations with other streams draw otherwise.
func (w *World) Begin(seed, stream uint64) {
	*w = World{R: rand.New(rand.NewPCG(seed, stream)), Seed: seed, Trace: func(string, ...any) {}}
	if only, ok := one(); ok && only == seed {
		w.Trace = func(format string, args ...any) {
			fmt.Printf("%10.4f  %s\n", w.units(), fmt.Sprintf(format, args...))
		}
	}
}

func (w *World) units() float64 { return float64(w.Now) / float64(w.T) }

// Note notes that something is wrong: the first time counts, as the rest follows
// from it.
func (w *World) Note(format string, args ...any) {
	if w.Fault == "" {
		w.Fault = fmt.Sprintf(format, args...)
	}
	w.Trace("FAULT: "+format, args...)
}

// Complaint is what was wrong, and when; "" if nothing was.
func (w *World) Complaint() string {
	if w.Fault == "" {
		return ""
	}
	return fmt.Sprintf("%s, at %.4f T", w.Fault, w.units())
}

// Run lets time pass until then, or until something is wrong, or enough says so after
// something has happened; nil: nothing is enough.
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

// After lets something happen later.
func (w *World) After(d time.Duration, do func()) { w.queue.push(w.Now+max(0, d), do) }

// Every lets something happen at random times, that far apart on average, until the world
// is calm; never if mean is 0.
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

// Soon lets everything that is under way happen within d.
func (w *World) Soon(d time.Duration) {
	for _, e := range w.queue.drain() {
		w.queue.push(min(e.at, w.Now+w.Span(d)), e.do)
	}
}

// Forget lets nothing happen of what is under way.
func (w *World) Forget() { w.queue.drain() }

// Pending is how many things are yet to happen.
func (w *World) Pending() int { return len(w.queue.heap) }

// Span is a uniform duration below d.
func (w *World) Span(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(w.R.Int64N(int64(d)))
}

// Spread is a duration between so many T and so many, all magnitudes alike.
func (w *World) Spread(low, high float64) time.Duration {
	return time.Duration(float64(w.T) * low * math.Exp(w.R.Float64()*math.Log(high/low)))
}

// Maybe is true that often.
func (w *World) Maybe(p float64) bool { return p > 0 && w.R.Float64() < p }

// Latency of a message: of class 0 none, of 1 far below T, of 2 below T/5, else of any
// magnitude up to T. In a calm world it is log-normal around T/200, whatever the class.
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
