package nelitest

import (
	"container/heap"
	"strings"
	"time"
)

// Everything that takes time, such as records in flight, heartbeats and timeouts of Poll, is an event in
// one queue with one timer. There is no goroutine to stop: an abandoned broker leaves at most a timer
// behind.
//
// Each event that wakes a goroutine of the program happens at an instant of its own, at least a nanosecond
// after the one before. In a synctest bubble time stands still until all goroutines wait, so each event has had
// all its effects before the next one comes. This makes a simulation repeatable, although the runtime may
// run ready goroutines in any order.

// event is something that happens at a time. Times are durations since the broker was created. Events
// that are due at the same time happen in the order of by and rank, not in the order in which goroutines
// scheduled them.
type event struct {
	at   time.Duration
	by   string // the member, group or log
	rank int    // the member's client, or the log's partition
	seq  uint64
	pos  int // place in the queue, from 1; 0 while not scheduled
	do   task
}

// A task is run with the broker's lock held.
type task interface{ fire() }

type taskFunc func()

func (f taskFunc) fire() { f() }

func (e *event) before(o *event) bool {
	if e.at != o.at {
		return e.at < o.at
	}
	if c := strings.Compare(e.by, o.by); c != 0 {
		return c < 0
	}
	if e.rank != o.rank {
		return e.rank < o.rank
	}
	return e.seq < o.seq
}

type eventHeap []*event

func (h eventHeap) Len() int           { return len(h) }
func (h eventHeap) Less(i, j int) bool { return h[i].before(h[j]) }
func (h eventHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i+1, j+1
}
func (h *eventHeap) Push(x any) {
	e := x.(*event)
	*h = append(*h, e)
	e.pos = len(*h)
}
func (h *eventHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	e.pos = 0
	return e
}

// timeline is the queue and its timer.
type timeline struct {
	epoch   time.Time
	events  eventHeap
	seq     uint64
	timer   *time.Timer   // made by the first event, in that event's bubble
	armed   time.Duration // when the timer fires, if timed
	timed   bool
	floor   time.Duration // no event happens earlier
	running bool
	woke    bool      // the current run has woken a goroutine
	courier *producer // the producer whose reports the current run delivers
}

func (b *Broker) now() time.Duration { return time.Since(b.line.epoch) }

// schedule sets the time of e. It replaces an earlier setting.
func (b *Broker) schedule(e *event, at time.Duration) {
	l := &b.line
	e.at = max(at, b.now())
	e.seq = l.seq
	l.seq++
	if e.pos > 0 {
		heap.Fix(&l.events, e.pos-1)
	} else {
		heap.Push(&l.events, e)
	}
	b.arm()
}

// sooner sets the time of e, unless e is due earlier anyway.
func (b *Broker) sooner(e *event, at time.Duration) {
	if e.pos == 0 || e.at > at {
		b.schedule(e, at)
	}
}

func (b *Broker) cancel(e *event) {
	if e.pos > 0 {
		heap.Remove(&b.line.events, e.pos-1)
	}
}

// arm sets the timer for the first event. It leaves a timer that fires too early alone, since most
// timeouts are moved to a later time before they pass.
func (b *Broker) arm() {
	l := &b.line
	if l.running || len(l.events) == 0 {
		return
	}
	at := max(l.events[0].at, l.floor)
	if l.timed && l.armed <= at {
		return
	}
	l.timed, l.armed = true, at
	if d := at - b.now(); l.timer == nil {
		l.timer = time.AfterFunc(d, b.run)
	} else {
		l.timer.Reset(d)
	}
}

// run is called by the timer. It runs the events that are due, up to and including the first one that
// wakes a goroutine.
func (b *Broker) run() {
	b.mu.Lock()
	l := &b.line
	l.timed, l.running, l.woke = false, true, false
	if now := b.now(); now >= l.floor {
		for !l.woke && len(l.events) > 0 && l.events[0].at <= now {
			heap.Pop(&l.events).(*event).do.fire()
		}
		if l.woke {
			l.floor = now + 1
		}
	}
	l.running = false
	p := l.courier
	l.courier = nil
	b.arm()
	b.mu.Unlock()
	if p != nil {
		p.deliver() // on this goroutine, as the timer is already set for the next event
	}
}

// waiter is a call that waits for one event.
type waiter struct {
	event
	b    *Broker
	done chan struct{}
}

func (c *client) newWaiter() *waiter {
	w := &waiter{b: c.b, done: make(chan struct{})}
	w.event = c.event(w)
	return w
}

func (w *waiter) fire() {
	close(w.done)
	w.b.line.woke = true
}

// queue is a first-in, first-out queue that reuses its memory.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) len() int { return len(q.items) - q.head }
func (q *queue[T]) first() T { return q.items[q.head] }

func (q *queue[T]) push(x T) {
	if q.head > 32 && q.head > len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, x)
}

func (q *queue[T]) pop() T {
	var zero T
	x := q.items[q.head]
	q.items[q.head] = zero
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return x
}

func (q *queue[T]) clear() {
	clear(q.items)
	q.items, q.head = q.items[:0], 0
}
