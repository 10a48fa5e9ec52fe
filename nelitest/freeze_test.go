package nelitest_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// worker acts once a second while it leads, in one of several ways, and counts its actions.
type worker struct {
	*neli.Neli
	deeds atomic.Int32
	leads atomic.Bool // what the barrier last said
}

func (w *worker) work() { w.deeds.Add(1) }

// lead calls Lead with a loop.
func lead(loop func(ctx context.Context, w *worker, l neli.Leadership)) func(*worker) error {
	return func(w *worker) error {
		return w.Lead(context.Background(), func(ctx context.Context, l neli.Leadership) error {
			loop(ctx, w, l)
			return nil
		})
	}
}

// workers are ways to work, and whether they act after a suspension.
var workers = map[string]struct {
	drive func(*worker) error
	stale bool
}{
	"asks the context": {lead(func(ctx context.Context, w *worker, _ neli.Leadership) {
		for ctx.Err() == nil {
			w.work()
			time.Sleep(time.Second)
		}
	}), false},
	"asks the term": {lead(func(_ context.Context, w *worker, l neli.Leadership) {
		for l.Valid() {
			w.work()
			time.Sleep(time.Second)
		}
	}), false},
	"waits, and then asks the context": {lead(func(ctx context.Context, w *worker, _ neli.Leadership) {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				return
			}
			w.work()
		}
	}), false},
	"derives a context for each deed": {lead(func(ctx context.Context, w *worker, l neli.Leadership) {
		for {
			short, cancel := context.WithTimeout(ctx, l.Remaining())
			err := short.Err()
			cancel()
			if err != nil {
				return
			}
			w.work()
			time.Sleep(time.Second)
		}
	}), false},
	"only waits": {lead(func(ctx context.Context, w *worker, _ neli.Leadership) {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.work()
			case <-ctx.Done():
				return
			}
		}
	}), true},
	"has derived a context": {lead(func(ctx context.Context, w *worker, _ neli.Leadership) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for ctx.Err() == nil {
			w.work()
			time.Sleep(time.Second)
		}
	}), true},
	"is a task": {func(w *worker) error {
		p, err := w.Background(func() {
			w.work()
			time.Sleep(time.Second)
		})
		return errors.Join(err, p.Await())
	}, false},
	"is a task that waits first": {func(w *worker) error {
		p, err := w.Background(func() {
			time.Sleep(time.Second)
			w.work()
		})
		return errors.Join(err, p.Await())
	}, true},
	"pulses": {func(w *worker) error {
		for {
			leads, err := w.Pulse(time.Second)
			if err != nil {
				return err
			}
			if leads {
				w.work()
				time.Sleep(time.Second)
			}
		}
	}, false},
	"believes the barrier": {func(w *worker) error {
		var again *time.Timer
		again = time.AfterFunc(time.Second, func() {
			if w.leads.Load() {
				w.work()
			}
			if w.State() == neli.StateLive {
				again.Reset(time.Second)
			}
		})
		defer again.Stop()
		for {
			if _, err := w.Pulse(time.Minute); err != nil {
				return err
			}
			time.Sleep(time.Second)
		}
	}, true},
}

// A test with Freeze finds the workers that act as leaders after a suspension, and no others.
func TestFreezeFindsStaleLeaders(t *testing.T) {
	for name, c := range workers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := nelitest.NewBroker(nelitest.Options{})
				defer b.Close()
				alice := employ(t, b, "alice", c.drive)
				time.Sleep(time.Minute)
				bob := employ(t, b, "bob", c.drive)
				time.Sleep(30*time.Second + 300*time.Millisecond)
				require.InDelta(t, 90, alice.deeds.Load(), 10)
				require.True(t, alice.IsLeader())

				b.Freeze("alice")
				require.False(t, alice.IsLeader())
				deeds := alice.deeds.Load()
				time.Sleep(10 * time.Second) // 2 T
				require.True(t, bob.IsLeader())
				require.Positive(t, bob.deeds.Load())
				require.Equal(t, c.stale, alice.deeds.Load() > deeds)

				b.Resume("alice")
				time.Sleep(time.Second)
				deeds = alice.deeds.Load()
				require.False(t, alice.leads.Load(), "it was told")
				time.Sleep(9 * time.Second)
				require.Equal(t, deeds, alice.deeds.Load(), "awake, it does nothing")
			})
		})
	}
}

// employ starts a worker.
func employ(t *testing.T, b *nelitest.Broker, name string, drive func(*worker) error) *worker {
	w := &worker{}
	n, err := neli.New(neli.Config{LeaderGroupID: "g", Name: name, DisableRebalance: true, Provider: b.Provider(name)}, func(e neli.Event) {
		_, leads := e.(neli.LeaderAcquired)
		w.leads.Store(leads)
	})
	require.NoError(t, err)
	w.Neli = n
	ended := make(chan error, 1)
	go func() { ended <- drive(w) }()
	t.Cleanup(func() {
		b.Resume(name)
		require.NoError(t, n.Close())
		require.ErrorIs(t, <-ended, neli.ErrClosed)
	})
	return w
}

