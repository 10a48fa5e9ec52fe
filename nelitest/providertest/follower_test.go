package providertest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

// A point of the contract that fails while it keeps a process from calling Next must end with what it has
// found. It would otherwise wait until the time limit of the whole run.
func TestAFollowerThatStandsStillCanBeStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := nelitest.NewSmallLogs(3, time.Millisecond)
		b := LogsBed{
			Provider: func(_ *testing.T, name string) kafka.SmallLogs { return logs.Provider(name).(kafka.SmallLogs) },
			Settings: kafka.LogSettings{Group: "g", HeartbeatTimeout: time.Second},
		}
		f := b.follow(t, "one")
		f.turn <- struct{}{}
		f.stop()
	})
}
