package guard

import (
	"os"
	"time"
)

// second is the second guard: it starts nothing, and kills the command's cgroup when the
// lease is over or the elector has gone, whatever has become of the first guard. It ends with
// the elector's orders, and leaves no cgroup behind.
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
	var deadline time.Duration // 0: it was told of none yet
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
		case told.deadline != deadline: // only ever later
			deadline = told.deadline
			alarm.set(deadline)
		case deadline > 0 && Now() >= deadline:
			_ = c.Kill() // the first guard tells of an error
		}
	}
}
