package steady

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goneli/neli/lab/bench/trial"
)

func TestLedger(t *testing.T) {
	var rows ledger
	const ms = time.Millisecond
	kinds := signals(15 * time.Second)
	killed, stopped := kinds[0], kinds[1]
	rows.add(killed, ofPartition, "one log", 500*ms, trial.Losses{Terms: 2, Vacant: 9300 * ms, Longest: 9 * time.Second})
	rows.add(killed, ofPartition, "three logs", 500*ms, trial.Losses{})
	rows.add(killed, ofPartition, "one log", 5*time.Second, trial.Losses{})
	rows.add(killed, ofController, "one log", 500*ms, trial.Losses{Terms: 1, Vacant: ms, Longest: ms})
	rows.add(stopped, ofPartition, "one log", 500*ms, trial.Losses{})
	rows.add(rolling(), ofAll, "one log", 500*ms, trial.Losses{})
	rows.add(killed, ofPartition, "one log", 500*ms, trial.Losses{Terms: 1, Vacant: 700 * ms, Longest: 400 * ms, Double: 3 * ms, Met: 1})

	assert.Len(t, rows, 6, "a row for each kind, part, group and T")
	assert.Equal(t, Fault{What: "SIGKILL of the partition's broker", Away: "15s", Group: "one log", T: "500ms",
		Longest: []float64{9000, 400}, Vacant: []float64{9300, 700}, Lost: 3, Double: 3, Met: 1}, rows[0])
	assert.Equal(t, "SIGKILL of the partition's broker", rows[1].What)
	assert.Equal(t, []float64{0}, rows[1].Longest, "no loss is a figure, too")
	assert.Equal(t, "5s", rows[2].T)
	assert.Equal(t, "SIGKILL of the active controller", rows[3].What)
	assert.Equal(t, "SIGSTOP of the partition's broker", rows[4].What)
	assert.Equal(t, "rolling restart of all brokers, one by one", rows[5].What)
	assert.Equal(t, "0s", rows[5].Away, "at once")
}
