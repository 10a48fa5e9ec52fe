package footprint

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTable(t *testing.T) {
	u := Usage{Client: "franz", Binary: 12_340_000, Stripped: 8e6, Modules: 3}
	u.summarise([]sample{{time.Second, 30e6, 12}, {20 * time.Millisecond, 10e6, 7}, {30 * time.Millisecond, 20e6, 9}})
	table := Table([]Usage{u, {Client: "raft", Binary: 9e6, Stripped: 6e6, Modules: 12}})
	assert.Contains(t, table, "| franz | 12.3 MB | 8.0 MB | 3 | 30ms | 20.0 MB | 9 |\n")
	assert.Contains(t, table, "| raft | 9.0 MB | 6.0 MB | 12 | – | – | – |\n")
}
