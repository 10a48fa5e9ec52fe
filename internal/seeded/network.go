package seeded

import (
	"cmp"
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Network is what happens to the records that processes append.
type Network struct {
	Lag, Slow int     // latency classes of fetches and of appends
	Heavy     float64 // share of messages of the greatest delay
	Drop      float64 // share of records that are lost
	Silent    float64 // share of those that are lost without a report
	Double    float64 // probability that a record arrives once more
	Ordered   bool    // one sender's appends arrive in order
}

// DrawNetwork draws a network that is anything from perfect to hardly usable.
func DrawNetwork(r *rand.Rand) Network {
	return Network{Lag: r.IntN(4), Slow: r.IntN(4), Heavy: of(r, 0, 0.02, 0.1, 0.3), Drop: of(r, 0, 0.02, 0.3), Silent: of(r, 0, 0.1, 0.5),
		Double: of(r, 0, 0, 0.1, 0.4), Ordered: r.IntN(3) == 0}
}

func of[E any](r *rand.Rand, all ...E) E { return all[r.IntN(len(all))] }

// Deliver lets a record arrive late, twice or never, with a report or without one. last is when the
// sender's newest record arrives. With unsure, a record that arrives may be reported as failed, too.
func (w *World) Deliver(n Network, last *time.Duration, unsure bool, arrive, failed func()) {
	if !w.Calm && w.Maybe(n.Drop) {
		if !w.Maybe(n.Silent) {
			w.After(w.Latency(n.Slow), failed)
		}
		return
	}
	at := w.Now + w.Latency(n.Slow)
	if n.Ordered || w.Calm {
		at = max(at, *last)
		*last = at
	}
	w.After(at-w.Now, arrive)
	if w.Calm {
		return
	}
	if unsure && w.R.IntN(10) == 0 {
		w.After(w.Latency(n.Slow), failed)
	}
	for w.Maybe(n.Double) {
		w.After(at-w.Now+w.Spread(0.000001, 10), arrive)
	}
}

// Post lets a sentinel's record arrive late, twice or never.
func (w *World) Post(n Network, arrive func()) {
	if !w.Maybe(n.Drop) {
		w.After(w.Latency(n.Slow), arrive)
	}
	for w.Maybe(n.Double) {
		w.After(w.Spread(0.000001, 10), arrive)
	}
}

// queue has the future events, the soonest first. Of events due at the same time, the one
// scheduled first comes first.
type queue struct {
	heap events
	n    int
}

type event struct {
	at time.Duration
	n  int
	do func()
}

func (e event) compare(f event) int { return cmp.Or(cmp.Compare(e.at, f.at), cmp.Compare(e.n, f.n)) }

// events are a heap, for container/heap.
type events []event

func (h events) Len() int           { return len(h) }
func (h events) Less(i, k int) bool { return h[i].compare(h[k]) < 0 }
func (h events) Swap(i, k int)      { h[i], h[k] = h[k], h[i] }
func (h *events) Push(e any)        { *h = append(*h, e.(event)) }

func (h *events) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = event{}
	*h = (*h)[:last]
	return e
}

// soonest returns when the next event is due; never, if there is none.
func (q *queue) soonest() time.Duration {
	if len(q.heap) == 0 {
		return math.MaxInt64
	}
	return q.heap[0].at
}

func (q *queue) push(at time.Duration, do func()) {
	q.n++
	heap.Push(&q.heap, event{at, q.n, do})
}

func (q *queue) pop() event { return heap.Pop(&q.heap).(event) }

// drain removes and returns all events, the soonest first.
func (q *queue) drain() []event {
	all := q.heap
	q.heap = nil
	slices.SortFunc(all, event.compare)
	return all
}
