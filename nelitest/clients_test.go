package nelitest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/drive"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

// A record that is on its way when the link is restored does not overtake those that waited for the link.
func TestRecordInFlightDoesNotOvertakeQueuedOnes(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		s.b.CutOff("a", nelitest.LinkAppends)
		s.send(t, "0")
		time.Sleep(1500 * time.Microsecond)
		s.send(t, "1")
		time.Sleep(500 * time.Microsecond)
		s.b.Restore("a", nelitest.LinkAppends)
		_, err := s.send(t, "2")()
		require.NoError(t, err)
		require.Equal(t, []string{"0", "1", "2"}, s.log())
	})
}

// The same holds if the member is suspended while the link is restored.
func TestRecordInFlightDoesNotOvertakeThoseOfASuspendedMember(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		s.b.CutOff("a", nelitest.LinkAppends)
		s.send(t, "0")
		time.Sleep(1500 * time.Microsecond)
		s.send(t, "1")
		time.Sleep(500 * time.Microsecond)
		s.b.Suspend("a")
		s.b.Restore("a", nelitest.LinkAppends)
		time.Sleep(time.Second)
		s.b.Resume("a")
		_, err := s.send(t, "2")()
		require.NoError(t, err)
		require.Equal(t, []string{"0", "1", "2"}, s.log())
	})
}

// A member that loses a partition whose records fill its buffer goes on to read the others.
func TestALostPartitionDoesNotStopTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nelitest.NewBroker(nelitest.Options{})
		require.NoError(t, b.CreateTopic("c", 2))
		g := newMember(t, b.Provider("a"))
		require.NoError(t, g.Join("c", true))
		ev, err := g.Poll(time.Minute)
		require.NoError(t, err)
		require.Equal(t, []int{0, 1}, ev.Partitions)
		for range 1100 {
			_, err := b.Inject("c", 0, []byte("0"))
			require.NoError(t, err)
		}
		_, err = b.Inject("c", 1, []byte("1"))
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.True(t, b.Revoke("a", 0))
		time.Sleep(time.Second)
		for end := time.Now().Add(time.Minute); ; {
			require.True(t, time.Now().Before(end), "partition 1 is not read")
			ev, err := g.Poll(time.Second)
			require.NoError(t, err)
			if ev.Kind == kafka.GroupRecord {
				require.Equal(t, 1, ev.Record.Partition)
				return
			}
		}
	})
}

// A refusal is told once for each Assign, however many partitions have news.
func TestRefusalIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nelitest.NewBroker(nelitest.Options{})
		require.NoError(t, b.CreateTopic("c", 3))
		r := newReader(t, b.Provider("a"))
		require.NoError(t, r.Assign("c", []int64{0, 0, 0}))
		_, ok, err := r.Poll(time.Second)
		require.NoError(t, err)
		require.False(t, ok)
		b.Refuse("a", nelitest.LinkReads, kafka.ErrTopicAuthorization)
		for i := range 3 {
			_, err := b.Inject("c", i, nil)
			require.NoError(t, err)
			time.Sleep(time.Second)
		}
		b.SlowReads("a", 0)
		told := func() (n int) {
			for range 10 {
				if _, _, err := r.Poll(time.Second); err != nil {
					require.ErrorIs(t, err, kafka.ErrTopicAuthorization)
					n++
				}
			}
			return n
		}
		require.Equal(t, 1, told(), "now")
		require.NoError(t, r.Assign("c", []int64{0, 0, 0}))
		require.Equal(t, 1, told(), "for this Assign")
		b.Refuse("a", nelitest.LinkReads, nil)
		require.Zero(t, told(), "it reads")
	})
}

// Partitions that do not exist cannot be assigned.
func TestAssignKnowsTheTopicsPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nelitest.NewBroker(nelitest.Options{})
		require.NoError(t, b.CreateTopic("c", 2))
		x := drive.Track(t, newMember(t, b.Provider("a")), "c", true)
		time.Sleep(time.Second)
		require.True(t, b.Assign("a", -1, 1, 1, 7))
		time.Sleep(time.Second)
		require.Equal(t, []int{1}, x.Assigned())
		b.Rebalance()
		time.Sleep(5 * time.Second)
		require.Equal(t, []int{0, 1}, x.Assigned())
	})
}

// Records that followers did not have when all replicas stopped are committed once one is back.
func TestRecordsAreCommittedWhenALeaderIsBack(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		s.b.Lag(time.Second)
		report := s.send(t, "x")
		time.Sleep(100 * time.Millisecond)
		for id := range 3 {
			require.NoError(t, s.b.StopBroker(id+1))
		}
		time.Sleep(3 * time.Second)
		require.NoError(t, s.b.StartBroker(2))
		_, err := report()
		require.NoError(t, err)
		require.Equal(t, []string{"x"}, s.log())
	})
}

// When a topic is deleted, a request and a read that wait for its leader end.
func TestDeletingATopicEndsTheWaitForItsLeader(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		for id := range 3 {
			require.NoError(t, s.b.StopBroker(id+1))
		}
		provider := s.b.Provider("d")
		a := newAdmin(t, provider, newProducer(t, provider, nil))
		time.AfterFunc(time.Second, func() { _ = s.b.DeleteTopic("c") })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := a.Log(ctx, "c", 0)
		require.ErrorIs(t, err, kafka.ErrUnknownTopic)
		_, _, err = s.r.Poll(time.Minute)
		require.ErrorIs(t, err, kafka.ErrUnknownTopic)
	})
}

// After the whole cluster was away, leaders have new epochs, and nothing counts as truncated.
func TestAStartBeginsNewEpochs(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		_, err := s.send(t, "x")()
		require.NoError(t, err)
		drive.Read(t, s.r, 1)
		provider := s.b.Provider("d")
		a := newAdmin(t, provider, newProducer(t, provider, nil))
		before, err := a.Log(t.Context(), "c", 0)
		require.NoError(t, err)
		s.b.Stop()
		time.Sleep(time.Second)
		s.b.Start()
		after, err := a.Log(t.Context(), "c", 0)
		require.NoError(t, err)
		require.Greater(t, after.Epoch, before.Epoch)
		s.send(t, "y")
		for {
			rec, ok, err := s.r.Poll(time.Second)
			require.NotErrorIs(t, err, kafka.ErrTruncated)
			if ok {
				require.Equal(t, "y", string(rec.Value))
				require.Equal(t, after.Epoch, rec.Epoch)
				return
			}
		}
	})
}

// A record that was lost before its sender heard of it is not reported as written: it is sent again.
func TestALostRecordIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nelitest.NewBroker(nelitest.Options{Brokers: 1})
		require.NoError(t, b.CreateTopic("c", 1))
		p := newProducer(t, b.Provider("a"), nil)
		done := make(chan error, 1)
		require.NoError(t, p.Append("c", 0, []byte("x"), func(err error) { done <- err }))
		time.Sleep(1500 * time.Microsecond) // it is in the log, and its acknowledgement travels
		require.NoError(t, b.StopBroker(1))
		time.Sleep(time.Second)
		require.NoError(t, b.WipeBroker(1))
		require.NoError(t, <-done)
		require.Equal(t, []string{"x"}, drive.Values(b.Records("c", 0)))
	})
}
