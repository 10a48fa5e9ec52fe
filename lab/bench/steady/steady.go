// Package steady counts the terms that are lost while nothing is done to the members: when nothing happens, and while brokers
// are restarted in turn or fail.
package steady

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/goneli/neli/lab/bench/measure"
	"github.com/goneli/neli/lab/bench/peers"
	"github.com/goneli/neli/lab/bench/trial"
	"github.com/goneli/neli/lab/pause"
	"github.com/goneli/neli/lab/witness"
)

// Outcome is the result of one or several groups of three.
type Outcome struct {
	Run      string // the run's key in the results, which have its time, machine and command
	What     string
	T        string
	Groups   int
	Minutes  float64
	Restarts int     `json:",omitempty"` // of brokers
	Lost     int     // terms
	Vacant   float64 // ms without a leader, of all groups together
	Double   float64 // ms with two
}

// sampling is less frequent than in trials, since the effect of a lost term lasts much longer.
const sampling = 5 * time.Millisecond

// Log receives the progress.
type Log func(string, ...any)

// Quiet watches a group with T = 300 ms on one broker and one with T = 500 ms on
// three, side by side.
func Quiet(ctx context.Context, place peers.Place, length time.Duration, log Log) ([]Outcome, error) {
	var all errgroup.Group
	cases := []struct {
		brokers int
		t       time.Duration
	}{{1, 300 * time.Millisecond}, {3, 500 * time.Millisecond}}
	outcomes := make([]Outcome, len(cases))
	var calm sync.Mutex
	for i, c := range cases {
		all.Go(func() error {
			kafka, err := peers.StartKafka(ctx, place, c.brokers)
			if err != nil {
				return err
			}
			defer kafka.Stop()
			g := trial.NewGroup(place, peers.NeliSystem("", false, c.t), kafka, fmt.Sprintf("quiet-%d", c.brokers), sampling, &calm)
			defer g.Close()
			if err := settle(ctx, g); err != nil {
				return err
			}
			outcomes[i] = Outcome{What: fmt.Sprintf("quiet, brokers: %d", c.brokers), T: c.t.String(), Groups: 1}
			return outcomes[i].watch(ctx, []*trial.Group{g}, length, log)
		})
	}
	return outcomes, all.Wait()
}

// settle waits until a group is whole, and a little longer, since starting brokers and processes and creating topics disturb
// it.
func settle(ctx context.Context, g *trial.Group) error {
	if err := g.Ready(ctx, peers.Size); err != nil {
		return err
	}
	return pause.For(ctx, 10*time.Second)
}

// watch counts for the given time. If it is interrupted, the outcome is that of a shorter time.
func (o *Outcome) watch(ctx context.Context, groups []*trial.Group, length time.Duration, log Log) error {
	since := witness.Now()
	for end := since + length; witness.Now() < end && ctx.Err() == nil; {
		_ = pause.For(ctx, min(time.Minute, end-witness.Now()))
		o.count(groups, since)
		log("%s, T = %s: %.1f min, %d terms lost, %.0f ms without a leader", o.What, o.T, o.Minutes, o.Lost, o.Vacant)
	}
	return nil
}

func (o *Outcome) count(groups []*trial.Group, since time.Duration) {
	o.Lost, o.Vacant, o.Double = 0, 0, 0
	for _, g := range groups {
		l := g.Losses(since)
		o.Lost += l.Terms
		o.Vacant += measure.Milliseconds(l.Vacant)
		o.Double += measure.Milliseconds(l.Double)
	}
	o.Minutes = (witness.Now() - since).Minutes()
}
