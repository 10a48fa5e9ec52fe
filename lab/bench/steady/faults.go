package steady

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/goneli/neli/lab/bench/peers"
	"github.com/goneli/neli/lab/bench/trial"
	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/pause"
	"github.com/goneli/neli/lab/witness"
)

// subject is a group that goes through all faults.
type subject struct {
	*trial.Group
	name  string
	t     time.Duration
	topic string // its leader is the partition's broker; "": each broker has one of its logs
}

// kind is a way to disturb one broker.
type kind struct {
	name   string
	away   time.Duration
	strike func(context.Context, *kafkatest.Broker) error
	mend   func(context.Context, *kafkatest.Broker) error
}

// signals are the kinds that strike one broker at a time.
func signals(away time.Duration) []kind {
	back := func(ctx context.Context, b *kafkatest.Broker) error { return b.Restart(ctx) }
	return []kind{
		{"SIGKILL", away, func(_ context.Context, b *kafkatest.Broker) error { b.Kill(); return nil }, back},
		{"SIGSTOP", away, func(_ context.Context, b *kafkatest.Broker) error { return b.Suspend() },
			func(_ context.Context, b *kafkatest.Broker) error { return b.Resume() }},
		{"SIGTERM", away, func(ctx context.Context, b *kafkatest.Broker) error { return b.Terminate(ctx) }, back},
	}
}

// rolling is a restart of one broker, before that of the next.
func rolling() kind {
	return kind{"rolling restart", 0, func(context.Context, *kafkatest.Broker) error { return nil },
		func(ctx context.Context, b *kafkatest.Broker) error { return b.Restart(ctx) }}
}

// Roles of brokers. A single broker that is struck has one of the first two, and never both.
const (
	ofPartition  = "the partition's broker"
	ofController = "the active controller"
	ofAll        = "all brokers, one by one"
)

// faults are the brokers, and the groups that depend on them.
type faults struct {
	kafka    peers.Kafka
	subjects []subject
	rows     ledger
	log      Log
}

// Faults inflicts each kind of fault, n times, on three brokers with stock settings. They carry
// three groups side by side: two on a replicated log, one on three logs of one replica. A broker
// that is struck is away for the given time. The next fault comes some seconds after all replicas
// are in sync again and all groups are led.
func Faults(ctx context.Context, place peers.Place, n int, away time.Duration, log Log) ([]Fault, error) {
	kafka, err := peers.StartKafka(ctx, place, 3)
	if err != nil {
		return nil, err
	}
	defer kafka.Stop()
	f := &faults{kafka: kafka, log: log}
	defer f.close()
	if err := f.gather(ctx, place); err != nil {
		return nil, err
	}
	for round := range n {
		log("round %d of %d", round+1, n)
		for _, part := range []string{ofPartition, ofController} {
			for _, k := range signals(away) {
				if err := f.single(ctx, k, part); err != nil {
					return nil, fmt.Errorf("%s of %s: %w", k.name, part, err)
				}
			}
		}
		for _, b := range kafka.Brokers() {
			if err := f.once(ctx, rolling(), ofAll, b); err != nil {
				return nil, fmt.Errorf("rolling restart, broker %d: %w", b.ID, err)
			}
		}
	}
	return f.rows, nil
}

// gather starts the groups, and waits until they have settled.
func (f *faults) gather(ctx context.Context, place peers.Place) error {
	const short, usual = 500 * time.Millisecond, 5 * time.Second
	var calm sync.Mutex
	for i, system := range []peers.System{
		peers.NeliSystem("", false, short), peers.NeliSystem("", false, usual), peers.LogsSystem("", 3, short),
	} {
		name := fmt.Sprintf("faults-%d", i)
		s := subject{trial.NewGroup(place, system, f.kafka, name, sampling, &calm), "one replicated log", system.Lease, name + ".neli"}
		if i == 2 {
			s.name, s.topic = "`Logs: 3`", ""
		}
		f.subjects = append(f.subjects, s)
		if err := s.Ready(ctx, peers.Size); err != nil {
			return err
		}
	}
	return pause.For(ctx, between)
}

func (f *faults) close() {
	for _, s := range f.subjects {
		s.Close()
	}
}

// single strikes the broker that has a role.
func (f *faults) single(ctx context.Context, k kind, part string) error {
	controller, leader, err := f.apart(ctx)
	if err != nil {
		return err
	}
	if part == ofController {
		return f.once(ctx, k, part, controller)
	}
	return f.once(ctx, k, part, leader)
}

// apart makes a broker other than the active controller lead all replicated partitions, so that a
// fault strikes only one of the two, and waits until the groups have settled. If the controller
// moves meanwhile, as on a busy machine, it begins again.
func (f *faults) apart(ctx context.Context) (controller, leader *kafkatest.Broker, err error) {
	for range 10 {
		controller, err = f.kafka.Controller(ctx)
		if err != nil {
			return nil, nil, err
		}
		brokers := f.kafka.Brokers()
		leader = brokers[slices.IndexFunc(brokers, func(b *kafkatest.Broker) bool { return b != controller })]
		for _, s := range f.subjects {
			if s.topic == "" {
				continue
			}
			if err := within(ctx, func(ctx context.Context) error { return leader.Lead(ctx, s.topic) }); err != nil {
				return nil, nil, err
			}
		}
		if err := pause.For(ctx, between); err != nil {
			return nil, nil, err
		}
		if now, err := f.kafka.Controller(ctx); err == nil && now == controller {
			return controller, leader, nil
		}
	}
	return nil, nil, errors.New("the controller keeps moving")
}

// once strikes a broker and repairs it. It measures from the strike until everything is well again
// after the repair.
func (f *faults) once(ctx context.Context, k kind, part string, b *kafkatest.Broker) error {
	if err := f.led(ctx); err != nil {
		return err
	}
	since := witness.Now()
	if err := within(ctx, func(ctx context.Context) error { return k.strike(ctx, b) }); err != nil {
		return err
	}
	if err := pause.For(ctx, since+k.away-witness.Now()); err != nil {
		return err
	}
	if err := mended(ctx, f.kafka, func(ctx context.Context) error { return k.mend(ctx, b) }); err != nil {
		return err
	}
	took := witness.Now() - since
	if err := pause.For(ctx, between); err != nil {
		return err
	}
	if err := f.led(ctx); err != nil {
		return err
	}
	for _, s := range f.subjects {
		l := s.Losses(since)
		f.rows.add(k, part, s.name, s.t, l)
		f.log("%s of %s, broker %d, all in sync after %.1f s: %s, T = %v: %d terms lost, without a leader for %v, at most %v at a stretch, with two for %v",
			k.name, part, b.ID, took.Seconds(), s.name, s.t, l.Terms, rounded(l.Vacant), rounded(l.Longest), rounded(l.Double))
	}
	return nil
}

func rounded(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// led waits until each group has a leader, and checks that each still has three members.
func (f *faults) led(ctx context.Context) error {
	for _, s := range f.subjects {
		if err := errors.Join(s.Lead(ctx), s.Whole()); err != nil {
			return err
		}
	}
	return nil
}
