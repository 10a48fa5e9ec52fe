package nelitest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/drive"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

// scene is a topic "c" of one partition, a member "a" that writes to it and a member "b" that reads it.
type scene struct {
	b *nelitest.Broker
	p kafka.Producer
	r kafka.LogReader
}

// inScene runs f in a bubble; message.timeout.ms is 10 s.
func inScene(t *testing.T, f func(t *testing.T, s scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := nelitest.NewBroker(nelitest.Options{})
		require.NoError(t, b.CreateTopic("c", 1))
		s := scene{
			b: b,
			p: newProducer(t, b.Provider("a"), map[string]string{"message.timeout.ms": "10000"}),
			r: newReader(t, b.Provider("b")),
		}
		require.NoError(t, s.r.Assign("c", []int64{0}))
		f(t, s)
	})
}

// send appends a value. The returned function waits for the report, and returns the time it took and its error.
func (s scene) send(t *testing.T, value string) func() (time.Duration, error) {
	t.Helper()
	type result struct {
		took time.Duration
		err  error
	}
	begin, done := time.Now(), make(chan result, 1)
	require.NoError(t, s.p.Append("c", 0, []byte(value), func(err error) { done <- result{time.Since(begin), err} }))
	return func() (time.Duration, error) {
		r := <-done
		return r.took, r.err
	}
}

func (s scene) log() []string { return drive.Values(s.b.Records("c", 0)) }

// nothing asserts that no record comes for d.
func (s scene) nothing(t *testing.T, d time.Duration) {
	t.Helper()
	_, ok, err := s.r.Poll(d)
	require.NoError(t, err)
	require.False(t, ok)
}

func TestLatencies(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		begin := time.Now()
		report := s.send(t, "x")
		drive.Read(t, s.r, 1)
		require.InDelta(t, 2*time.Millisecond, time.Since(begin), 100)
		took, err := report()
		require.NoError(t, err)
		require.InDelta(t, 2*time.Millisecond, took, 100)
		s.b.SlowReads("b", time.Second)
		begin = time.Now()
		s.send(t, "y")
		drive.Read(t, s.r, 1)
		require.InDelta(t, time.Second+2*time.Millisecond, time.Since(begin), 100)
	})
}

func TestAppendsCutOff(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		s.b.CutOff("a", nelitest.LinkAppends)
		first := s.send(t, "first")
		s.nothing(t, 5*time.Second)
		second := s.send(t, "second")
		s.nothing(t, 7*time.Second)
		took, err := first()
		require.Error(t, err)
		require.InDelta(t, 10*time.Second, took, 100)
		s.b.Restore("a", nelitest.LinkAll)
		_, err = second()
		require.NoError(t, err)
		require.Equal(t, []string{"second"}, s.log())
	})
}

func TestAcksLost(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		s.b.CutOff("a", nelitest.LinkAcks)
		report := s.send(t, "x")
		require.Equal(t, []string{"x"}, drive.Values(drive.Read(t, s.r, 1)))
		s.b.Restore("a", nelitest.LinkAcks)
		took, err := report()
		require.Error(t, err)
		require.InDelta(t, 10*time.Second, took, 100)
		require.Len(t, s.log(), 1)
	})
}

func TestReadsCutOff(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		s.b.CutOff("b", nelitest.LinkReads)
		s.send(t, "x")
		s.nothing(t, time.Minute)
		s.send(t, "y")
		s.nothing(t, time.Minute)
		s.b.Restore("b", nelitest.LinkReads)
		begin := time.Now()
		require.Equal(t, []string{"x", "y"}, drive.Values(drive.Read(t, s.r, 2)))
		require.InDelta(t, time.Millisecond, time.Since(begin), 100)
	})
}

func TestDelay(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		s.b.Delay("a", time.Second)
		slow := s.send(t, "slow")
		s.b.Delay("a", 0)
		quick := s.send(t, "quick") // does not overtake
		took, err := quick()
		require.NoError(t, err)
		require.InDelta(t, time.Second+2*time.Millisecond, took, 100)
		_, err = slow()
		require.NoError(t, err)
		require.Equal(t, []string{"slow", "quick"}, s.log())
	})
}

