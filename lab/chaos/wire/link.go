package wire

import (
	"io"
	"math/rand/v2"
	"sync"
	"time"
)

// Policy says what a link does to the packets that enter it. The zero value delivers them at once.
type Policy struct {
	Cut    bool          // none passes
	Delay  time.Duration // of each packet
	Jitter time.Duration // the most that is added to the delay
	Loss   float64       // the fraction of packets that are lost
}

// queueLimit bounds the packets under way on one link, as netem does by default. Further packets are dropped.
const queueLimit = 1000

// Count is what became of the packets that entered a link.
type Count struct{ Carried, Cut, Lost, Overflowed uint64 }

// link carries packets one way, in order. Jitter varies the delay but does not reorder packets: TCP
// hides reordering from its users anyway.
type link struct {
	to   io.Writer
	wake chan struct{} // one token: the queue is not empty any more

	mu     sync.Mutex
	policy Policy
	rng    *rand.Rand
	queue  []packet
	count  Count
}

type packet struct {
	due  time.Time
	data []byte
}

func newLink(to io.Writer, rng *rand.Rand) *link {
	return &link{to: to, rng: rng, wake: make(chan struct{}, 1)}
}

func (l *link) set(p Policy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.policy = p
}

func (l *link) counted() Count {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// enter takes a packet and does not keep data. A packet without delay is written here, so that an
// undisturbed link needs no goroutine to wake up. Writing to a TUN device does not block.
func (l *link) enter(data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.policy
	switch {
	case p.Cut:
		l.count.Cut++
		return
	case p.Loss > 0 && l.rng.Float64() < p.Loss:
		l.count.Lost++
		return
	case len(l.queue) == queueLimit:
		l.count.Overflowed++
		return
	}
	l.count.Carried++
	if len(l.queue) == 0 && p.Delay == 0 && p.Jitter == 0 {
		_, _ = l.to.Write(data) // it fails if the host is down
		return
	}
	due := time.Now().Add(p.Delay)
	if p.Jitter > 0 {
		due = due.Add(time.Duration(l.rng.Int64N(int64(p.Jitter))))
	}
	if n := len(l.queue); n > 0 && due.Before(l.queue[n-1].due) {
		due = l.queue[n-1].due
	}
	l.queue = append(l.queue, packet{due, append([]byte(nil), data...)})
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run delivers the packets in the queue, until stop is closed.
func (l *link) run(stop <-chan struct{}) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if wait, some := l.deliver(time.Now()); some {
			timer.Reset(wait)
		}
		select {
		case <-l.wake:
		case <-timer.C:
		case <-stop:
			return
		}
	}
}

// deliver writes the packets that are due, and returns how long the next one has to wait.
func (l *link) deliver(now time.Time) (wait time.Duration, some bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) > 0 {
		if wait := l.queue[0].due.Sub(now); wait > 0 {
			return wait, true
		}
		_, _ = l.to.Write(l.queue[0].data)
		l.queue = l.queue[1:]
	}
	l.queue = nil
	return 0, false
}
