package neli

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/goneli/neli/internal/elector"
)

const (
	// healthEvery is the interval between calls of Config.Healthy, and healthLimit how long a call may take.
	healthEvery = time.Second
	healthLimit = 5 * time.Second
)

var (
	errHealthHangs  = errors.New("the check has not returned for " + healthLimit.String())
	errHealthGoexit = errors.New("the check ended its goroutine")
)

// healthWatch is the goroutine that calls Config.Healthy.
type healthWatch struct {
	stop func() // ends the goroutine and waits for it
}

// watchHealth starts the calls of Config.Healthy, if that is set. A process counts as unhealthy
// until the first call has returned nil.
func (n *Neli) watchHealth() healthWatch {
	if n.set.Healthy == nil || n.set.Observer {
		return healthWatch{func() {}}
	}
	ctx, stop := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		unhealthy, said := true, false
		tick := time.NewTicker(healthEvery)
		defer tick.Stop()
		for ctx.Err() == nil { // a tick may have come during a long call
			n.checkHealth(func(err error) {
				if unhealthy == (err != nil) && said {
					return
				}
				unhealthy, said = err != nil, true
				n.sayHealth(err)
				n.adjust(func(d *elector.Desired) { d.Unhealthy = unhealthy })
			})
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
	return healthWatch{func() { stop(); work.Wait() }}
}

// checkHealth calls Config.Healthy and passes its result to judge. If the call takes too long, judge
// gets errHealthHangs first.
func (n *Neli) checkHealth(judge func(error)) {
	answer := make(chan error, 1)
	var call sync.WaitGroup
	call.Go(func() {
		err := errHealthGoexit // if Healthy ends its goroutine, as t.FailNow does: without an answer no check would follow
		defer func() { answer <- err }()
		err = n.set.Healthy()
	})
	defer call.Wait()
	limit := time.NewTimer(healthLimit)
	defer limit.Stop()
	select {
	case err := <-answer:
		judge(err)
	case <-limit.C:
		judge(errHealthHangs)
		judge(<-answer)
	}
}

func (n *Neli) sayHealth(err error) {
	level, text := slog.LevelInfo, "health check passed: contending"
	var args []any
	if err != nil {
		level, text, args = slog.LevelWarn, "health check failed: draining", []any{"error", err}
	}
	n.set.logger.Log(context.Background(), level, text, args...)
}