func TestDelayNext(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		s.b.DelayNext("a", time.Minute)
		slow, quick := s.send(t, "slow"), s.send(t, "quick")
		_, err := quick()
		require.NoError(t, err)
		took, err := slow()
		require.Error(t, err) // the outcome is unknown: the record still arrives
		require.InDelta(t, 10*time.Second, took, 100)
		require.NoError(t, s.p.Close())
		s.b.CutOff("a", nelitest.LinkAll)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"quick", "slow"}, s.log())
	})
}

func TestDuplicate(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		s.b.Duplicate("a", 2, time.Second)
		for _, v := range []string{"0", "1", "2"} {
			_, err := s.send(t, v)()
			require.NoError(t, err)
		}
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{"0", "1", "2", "0", "1"}, s.log())
	})
}

func TestPurgeDropsQueuedRecordsNotThoseInFlight(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		s.b.CutOff("a", nelitest.LinkAppends)
		queued := s.send(t, "queued")
		time.Sleep(time.Second)
		s.b.Restore("b", nelitest.LinkAll) // has no effect on a
		s.p.Purge()
		s.b.Restore("a", nelitest.LinkAll)
		underway := s.send(t, "under way")
		s.p.Purge()
		_, err := queued()
		require.Error(t, err)
		_, err = underway()
		require.Error(t, err)
		time.Sleep(time.Second)
		require.Equal(t, []string{"under way"}, s.log())
	})
}

func TestStop(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		_, err := s.send(t, "before")()
		require.NoError(t, err)
		drive.Read(t, s.r, 1)
		s.b.Stop()
		_, _, err = s.r.Poll(time.Second)
		require.Error(t, err)
		x, y := s.send(t, "x"), s.send(t, "y")
		s.nothing(t, 5*time.Second)
		s.b.Start()
		s.b.Stop() // before they could arrive
		_, _, err = s.r.Poll(time.Second)
		require.Error(t, err)
		s.b.Start()
		for _, report := range []func() (time.Duration, error){x, y} {
			_, err = report()
			require.NoError(t, err)
		}
		require.Equal(t, []string{"before", "x", "y"}, s.log())
		require.Len(t, drive.Read(t, s.r, 2), 2)
	})
}

func TestRefuse(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		s.b.Refuse("a", nelitest.LinkAppends, kafka.ErrAuthorization)
		took, err := s.send(t, "x")()
		require.ErrorIs(t, err, kafka.ErrAuthorization)
		require.Less(t, took, time.Second)
		s.b.Refuse("a", nelitest.LinkAppends, nil)
		_, err = s.send(t, "y")()
		require.NoError(t, err)

		s.b.Refuse("b", nelitest.LinkReads, kafka.ErrAuthentication)
		require.NoError(t, s.r.Assign("c", []int64{0}))
		_, _, err = s.r.Poll(time.Minute)
		require.ErrorIs(t, err, kafka.ErrAuthentication)
		s.b.Refuse("b", nelitest.LinkReads, nil)
		require.Equal(t, []string{"y"}, drive.Values(drive.Read(t, s.r, 1)))
	})
}

func TestAdminFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nelitest.NewBroker(nelitest.Options{})
		require.NoError(t, b.CreateTopic("c", 1))
		p := b.Provider("a")
		a := newAdmin(t, p, newProducer(t, p, nil))
		_, err := b.Provider("a").Admin(newProducer(t, p, nil))
		require.Error(t, err) // the producer is another provider's

		b.CutOff("a", nelitest.LinkAdmin)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err = a.Topic(ctx, "c")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.AfterFunc(time.Second, func() { b.Restore("a", nelitest.LinkAdmin) })
		_, err = a.Topic(context.Background(), "c")
		require.NoError(t, err)
		b.Refuse("a", nelitest.LinkAdmin, kafka.ErrAuthorization)
		_, err = a.Topic(context.Background(), "c")
		require.ErrorIs(t, err, kafka.ErrAuthorization)
		b.Stop()
		_, err = a.Topic(context.Background(), "c")
		require.Error(t, err)
		b.Start()
		b.CutOff("a", nelitest.LinkAdmin)
		time.AfterFunc(time.Second, a.Close)
		_, err = a.Topic(context.Background(), "c")
		require.Error(t, err)
	})
}

func TestKillFreesAdminCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nelitest.NewBroker(nelitest.Options{})
		p := b.Provider("a")
		a := newAdmin(t, p, newProducer(t, p, nil))
		b.CutOff("a", nelitest.LinkAdmin)
		time.AfterFunc(time.Second, func() { b.Kill("a") })
		_, err := a.Brokers(context.Background(), false)
		require.ErrorIs(t, err, kafka.ErrClientFatal)
	})
}

// A busy broker processes one record after the other, and writes even those that their senders have given up.
func TestBusy(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		s.b.Busy(4 * time.Second)
		first, second, third := s.send(t, "1"), s.send(t, "2"), s.send(t, "3")
		took, err := first()
		require.NoError(t, err)
		require.InDelta(t, 4*time.Second, took, float64(10*time.Millisecond))
		took, err = second()
		require.NoError(t, err)
		require.InDelta(t, 8*time.Second, took, float64(10*time.Millisecond))
		took, err = third()
		require.Error(t, err)
		require.Equal(t, 10*time.Second, took, "message.timeout.ms")
		require.Equal(t, []string{"1", "2"}, s.log())
		time.Sleep(3 * time.Second)
		require.Equal(t, []string{"1", "2", "3"}, s.log())
	})
}

// Records that wait when the broker stops are sent again, unless they were given up.
func TestBusyAndStopped(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		s.b.Busy(4 * time.Second)
		first, second := s.send(t, "1"), s.send(t, "2")
		time.Sleep(time.Second)
		s.b.Stop()
		time.Sleep(4 * time.Second)
		s.b.Start()
		_, err := first()
		require.NoError(t, err)
		_, err = second()
		require.Error(t, err, "it was to come 13 s after it was sent")
		time.Sleep(10 * time.Second)
		require.Equal(t, []string{"1", "2"}, s.log())
	})
}

// Reach over a cut link waits until its context or its client ends, or the link is restored.
func TestReachEndsWithItsClientOrLink(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*nelitest.Broker, kafka.GroupConsumer)
		want error
	}{
		"the broker is closed": {func(b *nelitest.Broker, _ kafka.GroupConsumer) { b.Close() }, kafka.ErrClientFatal},
		"the member dies":      {func(b *nelitest.Broker, _ kafka.GroupConsumer) { b.Kill("a") }, kafka.ErrClientFatal},
		"the link is restored": {func(b *nelitest.Broker, _ kafka.GroupConsumer) { b.Restore("a", nelitest.LinkGroup) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := nelitest.NewBroker(nelitest.Options{})
				g := newMember(t, b.Provider("a"))
				b.CutOff("a", nelitest.LinkGroup)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				answer := make(chan error, 1)
				go func() { answer <- g.Reach(ctx, "topic") }()
				synctest.Wait()
				require.Empty(t, answer)
				c.end(b, g)
				require.ErrorIs(t, <-answer, c.want)
				require.NoError(t, ctx.Err())
			})
		})
	}
}

// Errors wrap the context's error, also where the context has a cause of its own.
func TestCallsEndWithTheErrorOfTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nelitest.NewBroker(nelitest.Options{})
		p := b.Provider("a")
		g := newMember(t, p)
		a := newAdmin(t, p, newProducer(t, p, nil))
		b.CutOff("a", nelitest.LinkAll)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("a cause"))
		require.ErrorIs(t, g.Reach(ctx, "topic"), context.Canceled)
		_, err := a.Brokers(ctx, false)
		require.ErrorIs(t, err, context.Canceled)
	})
}
