package guard

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// orders are the elector's orders to a guard, read from a pipe. A guard that was stopped or starved
// may find its alarm and newer orders at the same time. Then the newer orders count: the method now
// empties the pipe before it returns the deadline.
type orders struct {
	pipe *os.File
	news chan struct{} // something was read, or the elector is gone

	mu       sync.Mutex // held while reading, too: each order that was read is noted before anyone looks
	deadline time.Duration
	signals  []syscall.Signal
	gone     bool
}

func newOrders(pipe *os.File) *orders { return &orders{pipe: pipe, news: make(chan struct{}, 1)} }

// told is what the elector has ordered so far.
type told struct {
	deadline time.Duration    // the newest, by Now
	signals  []syscall.Signal // to be delivered; each is returned once
	gone     bool             // there will be no more orders
}

// listen reads until the elector is gone.
func (o *orders) listen() {
	for !o.read(-1) {
		select {
		case o.news <- struct{}{}:
		default:
		}
	}
	close(o.news)
}

// now returns what the elector has ordered up to this moment.
func (o *orders) now() told {
	o.read(0)
	o.mu.Lock()
	defer o.mu.Unlock()
	t := told{o.deadline, o.signals, o.gone}
	o.signals = nil
	return t
}

// read waits for orders, for up to wait milliseconds (-1: without limit), and reads those in the pipe.
// It reports whether the elector is gone.
func (o *orders) read(wait int) (gone bool) {
	if wait != 0 {
		o.readable(wait)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.gone && o.readable(0) {
		order, err := readOrder(o.pipe) // does not block: each order is written as a whole
		switch {
		case err != nil:
			o.gone = true
		case order.kind == deliver:
			o.signals = append(o.signals, syscall.Signal(order.value))
		default:
			o.deadline = max(o.deadline, time.Duration(order.value))
		}
	}
	return o.gone
}

// readable waits for up to wait milliseconds, and reports whether the pipe has data or has ended.
func (o *orders) readable(wait int) bool {
	poll := []unix.PollFd{{Fd: int32(o.pipe.Fd()), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(poll, wait)
		if !errors.Is(err, unix.EINTR) {
			return n > 0 || err != nil // after an error, reading returns what is wrong
		}
	}
}
