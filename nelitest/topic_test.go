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
