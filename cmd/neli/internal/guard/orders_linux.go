package guard

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// orders are what the elector has told a guard, over a pipe. A guard that was stopped, or
// starved, may find its alarm and newer orders at the same time, and then the orders count: so
// now reads what there is before it says until when the lease lasts.
type orders struct {
	pipe *os.File
	news chan struct{} // something was read, or the elector has gone

	mu       sync.Mutex // of reading, too: what was read is also noted
	deadline time.Duration
	signals  []syscall.Signal
	gone     bool
}

func newOrders(pipe *os.File) *orders { return &orders{pipe: pipe, news: make(chan struct{}, 1)} }

// told is what the elector has told.
type told struct {
	deadline time.Duration    // the newest, by Now
	signals  []syscall.Signal // to be delivered; told once
	gone     bool             // it tells nothing more
}

// listen reads until the elector has gone.
func (o *orders) listen() {
	for !o.read(-1) {
		select {
		case o.news <- struct{}{}:
		default:
		}
	}
	close(o.news)
}

// now is what the elector has told up to this moment.
func (o *orders) now() told {
	o.read(0)
	o.mu.Lock()
	defer o.mu.Unlock()
	t := told{o.deadline, o.signals, o.gone}
	o.signals = nil
	return t
}

// read reads what there is, after it has waited for so many milliseconds until there is
// something; -1: for ever. It reports whether the elector has gone.
func (o *orders) read(wait int) (gone bool) {
	if wait != 0 {
		o.readable(wait)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.gone && o.readable(0) {
		order, err := readOrder(o.pipe) // it does not wait: orders are written as a whole
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

// readable reports whether there is something to be read, or the end of it.
func (o *orders) readable(wait int) bool {
	poll := []unix.PollFd{{Fd: int32(o.pipe.Fd()), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(poll, wait)
		if !errors.Is(err, unix.EINTR) {
			return n > 0 || err != nil // with an error reading says what is wrong
		}
	}
}
