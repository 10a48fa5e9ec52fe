package nelitest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/drive"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

func TestLag(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		other := s.b.Provider("other")
		a := newAdmin(t, other, newProducer(t, other, nil))
		end := func() int64 {
			ranges, err := a.Offsets(t.Context(), "c", 1)
			require.NoError(t, err)
			return ranges[0].End
		}
		s.b.Lag(3 * time.Second)
		began := time.Now()
		x, y := s.send(t, "x"), s.send(t, "y")
		s.nothing(t, 2*time.Second)
		require.Zero(t, end())
		require.Empty(t, s.log())
		require.Equal(t, []string{"x", "y"}, drive.Values(drive.Read(t, s.r, 2)))
		require.GreaterOrEqual(t, time.Since(began), 3*time.Second)
		for _, report := range []func() (time.Duration, error){x, y} {
			took, err := report()
			require.NoError(t, err)
			require.InDelta(t, 3*time.Second+2*time.Millisecond, took, 1000)
		}
		require.EqualValues(t, 2, end())

		z := s.send(t, "z")
		time.Sleep(time.Second)
		s.b.Lag(0)
		took, err := z()
		require.NoError(t, err)
		require.InDelta(t, time.Second+time.Millisecond, took, float64(time.Millisecond))
		require.Equal(t, []string{"x", "y", "z"}, s.log())
	})
}

// A record that waits for followers is reported as failed after its timeout, and comes nevertheless.
func TestLagBeyondTheTimeout(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		s.b.Lag(20 * time.Second)
		_, err := s.send(t, "x")()
		require.Error(t, err)
		require.Equal(t, []string{"x"}, drive.Values(drive.Read(t, s.r, 1)))
	})
}

func TestChangeLeader(t *testing.T) {
	for kept, want := range [][]string{
		{"committed", "b", "c", "after"},
		{"committed", "b", "b", "c", "after"}, // the new leader has b, but the sender does not know that
		{"committed", "b", "c", "b", "c", "after"},
	} {
		inScene(t, func(t *testing.T, s scene) {
			_, err := s.send(t, "committed")()
			require.NoError(t, err)
			require.Equal(t, []string{"committed"}, drive.Values(drive.Read(t, s.r, 1)))
			s.b.Lag(time.Second)
			x, y := s.send(t, "b"), s.send(t, "c")
			time.Sleep(500 * time.Millisecond)
			require.NoError(t, s.b.ChangeLeader("c", 0, kept))
			for _, report := range []func() (time.Duration, error){x, y} {
				took, err := report()
				require.NoError(t, err)
				require.Greater(t, took, 1400*time.Millisecond, "acknowledged again")
			}
			_, err = s.send(t, "after")()
			require.NoError(t, err)
			require.Equal(t, want, s.log())
			require.Equal(t, want[1:], drive.Values(drive.Read(t, s.r, len(want)-1)), "no reader notices")
		})
	}
}

// A record that its sender has given up meanwhile is lost for good. A suspended sender's record is lost
// until the sender resumes and sends it again.
func TestChangeLeaderWhileSendersAreAway(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		s.b.Lag(time.Minute)
		_, err := s.send(t, "given up")()
		require.Error(t, err)
		x := s.send(t, "x")
		time.Sleep(time.Second)
		s.b.Suspend("a")
		require.NoError(t, s.b.ChangeLeader("c", 0, 0))
		s.b.Lag(0)
		s.nothing(t, 5*time.Second)
		s.b.Resume("a")
		_, err = x()
		require.NoError(t, err)
		require.Equal(t, []string{"x"}, s.log())
		require.Error(t, s.b.ChangeLeader("c", 1, 0))
	})
}

func TestSkip(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		_, err := s.b.Skip("c", 1, 1)
		require.Error(t, err)
		s.b.Lag(time.Hour)
		s.send(t, "0")
		time.Sleep(time.Second)
		first, err := s.b.Skip("c", 0, 3)
		require.NoError(t, err)
		require.EqualValues(t, 1, first)
		s.b.Lag(0)
		_, err = s.send(t, "4")()
		require.NoError(t, err)
		for _, at := range []int64{0, 1, 4} {
			require.NoError(t, s.r.Assign("c", []int64{at}))
			rs := drive.Read(t, s.r, map[int64]int{0: 2, 1: 1, 4: 1}[at])
			require.EqualValues(t, 4, rs[len(rs)-1].Offset)
			s.nothing(t, time.Second)
		}
		require.Equal(t, []string{"0", "4"}, s.log())
	})
}

func TestThrottle(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		s.b.Throttle("a", time.Second)
		took, err := s.send(t, "x")()
		require.NoError(t, err)
		require.InDelta(t, time.Second+2*time.Millisecond, took, 100)
		require.Equal(t, time.Second, s.p.Throttled())
		s.b.Throttle("a", 0)
		_, err = s.send(t, "y")()
		require.NoError(t, err)
		require.Equal(t, time.Second, s.p.Throttled())
		require.Zero(t, s.r.Throttled())
	})
}

func TestDeletedAndRecreatedTopicGoesUnnoticed(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		for _, v := range []string{"0", "1"} {
			_, err := s.send(t, v)()
			require.NoError(t, err)
		}
		drive.Read(t, s.r, 2)
		require.NoError(t, s.b.DeleteTopic("c"))
		_, _, err := s.r.Poll(time.Second)
		require.ErrorIs(t, err, kafka.ErrUnknownTopic)
		s.nothing(t, time.Second)
		waiting := s.send(t, "waiting")
		time.Sleep(time.Second)
		require.NoError(t, s.b.CreateTopic("c", 1))
		_, err = waiting()
		require.NoError(t, err)
		require.Equal(t, []string{"waiting"}, s.log())
		_, _, err = s.r.Poll(time.Second) // the reader was at 2
		require.ErrorIs(t, err, kafka.ErrOutOfRange)

		require.NoError(t, s.r.Assign("c", []int64{1}))
		s.nothing(t, time.Second)
		s.b.CutOff("b", nelitest.LinkReads)
		require.NoError(t, s.b.DeleteTopic("c"))
		require.NoError(t, s.b.CreateTopic("c", 1))
		for _, v := range []string{"0", "1"} {
			s.send(t, v)
		}
		time.Sleep(time.Second)
		s.b.Restore("b", nelitest.LinkReads)
		require.Equal(t, []string{"1"}, drive.Values(drive.Read(t, s.r, 1)))
	})
}

func TestAddPartitions(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		require.NoError(t, s.r.Assign("c", []int64{0, 0}))
		_, _, err := s.r.Poll(time.Second)
		require.ErrorIs(t, err, kafka.ErrUnknownTopic)
		for _, n := range []int{0, -1} {
			require.ErrorContains(t, s.b.AddPartitions("c", n), fmt.Sprintf("AddPartitions to c: %d partitions: must be at least 1", n))
		}
		require.NoError(t, s.b.AddPartitions("c", 2))
		require.NoError(t, s.r.Assign("c", []int64{0, 0, 0}))
		drive.AppendAll(t, s.p, "c", 2, "x")
		require.Equal(t, 2, drive.Read(t, s.r, 1)[0].Partition)
	})
}
