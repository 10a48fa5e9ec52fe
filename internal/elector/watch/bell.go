package watch

import (
	"sync"
	"sync/atomic"
	"time"
)

// Bell wakes those who wait for changes. Its methods may be called concurrently.
type Bell struct {
	turn atomic.Uint64 // grows when something may have changed
	news chan struct{} // has an element then

	mu      sync.Mutex // guards waiters
	waiters map[chan struct{}]struct{}
}

func NewBell() *Bell {
	return &Bell{news: make(chan struct{}, 1), waiters: map[chan struct{}]struct{}{}}
}

// Turn is different whenever something may have changed.
func (b *Bell) Turn() uint64 { return b.turn.Load() }

// Ring notes that something may have changed.
func (b *Bell) Ring() {
	b.turn.Add(1)
	Ring(b.news)
}

// Ring puts an element into a channel of capacity 1, unless it has one.
func Ring(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Notify returns a channel that gets an element whenever something may have changed, and a function that ends that.
func (b *Bell) Notify() (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiters[ch] = struct{}{}
	return ch, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.waiters, ch)
	}
}

// Announce tells those who wait for changes that there are some, until done is closed. Very many of
// them are told less often, since each has work to do then.
func (b *Bell) Announce(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-b.news:
		}
		n := b.wake()
		if n < manyWaiters {
			continue
		}
		rest := time.NewTimer(time.Duration(n) * restPerWaiter)
		select {
		case <-done:
			rest.Stop()
			return
		case <-rest.C:
		}
	}
}

// wake wakes all who wait, and returns how many they are.
func (b *Bell) wake() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	for w := range b.waiters {
		Ring(w)
	}
	return len(b.waiters)
}

const (
	manyWaiters   = 100
	restPerWaiter = 10 * time.Microsecond
)
