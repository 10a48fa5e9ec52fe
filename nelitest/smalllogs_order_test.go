package nelitest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

func openSmall(t *testing.T, logs *nelitest.SmallLogs, name string) kafka.LogSet {
	t.Helper()
	set, err := logs.Provider(name).(kafka.SmallLogs).SmallLogs(t.Context(), kafka.LogSettings{Group: "g", Name: name, HeartbeatTimeout: smallT, Logger: discard})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, set.Close()) })
	return set
}

// entries returns what a set returns within d.
func entries(t *testing.T, set kafka.LogSet, d time.Duration) (es []kafka.LogEntry) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		e, ok, err := set.Next(t.Context(), time.Until(end))
		require.NoError(t, err)
		if ok {
			es = append(es, e)
		}
	}
	return es
}

// A receiver may change a record, and a sender its value.
func TestSmallLogsShareNoValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := nelitest.NewSmallLogs(1, smallTrip)
		a, b := openSmall(t, logs, "a"), openSmall(t, logs, "b")
		id := entries(t, a, time.Second/10)[0].ID
		entries(t, b, time.Second/10)
		value := []byte("abc")
		require.NoError(t, a.Append(0, id, value, 1, func(error) {}))
		value[0] = 'x'
		es := entries(t, a, time.Second/10)
		require.Equal(t, "abc", string(es[0].Value))
		es[0].Value[1] = 'y'
		require.Equal(t, "abc", string(entries(t, b, time.Second/10)[0].Value))
	})
}

// After Slow ends, a log's new records do not wait for delayed records of other logs, and each log's
// entries stay in order.
func TestSlowLogsDelayNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := nelitest.NewSmallLogs(3, smallTrip)
		a := openSmall(t, logs, "a")
		var ids []string
		for _, e := range entries(t, a, time.Second/10) {
			require.Equal(t, kafka.LogReset, e.Kind)
			ids = append(ids, e.ID)
		}
		logs.Slow("a", 0, time.Minute)
		require.NoError(t, a.Append(0, ids[0], []byte("slow"), 1, func(error) {}))
		logs.Slow("a", 0, 0)
		require.NoError(t, a.Append(1, ids[1], []byte("fast"), 1, func(error) {}))
		logs.Forget(2)
		begun := map[int]string{0: ids[0], 1: ids[1], 2: ids[2]}
		var fast bool
		for _, e := range entries(t, a, 10*time.Second) {
			if e.Kind == kafka.LogReset {
				begun[e.Log] = e.ID
			}
			require.Equal(t, begun[e.Log], e.ID, "an entry of kind %d of an incarnation that has not begun", e.Kind)
			fast = fast || e.Kind == kafka.LogRecord && e.Log == 1
		}
		require.True(t, fast, "log 1 is not slow")
		require.NotEqual(t, ids[2], begun[2], "log 2 has begun again")
	})
}

// A record that was delayed by a negative duration would arrive before it was sent.
func TestNothingIsFasterThanTheRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := nelitest.NewSmallLogs(1, smallTrip)
		a := openSmall(t, logs, "a")
		id := entries(t, a, time.Second/10)[0].ID
		logs.Slow("a", -time.Minute, -time.Minute)
		require.NoError(t, a.Append(0, id, []byte("0"), 1, func(error) {}))
		require.Empty(t, entries(t, a, smallTrip-1))
		require.Len(t, entries(t, a, smallTrip), 1)
	})
}

// The entries of one log stay in order, also over a reset.
func TestSlowEntriesOfOneLogStayInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := nelitest.NewSmallLogs(1, smallTrip)
		a := openSmall(t, logs, "a")
		id := entries(t, a, time.Second/10)[0].ID
		logs.Slow("a", 0, time.Minute)
		require.NoError(t, a.Append(0, id, []byte("0"), 1, func(error) {}))
		logs.Slow("a", 0, 0)
		require.NoError(t, a.Append(0, id, []byte("1"), 1, func(error) {}))
		logs.Forget(0)
		var got []string
		for _, e := range entries(t, a, 2*time.Minute) {
			switch e.Kind {
			case kafka.LogReset:
				got = append(got, "reset")
			case kafka.LogRecord:
				require.Equal(t, id, e.ID)
				got = append(got, string(e.Value))
			}
		}
		require.Equal(t, []string{"0", "1", "reset"}, got)
	})
}

// A link that is cut stays cut when another one is cut as well, whatever the order.
func TestCutsOfSmallLogsAddUp(t *testing.T) {
	for name, cuts := range map[string][]nelitest.Link{
		"appends, reads": {nelitest.LinkAppends, nelitest.LinkReads},
		"reads, appends": {nelitest.LinkReads, nelitest.LinkAppends},
		"all, appends":   {nelitest.LinkAll, nelitest.LinkAppends},
		"all, reads":     {nelitest.LinkAll, nelitest.LinkReads},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logs := nelitest.NewSmallLogs(1, smallTrip)
				a, b := openSmall(t, logs, "a"), openSmall(t, logs, "b")
				id := entries(t, a, time.Second/10)[0].ID
				entries(t, b, time.Second/10)
				for _, links := range cuts {
					logs.CutOff("a", 0, links)
				}
				require.NoError(t, a.Append(0, id, []byte("a"), 1, func(error) {}))
				require.Zero(t, logs.Appended(0), "appends are cut")
				require.NoError(t, b.Append(0, id, []byte("b"), 1, func(error) {}))
				require.Empty(t, entries(t, a, 2*smallT), "reads are cut")
				logs.Restore("a", 0)
				require.Equal(t, []byte("b"), entries(t, a, time.Second/10)[0].Value)
			})
		})
	}
}
