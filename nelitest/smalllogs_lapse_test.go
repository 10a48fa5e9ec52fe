package nelitest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// On small logs, too, a leader knows how long its term lasts, and Stats knows how old the evidence is. At
// each instant the two add up to 0.9 T, whichever logs sustain the term.
func TestSmallLogsReportHowLongATermLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := nelitest.NewSmallLogs(3, smallTrip)
		n, err := neli.New(neli.Config{Provider: logs.Provider("a"), LeaderGroupID: "g", Name: "a", HeartbeatTimeout: smallT})
		require.NoError(t, err)
		defer func() { _ = n.Close() }()
		terms, ended := make(chan neli.Leadership, 10), make(chan error, 1)
		go func() {
			ended <- n.Lead(context.Background(), func(ctx context.Context, l neli.Leadership) error {
				terms <- l
				<-ctx.Done()
				return nil
			})
		}()
		term := <-terms
		const hold = smallT * 9 / 10
		oldest := time.Duration(0)
		look := func(during time.Duration) {
			for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(time.Millisecond) {
				synctest.Wait() // so that no beat comes back between the two
				age, left := n.Stats().EvidenceAge, term.Remaining()
				require.Positive(t, age)
				require.Positive(t, left)
				require.Equal(t, hold, age+left)
				oldest = max(oldest, age)
			}
		}
		look(5 * time.Second)
		require.Less(t, oldest, smallT/2, "a beat each T/5")
		for log := range 3 { // another set of logs sustains the term each time
			logs.CutOff("a", log, nelitest.LinkAll)
			look(3 * time.Second)
			logs.Restore("a", log)
			look(3 * time.Second)
		}

		oldest = 0
		for log := range 3 {
			logs.CutOff("a", log, nelitest.LinkAll)
		}
		look(term.Remaining())
		require.Equal(t, hold-time.Millisecond, oldest, "it grows until the lapse")
		require.False(t, term.Valid())
		require.Zero(t, term.Remaining())
		synctest.Wait()
		require.Zero(t, n.Stats().EvidenceAge, "nothing is held any more")
		require.NoError(t, n.Close())
		require.ErrorIs(t, <-ended, neli.ErrClosed)
	})
}
