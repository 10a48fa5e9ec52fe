package guard

import (
	"os"
	"time"
)

// second is the second guard. It starts nothing. It kills the command's cgroup when the lease is over
// or the elector is gone, whatever happened to the first guard. When the orders end, it removes the
// cgroup and ends.
func second(pipe *os.File, c *Cgroup) int {
	outliveSignals()
	if c == nil {
		return codeOwn
	}
	o := newOrders(pipe)
	go o.listen()
	alarm, err := newAlarm()
	if err != nil {
		return codeOwn
	}
	var deadline time.Duration // 0: none yet
	for {
		select {
		case <-o.news:
		case <-alarm.fired:
		}
		switch told := o.now(); {
		case told.gone:
			if c.Empty() != nil {
				return codeOwn
			}
			_ = c.Close()
			return 0
		case told.deadline != deadline: // a deadline never becomes earlier
			deadline = told.deadline
			alarm.set(deadline)
		case deadline > 0 && Now() >= deadline:
			_ = c.Kill() // the first guard reports errors
		}
	}
}
