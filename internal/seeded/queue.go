package seeded

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"time"
)

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
