//go:build unix

package main

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/pause"
)

// On three brokers, with three replicas of which two must be in sync, partitions always have a leader, as transactions
// need it. The brokers crash or are restarted one after another, while relays are killed and suspended and the database
// crashes. The test ends when each broker has been down once, and with NELI_OUTBOX_FOR=10m not before ten minutes.
func TestNothingIsLostOnThreeBrokers(t *testing.T) {
	span := time.Duration(0)
	if text := os.Getenv("NELI_OUTBOX_FOR"); text != "" {
		var err error
		span, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	r := newTrial(t, kafkatest.Options{Brokers: 3}, 10_000, "transactions", "header")
	b := &brokersInTurn{trial: r}
	ctx, cancel := context.WithCancel(t.Context())
	var turns sync.WaitGroup
	turns.Go(func() { b.fail(ctx) })
	stop := func() { cancel(); turns.Wait() }
	defer stop()
	r.disturb(func() bool {
		return t.Failed() || b.crashed.Load()+b.restarted.Load() >= 3 && r.inserted() && time.Since(r.began) >= span
	}, r.kill, r.suspend, r.failOver)
	stop()
	require.False(t, t.Failed(), "a broker does not come back")
	r.crashes = int(b.crashed.Load())
	r.check()
	unwritten := r.unwritten()
	t.Logf("%d brokers were restarted besides; the ends of %d transactions were not written", b.restarted.Load(), unwritten)
	require.Zero(t, unwritten, "each partition had a leader, and KAFKA-20734 needs one without")
}

// brokersInTurn makes one broker after another fail.
type brokersInTurn struct {
	*trial
	crashed, restarted atomic.Int32
}

// fail crashes or restarts the next broker when all replicas are in sync again, until ctx ends.
func (b *brokersInTurn) fail(ctx context.Context) {
	brokers := b.kafka.Brokers()
	for i := 0; pause.For(ctx, 2*time.Second) == nil; i++ {
		if err := b.turn(i%2 == 0, brokers[i%len(brokers)], brokers[(i+1)%len(brokers)]); err != nil {
			b.t.Errorf("turn %d: %v", i, err)
			return
		}
	}
}

// turn kills a broker, or asks it to end, starts it again, and waits for its replicas.
func (b *brokersInTurn) turn(crash bool, broker, other *kafkatest.Broker) error {
	ctx, cancel := context.WithTimeout(b.t.Context(), 5*time.Minute)
	defer cancel()
	count := &b.restarted
	if crash {
		count = &b.crashed
		broker.Kill()
	}
	if err := broker.Restart(ctx); err != nil {
		return err
	}
	count.Add(1)
	return other.WaitInSync(ctx)
}
