package history_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/history"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

// TestHistoryOfATopic reads the topic of real members: the second one leads after the first was killed.
func TestHistoryOfATopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nelitest.NewBroker(nelitest.Options{})
		defer b.Close()
		require.NoError(t, b.CreateTopic("jobs.neli", 2))
		member := func(name string) *neli.Neli {
			n, err := neli.New(neli.Config{LeaderGroupID: "jobs", LeaderTopic: "jobs.neli", Name: name, Roles: 3, Provider: b.Provider(name), Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			_, err = n.Background(func() { time.Sleep(10 * time.Millisecond) })
			require.NoError(t, err)
			return n
		}
		first := member("first")
		time.Sleep(time.Minute)
		second := member("second")
		time.Sleep(2 * time.Second)
		b.Kill("first")
		time.Sleep(time.Minute)
		_, err := b.Inject("jobs.neli", 1, []byte("noise"))
		require.NoError(t, err)

		p := b.Provider("reader")
		producer, err := p.Producer(nil, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		defer producer.Close()
		admin, err := p.Admin(producer)
		require.NoError(t, err)
		defer admin.Close()
		reader, err := p.LogReader(nil, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		defer reader.Close()
		var h *history.History
		require.NoError(t, history.Fetch(t.Context(), admin, reader, "jobs.neli", "jobs",
			func(log history.Log) (err error) { h, err = history.New(log); return err },
			func(e history.Entry) error { return h.Add(e) }))
		r := h.Result()
		require.Empty(t, r.Faults)
		require.Equal(t, []string{"1 of 2 waits: the claimant has no record from before the wait, or records have no time"}, r.Unproven,
			"members say Hello on partition 0")
		led := map[int][]string{}
		for _, x := range r.Terms {
			led[x.Role] = append(led[x.Role], x.Name+" "+x.End)
		}
		want := []string{"first outlived", "second leads"}
		require.Equal(t, map[int][]string{0: want, 1: want, 2: want}, led)
		require.NoError(t, second.Close())
		_ = first.Close()
		time.Sleep(time.Minute)
	})
}

// half describes a topic with one record in partition 0, or none, and five in partition 1.
type half struct {
	kafka.Admin
	first int64
}

func (h half) Topic(context.Context, string) (kafka.TopicInfo, error) {
	return kafka.TopicInfo{ID: "id", Partitions: 2}, nil
}

func (h half) Offsets(context.Context, string, int) ([]kafka.OffsetRange, error) {
	return []kafka.OffsetRange{{End: h.first}, {End: 5}}, nil
}

// busy returns records of partition 0, to which others write all the time, and the first four of partition 1. A minute
// passes before each of these. Producers may state any timestamp.
type busy struct {
	kafka.LogReader
	polls int64
}

func (*busy) Assign(string, []int64) error { return nil }

func (b *busy) Poll(timeout time.Duration) (kafka.Record, bool, error) {
	b.polls++
	r := kafka.Record{Offset: b.polls - 1, Value: []byte("noise"), Time: time.UnixMilli((b.polls - 2) << 50)}
	switch {
	case b.polls > 1000:
		return kafka.Record{}, false, kafka.ErrUnreadable
	case b.polls < 9 && b.polls%2 == 0:
		r.Partition, r.Offset = 1, b.polls/2-1
	case b.polls < 9:
		timeout = time.Minute
	}
	time.Sleep(timeout)
	return r, true, nil
}

// Fetch reads up to the ends that the partitions had when it began, though others go on writing. It waits for a slow
// reader of what it has read.
func TestFetchEndsWhileOthersWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h *history.History
		var times []time.Time
		require.NoError(t, history.Fetch(t.Context(), half{first: 1}, &busy{}, "jobs.neli", "jobs",
			func(log history.Log) (err error) { h, err = history.New(log); return err },
			func(e history.Entry) error {
				time.Sleep(time.Minute)
				times = append(times, e.Time)
				return h.Add(e)
			}))
		require.Equal(t, []time.Time{{}, time.UnixMilli(0), {}, {}, {}}, times)
		require.Equal(t, []string{"partition 1: the log ends at offset 5, and no record from 4 on was read: what was there is not provable"}, h.Result().Unproven)

		read := 0 // the first record of an empty partition comes while the other one is read
		require.NoError(t, history.Fetch(t.Context(), half{}, &busy{}, "jobs.neli", "jobs",
			func(history.Log) error { return nil }, func(history.Entry) error { read++; return nil }))
		require.Equal(t, 4, read)
	})
}
