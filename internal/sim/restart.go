package sim

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goneli/neli/kafka"
)

// Restart closes a crowd, each member some time after the one before, and then starts as many. It
// asserts that something is led within a second after the last start. Reading a record takes as long
// as if a hundred members shared two cores. When they close together, all lag behind, and their
// records must not bury what a newcomer looks for.
func Restart(t *testing.T, size Size, apart time.Duration) {
	inCrowd(t, size, 5*time.Second, func(c *crowd) {
		c.join(size.Members)
		c.allLed("at the start", c.patience()+c.timeout)
		time.Sleep(2 * c.timeout)
		c.reading.set(time.Millisecond, 200*time.Nanosecond)
		before := len(c.broker.Records(simGroup+".neli", 0))
		took := c.leave(apart)
		c.Logf("all have closed after %v, %d records", took, len(c.broker.Records(simGroup+".neli", 0))-before)
		c.comeBack(time.Second)
	})
}

// comeBack starts the members again within 5 s, in ten groups. It asserts that something is led
// within d after the last start, and everything within another T.
func (c *crowd) comeBack(d time.Duration) {
	c.Helper()
	const processes = 10
	for range processes {
		time.Sleep(500 * time.Millisecond)
		c.join(max(1, c.Size.Members/processes))
	}
	for began := time.Now(); c.led() == 0; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) >= d {
			c.Fatalf("nothing is led %v after the last member has started", d)
		}
	}
	c.allLed("after the restart", c.timeout)
}

// leave closes all members in good order, each some time after the one before. It returns how long that took.
func (c *crowd) leave(apart time.Duration) time.Duration {
	c.Helper()
	began := time.Now()
	done := make(chan error)
	for _, m := range c.members {
		go func() { done <- m.Close() }()
		time.Sleep(apart)
	}
	for range c.members {
		if err := <-done; err != nil {
			c.Error(err)
		}
	}
	c.members = nil
	return time.Since(began)
}

// toil is the cost of reading a record. In simulated time, computing takes no time by itself.
type toil struct{ each, perByte atomic.Int64 }

func (l *toil) set(each, perByte time.Duration) {
	l.each.Store(int64(each))
	l.perByte.Store(int64(perByte))
}

// laborious is a provider whose readers take time.
type laborious struct {
	kafka.Provider
	toil *toil
}

func (l laborious) LogReader(props map[string]string, log *slog.Logger) (kafka.LogReader, error) {
	r, err := l.Provider.LogReader(props, log)
	return laboriousReader{r, l.toil}, err
}

type laboriousReader struct {
	kafka.LogReader
	toil *toil
}

func (l laboriousReader) Poll(timeout time.Duration) (kafka.Record, bool, error) {
	r, ok, err := l.LogReader.Poll(timeout)
	if d := l.toil.each.Load() + int64(len(r.Value))*l.toil.perByte.Load(); ok && d > 0 {
		time.Sleep(time.Duration(d))
	}
	return r, ok, err
}
