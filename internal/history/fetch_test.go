package history_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/history"
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
