package steady

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/goneli/neli/lab/bench/peers"
	"github.com/goneli/neli/lab/bench/trial"
	"github.com/goneli/neli/lab/pause"
	"github.com/goneli/neli/lab/witness"
)

const (
	rollingT      = 2 * time.Second
	rollingGroups = 3 // of each nomination
	// pause between the moment when a broker is back and all replicas are in sync, and the next
	// restart
	between = 10 * time.Second
)

// Rolling restarts three brokers in turn, some times over, under groups of both
// nominations.
func Rolling(ctx context.Context, place peers.Place, rounds int, log Log) ([]Outcome, error) {
	kafka, err := peers.StartKafka(ctx, place, 3)
	if err != nil {
		return nil, err
	}
	defer kafka.Stop()
	var calm sync.Mutex
	groups := map[bool][]*trial.Group{}
	for _, assigned := range []bool{false, true} {
		for i := range rollingGroups {
			g := trial.NewGroup(place, peers.NeliSystem("", assigned, rollingT), kafka, fmt.Sprintf("rolling-%v-%d", assigned, i), sampling, &calm)
			defer g.Close()
			if err := g.Ready(ctx, peers.Size); err != nil {
				return nil, err
			}
			groups[assigned] = append(groups[assigned], g)
		}
	}
	if err := pause.For(ctx, between); err != nil {
		return nil, err
	}
	outcomes := []Outcome{
		{What: "rolling restart of 3 brokers, Open", T: rollingT.String(), Groups: rollingGroups},
		{What: "rolling restart of 3 brokers, Assigned", T: rollingT.String(), Groups: rollingGroups},
	}
	since := witness.Now()
	for round := range rounds {
		for _, b := range kafka.Brokers() {
			began := time.Now()
			if err := mended(ctx, kafka, b.Restart); err != nil {
				return nil, err
			}
			log("round %d, broker %d: restarted, and all replicas in sync, in %.1f s", round+1, b.ID, time.Since(began).Seconds())
			if err := pause.For(ctx, between); err != nil {
				return nil, err
			}
			for i, assigned := range []bool{false, true} {
				outcomes[i].Restarts++
				outcomes[i].count(groups[assigned], since)
				log("round %d, broker %d, %s: %d terms lost, %.0f ms without a leader", round+1, b.ID, outcomes[i].What, outcomes[i].Lost, outcomes[i].Vacant)
			}
		}
	}
	return outcomes, nil
}

// mended brings a broker back, and returns when all brokers report that all replicas are in sync
// again.
func mended(ctx context.Context, kafka peers.Kafka, bring func(context.Context) error) error {
	return within(ctx, func(ctx context.Context) error {
		if err := bring(ctx); err != nil {
			return err
		}
		for _, other := range kafka.Brokers() {
			if err := other.WaitInSync(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// within bounds an action on a broker, which takes seconds.
func within(ctx context.Context, do func(context.Context) error) error {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	return do(ctx)
}
