package nelitest_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goneli/neli/internal/drive"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// In real time, outside of a bubble, everything ends and leaves no goroutine.
func TestRealTime(t *testing.T) {
	b := nelitest.NewBroker(nelitest.Options{Jitter: time.Millisecond})
	require.NoError(t, b.CreateTopic("c", 2))
	w := b.Provider("a")
	p := newProducer(t, w, nil)
	r := newReader(t, w)
	require.NoError(t, r.Assign("c", []int64{0, 0}))
	g := newMember(t, w)
	require.NoError(t, g.Join("c", false))
	ev, err := g.Poll(time.Minute)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1}, ev.Partitions)
	drive.AppendAll(t, p, "c", 0, "0", "1")
	drive.AppendAll(t, p, "c", 1, "2")
	require.Len(t, drive.Read(t, r, 3), 3)
	_, ok, err := r.Poll(time.Millisecond)
	require.NoError(t, err)
	require.False(t, ok)
}

func TestCloseEndsAllCalls(t *testing.T) {
	b := nelitest.NewBroker(nelitest.Options{AppendLatency: time.Hour})
	require.NoError(t, b.CreateTopic("c", 1))
	w := b.Provider("a")
	p := newProducer(t, w, nil)
	r := newReader(t, w)
	require.NoError(t, r.Assign("c", []int64{0}))
	report := make(chan error, 1)
	require.NoError(t, p.Append("c", 0, nil, func(err error) { report <- err }))
	polled := make(chan error, 1)
	go func() {
		_, _, err := r.Poll(time.Hour)
		polled <- err
	}()
	b.Suspend("a")
	b.Close()
	b.Close()
	require.ErrorIs(t, <-polled, kafka.ErrClientFatal)
	require.ErrorIs(t, <-report, kafka.ErrClientFatal)
	_, err := b.Provider("b").Producer(nil, discard)
	require.ErrorIs(t, err, kafka.ErrClientFatal)
	require.ErrorContains(t, err, "the broker is closed")
	require.ErrorContains(t, r.Assign("c", nil), "the broker is closed")
}

// A broker from outside a bubble has another clock: nothing would ever arrive.
func TestBrokerFromOutsideTheBubbleIsRefused(t *testing.T) {
	b := nelitest.NewBroker(nelitest.Options{})
	defer b.Close()
	synctest.Test(t, func(t *testing.T) {
		require.PanicsWithValue(t, "nelitest: a Broker that is used in a synctest bubble must be created in it",
			func() { b.Provider("a") })
	})
	b.Provider("a")
}

func TestRefusedProperties(t *testing.T) {
	w := nelitest.NewBroker(nelitest.Options{}).Provider("a")
	_, err := w.Producer(map[string]string{"message.timeout.ms": "soon"}, discard)
	require.ErrorContains(t, err, "message.timeout.ms=soon")
	_, err = w.GroupConsumer(map[string]string{
		"session.timeout.ms": "-1", "heartbeat.interval.ms": "x", "max.poll.interval.ms": "", "partition.assignment.strategy": "sticky",
	}, discard)
	for _, word := range []string{"group.id", "session", "heartbeat", "max.poll", "strategy=sticky"} {
		require.ErrorContains(t, err, word)
	}
	for _, strategy := range []string{"cooperative-sticky,range", "range,", ",", "Range"} {
		_, err = w.GroupConsumer(map[string]string{"group.id": "g", "partition.assignment.strategy": strategy}, discard)
		require.ErrorContains(t, err, "partition.assignment.strategy="+strategy+": ")
	}
}

func TestConcurrentUse(t *testing.T) {
	b := nelitest.NewBroker(nelitest.Options{AppendLatency: -1, AckLatency: -1, ReadLatency: -1, RequestLatency: -1})
	require.NoError(t, b.CreateTopic("c", 1))
	p := newProducer(t, b.Provider("a"), nil)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				done := make(chan error)
				if err := p.Append("c", 0, nil, func(err error) { done <- err }); err != nil {
					t.Error(err)
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
		})
	}
	r := newReader(t, b.Provider("b"))
	require.NoError(t, r.Assign("c", []int64{0}))
	drive.Read(t, r, 200)
	wg.Wait()
	require.Len(t, b.Records("c", 0), 200)
}

func TestManyRecordsBehind(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		const n = 5000 // more than is fetched ahead
		for i := range n {
			_, err := s.b.Inject("c", 0, fmt.Append(nil, i))
			require.NoError(t, err)
		}
		for i, rec := range drive.Read(t, s.r, n) {
			require.EqualValues(t, i, rec.Offset)
		}
	})
}

