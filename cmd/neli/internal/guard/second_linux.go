package guard

import (
	"io"
	"time"
)

// second is the second guard: it starts nothing, and kills the command's cgroup when the
// lease is over or the elector has gone, whatever has become of the first guard. It ends with
// the elector's orders, and leaves no cgroup behind.
func second(orders io.Reader, c *Cgroup) int {
	outliveSignals()
	if c == nil {
		return codeOwn
	}
	g := &guard{orders: make(chan order), gone: make(chan struct{})}
	go g.listen(orders)
	alarm, err := newAlarm()
	if err != nil {
		return codeOwn
	}
	var deadline time.Duration
	for {
		select {
		case o := <-g.orders:
			if o.kind == until && time.Duration(o.value) > deadline {
				deadline = time.Duration(o.value)
				alarm.set(deadline)
			}
		case <-alarm.fired:
			if Now() >= deadline {
				_ = c.Kill() // the first guard tells of an error
			}
		case <-g.gone:
			if c.Empty() != nil {
				return codeOwn
			}
			_ = c.Close()
			return 0
		}
	}
}
