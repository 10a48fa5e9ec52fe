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
	// healthEvery is how often the user's own check of health is made, and
	// healthLimit how long it may take.
	healthEvery = time.Second
	healthLimit = 5 * time.Second
)

var errHealthHangs = errors.New("the check has not returned for " + healthLimit.String())

// healthWatch asks the user's own check again and again.
type healthWatch struct {
	stop func() // ends it, and waits until it has ended
}

// watchHealth begins to ask Config.Healthy, if there is one. A process is taken for
// unhealthy until it has first said that it is not.
func (n *Neli) watchHealth() healthWatch {
	if n.set.healthy == nil || n.set.observer {
		return healthWatch{func() {}}
	}
	stop := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		unhealthy, said := true, false
		tick := time.NewTicker(healthEvery)
		defer tick.Stop()
		for {
			n.checkHealth(func(err error) {
				if unhealthy == (err != nil) && said {
					return
				}
				unhealthy, said = err != nil, true
				n.sayHealth(err)
				n.adjust(func(d *elector.Desired) { d.Unhealthy = unhealthy })
			})
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	})
	return healthWatch{func() { close(stop); work.Wait() }}
}

// checkHealth calls the user's check and judges what it says, and that it says
// nothing.
func (n *Neli) checkHealth(judge func(error)) {
	answer := make(chan error, 1)
	var call sync.WaitGroup
	call.Go(func() { answer <- n.set.healthy() })
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