// The same seed gives the same history, to the nanosecond, however the runtime schedules goroutines.
func TestDeterminism(t *testing.T) {
	first := simulate(t, 1)
	for range 5 {
		require.Equal(t, first, simulate(t, 1))
	}
	require.NotEqual(t, first, simulate(t, 2))
}

// simulate runs five members that write and read for a minute, under faults, and returns what happened.
func simulate(t *testing.T, seed uint64) (transcript []string) {
	synctest.Test(t, func(t *testing.T) {
		b := nelitest.NewBroker(nelitest.Options{Jitter: 3 * time.Millisecond, Seed: seed})
		require.NoError(t, b.CreateTopic("c", 3))
		begin, quit := time.Now(), make(chan struct{})
		var wg sync.WaitGroup
		logs := make([][]string, 5)
		for i := range logs {
			wg.Go(func() { logs[i] = participate(b, i, begin, quit) })
		}
		rng := newRand(seed)
		for range 60 {
			time.Sleep(time.Duration(rng.IntN(2000)) * time.Millisecond)
			n := fmt.Sprint(rng.IntN(5))
			switch rng.IntN(4) {
			case 0:
				b.CutOff(n, nelitest.Link(rng.IntN(int(nelitest.LinkAll)+1)))
			case 1:
				b.Restore(n, nelitest.LinkAll)
			case 2:
				b.Suspend(n)
			case 3:
				b.Resume(n)
			}
		}
		close(quit)
		for i := range logs {
			b.Resume(fmt.Sprint(i))
		}
		wg.Wait()
		for _, l := range logs {
			transcript = append(transcript, l...)
		}
	})
	return transcript
}

// participate writes a record to each partition every second, reads all records, and takes part in the group.
func participate(b *nelitest.Broker, i int, begin time.Time, quit chan struct{}) (log []string) {
	w := b.Provider(fmt.Sprint(i))
	p, err1 := w.Producer(map[string]string{"message.timeout.ms": "5000"}, discard)
	r, err2 := w.LogReader(nil, discard)
	g, err3 := w.GroupConsumer(map[string]string{"group.id": "g", "session.timeout.ms": "6000"}, discard)
	if err := errors.Join(err1, err2, err3, r.Assign("c", []int64{0, 0, 0}), g.Join("c", false)); err != nil {
		return []string{err.Error()}
	}
	var wg sync.WaitGroup
	var nominations []string
	wg.Go(func() {
		for {
			ev, err := g.Poll(100 * time.Millisecond)
			if ev.Kind != kafka.GroupIdle || err != nil {
				nominations = append(nominations, fmt.Sprint(i, " ", time.Since(begin), " ", ev, err))
			}
			select {
			case <-quit:
				return
			default:
			}
		}
	})
	wg.Go(func() {
		for n := 0; ; n++ {
			for part := range 3 {
				_ = p.Append("c", part, fmt.Append(nil, i, "/", n), func(error) {})
			}
			select {
			case <-quit:
				return
			case <-time.After(time.Second):
			}
		}
	})
	for done := false; !done; {
		rec, ok, err := r.Poll(100 * time.Millisecond)
		if ok || err != nil {
			log = append(log, fmt.Sprintf("%d %v %d@%d=%s %v", i, time.Since(begin), rec.Partition, rec.Offset, rec.Value, err))
		}
		select {
		case <-quit:
			done = true
		default:
		}
	}
	wg.Wait()
	if err := errors.Join(g.Close(), r.Close(), p.Close()); err != nil {
		log = append(log, err.Error())
	}
	return append(log, nominations...)
}

var discard = slog.New(slog.DiscardHandler)

func newProducer(t *testing.T, p kafka.Provider, props map[string]string) kafka.Producer {
	t.Helper()
	pr, err := p.Producer(props, discard)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pr.Close()) })
	return pr
}

func newReader(t *testing.T, p kafka.Provider) kafka.LogReader {
	t.Helper()
	r, err := p.LogReader(nil, discard)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

func newMember(t *testing.T, p kafka.Provider, props ...string) kafka.GroupConsumer {
	t.Helper()
	all := map[string]string{"group.id": "g", "session.timeout.ms": "6000", "heartbeat.interval.ms": "500"}
	for i := 0; i < len(props); i += 2 {
		all[props[i]] = props[i+1]
	}
	g, err := p.GroupConsumer(all, discard)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g
}

func newAdmin(t *testing.T, p kafka.Provider, pr kafka.Producer) kafka.Admin {
	t.Helper()
	a, err := p.Admin(pr)
	require.NoError(t, err)
	t.Cleanup(a.Close)
	return a
}
