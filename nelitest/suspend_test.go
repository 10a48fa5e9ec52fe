package nelitest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/drive"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

func TestSuspendedReader(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		for _, v := range []string{"0", "1", "2"} {
			s.send(t, v)
		}
		drive.Read(t, s.r, 1) // the others are buffered
		s.b.Suspend("b")
		time.AfterFunc(time.Minute, func() { s.b.Resume("b") })
		begin := time.Now()
		_, ok, err := s.r.Poll(time.Second)
		require.NoError(t, err)
		require.True(t, ok)
		require.InDelta(t, time.Minute, time.Since(begin), 100)
		begin = time.Now()
		drive.Read(t, s.r, 1)
		require.Zero(t, time.Since(begin))
	})
}

func TestAResumedReaderIsBehindForAMoment(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		s.b.Suspend("b")
		s.send(t, "received by the machine")
		time.Sleep(time.Second)
		s.send(t, "not asked for yet")
		time.Sleep(time.Second)
		s.b.Resume("b")
		require.Equal(t, []string{"received by the machine"}, drive.Values(drive.Read(t, s.r, 1)))
		s.nothing(t, 0)
		begin := time.Now()
		require.Equal(t, []string{"not asked for yet"}, drive.Values(drive.Read(t, s.r, 1)))
		require.InDelta(t, time.Millisecond, time.Since(begin), 100)
	})
}

func TestAPollThatWasSuspendedTimesOutLate(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		time.AfterFunc(time.Second, func() { s.b.Suspend("b") })
		time.AfterFunc(time.Minute, func() { s.b.Resume("b") })
		begin := time.Now()
		s.nothing(t, 2*time.Second)
		require.InDelta(t, time.Minute, time.Since(begin), 100)
	})
}

func TestSuspendedProducer(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		underway := s.send(t, "under way")
		s.b.Suspend("a")
		time.AfterFunc(time.Minute, func() { s.b.Resume("a") })
		blocked := s.send(t, "blocked")
		require.Equal(t, []string{"under way"}, s.log())
		took, err := underway()
		require.NoError(t, err)
		require.InDelta(t, time.Minute, took, 100)
		took, err = blocked()
		require.NoError(t, err)
		require.InDelta(t, time.Minute+2*time.Millisecond, took, 1000)
	})
}

func TestKill(t *testing.T) {
	inScene(t, func(t *testing.T, s scene) {
		_, err := s.send(t, "x")()
		require.NoError(t, err)
		s.b.Suspend("b")
		time.AfterFunc(time.Second, func() { s.b.Kill("b") })
		_, _, err = s.r.Poll(time.Minute)
		require.ErrorIs(t, err, kafka.ErrClientFatal)

		s.b.CutOff("a", nelitest.LinkAppends)
		report := s.send(t, "y")
		time.Sleep(time.Second)
		s.b.Kill("a")
		_, err = report()
		require.ErrorIs(t, err, kafka.ErrClientFatal)
		require.ErrorIs(t, s.p.Append("c", 0, nil, nil), kafka.ErrClientFatal)
		s.b.Restore("a", nelitest.LinkAll)
		s.p = newProducer(t, s.b.Provider("a"), nil)
		_, err = s.send(t, "z")()
		require.NoError(t, err)
		require.Equal(t, []string{"x", "z"}, s.log())
	})
}

func TestAKilledProviderMakesNoClients(t *testing.T) {
	b := nelitest.NewBroker(nelitest.Options{})
	p := b.Provider("a")
	b.Kill("a")
	_, err := p.Producer(nil, discard)
	require.ErrorIs(t, err, kafka.ErrClientFatal)
	_, err = p.LogReader(nil, discard)
	require.ErrorIs(t, err, kafka.ErrClientFatal)
	_, err = b.Provider("a").LogReader(nil, discard)
	require.NoError(t, err)
}

func TestCloseWaitsForTheEndOfASuspension(t *testing.T) {
	for name, end := range map[string]func(*nelitest.Broker){
		"resumed": func(b *nelitest.Broker) { b.Resume("a") },
		"killed":  func(b *nelitest.Broker) { b.Kill("a") },
	} {
		t.Run(name, func(t *testing.T) {
			inScene(t, func(t *testing.T, s scene) {
				report := s.send(t, "acknowledged while suspended")
				s.b.Suspend("a")
				time.Sleep(time.Second)
				time.AfterFunc(time.Second, func() { end(s.b) })
				begin := time.Now()
				require.NoError(t, s.p.Close())
				require.InDelta(t, time.Second, time.Since(begin), float64(time.Millisecond))
				_, err := report()
				require.NoError(t, err)
			})
		})
	}
}