// A freeze that ends before the lease does not end the term.
func TestFreezeThatEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nelitest.NewBroker(nelitest.Options{})
		defer b.Close()
		alice := employ(t, b, "alice", workers["asks the context"].drive)
		time.Sleep(time.Minute)
		token, ok := alice.Token(0)
		require.True(t, ok)
		b.Freeze("alice")
		b.Freeze("alice")
		time.Sleep(2 * time.Second)
		deeds := alice.deeds.Load()
		b.Resume("alice")
		time.Sleep(10 * time.Second)
		require.InDelta(t, deeds+10, alice.deeds.Load(), 1, "the function runs again")
		again, _ := alice.Token(0)
		require.Equal(t, token, again)
	})
}

// A Pulse that waits for its turn while Lead runs does not return in a freeze either.
func TestFreezeWhileAPulseWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nelitest.NewBroker(nelitest.Options{})
		defer b.Close()
		alice := employ(t, b, "alice", workers["asks the context"].drive)
		time.Sleep(time.Minute)
		b.Freeze("alice")
		returned := make(chan bool, 1)
		go func() {
			leads, _ := alice.Pulse(time.Second)
			returned <- leads
		}()
		time.Sleep(2 * time.Second)
		require.Empty(t, returned)
		b.Resume("alice")
		require.True(t, <-returned, "it woke before its lease was over")
	})
}

// A process that is killed, or closed with its broker, is no longer frozen.
func TestFreezeEndsWithTheProcess(t *testing.T) {
	for name, end := range map[string]func(*nelitest.Broker){
		"killed": func(b *nelitest.Broker) { b.Kill("alice") },
		"closed": func(b *nelitest.Broker) { b.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := nelitest.NewBroker(nelitest.Options{})
				defer b.Close()
				alice := employ(t, b, "alice", workers["pulses"].drive)
				time.Sleep(time.Minute)
				b.Freeze("alice")
				time.Sleep(time.Minute)
				require.True(t, alice.leads.Load(), "nobody was told")
				end(b)
				time.Sleep(time.Second)
				require.False(t, alice.leads.Load())
				b.Freeze("alice") // the process, or the broker, no longer exists
			})
		})
	}
}

// In non-exclusive mode, too, checks of the clock say that nothing is led.
func TestFreezeInNonExclusiveMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nelitest.NewBroker(nelitest.Options{})
		defer b.Close()
		n, err := neli.New(neli.Config{LeaderGroupID: "g", Mode: neli.NonExclusive, Provider: b.Provider("alice")})
		require.NoError(t, err)
		defer func() { require.NoError(t, n.Close()) }()
		leads, err := n.Pulse(time.Minute)
		require.NoError(t, err)
		require.True(t, leads)
		b.Freeze("alice")
		require.False(t, n.IsLeader())
		b.Resume("alice")
		require.True(t, n.IsLeader())
	})
}

// A freeze that begins while the barrier runs keeps the next event back.
func TestFreezeWhileTheBarrierRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nelitest.NewBroker(nelitest.Options{})
		defer b.Close()
		var mu sync.Mutex
		var told []string
		n, err := neli.New(neli.Config{LeaderGroupID: "g", Name: "alice", Roles: 2, Provider: b.Provider("alice")}, func(e neli.Event) {
			mu.Lock()
			switch e.(type) {
			case neli.LeaderAcquired:
				told = append(told, "acquired")
			case neli.LeaderRevoked:
				told = append(told, "revoked")
			case neli.LeaderFenced:
				told = append(told, "fenced")
			}
			mu.Unlock()
			if _, is := e.(neli.LeaderAcquired); is {
				time.Sleep(20 * time.Second)
			}
		})
		require.NoError(t, err)
		over := make(chan error, 1)
		go func() {
			over <- n.Lead(context.Background(), func(ctx context.Context, _ neli.Leadership) error {
				<-ctx.Done()
				return nil
			})
		}()
		defer func() {
			b.Resume("alice")
			require.NoError(t, n.Close())
			require.True(t, errors.Is(<-over, neli.ErrClosed))
		}()
		for { // until the barrier is called for the first term; that call takes 20 seconds
			time.Sleep(time.Millisecond)
			mu.Lock()
			began := len(told) > 0
			mu.Unlock()
			if began {
				break
			}
		}
		time.Sleep(time.Second)
		b.Freeze("alice")
		time.Sleep(time.Minute)
		mu.Lock()
		require.Equal(t, []string{"acquired"}, told)
		mu.Unlock()
	})
}
