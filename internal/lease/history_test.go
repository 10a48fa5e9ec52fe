package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/history"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/seeded"
)

// TestSimulatedLogsProveTheRules lets package history read the logs of simulations: whole, and without
// their deleted heads.
func TestSimulatedLogsProveTheRules(t *testing.T) {
	waits, shown := 0, 0
	for _, kind := range []string{"plain", "hunt", "fresh", "origin"} {
		for seed := range uint64(seeded.Seeds(60)) {
			records, deleted := lease.SimLog(seed, kind)
			for _, start := range []int64{0, deleted} {
				r := historyOf(t, records, start)
				require.Empty(t, r.Faults, "%s, seed %d, from offset %d", kind, seed, start)
				waits, shown = waits+r.Waits, shown+r.Shown
			}
		}
	}
	t.Logf("%d waits, %d shown by timestamps", waits, shown)
	require.Positive(t, shown)
}

func historyOf(t *testing.T, records []lease.SimRecord, start int64) history.Result {
	var entries []history.Entry
	for _, r := range records {
		if r.Offset >= start {
			entries = append(entries, history.Entry{Offset: r.Offset, Time: time.Unix(0, 0).Add(r.At).Truncate(time.Millisecond), Value: r.Value})
		}
	}
	r, err := history.Of("g", "log", 1, entries)
	require.NoError(t, err)
	return r
}
