package crowd

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestShares(t *testing.T) {
	c := &crowd{size: Size{Processes: 2, Each: 2, Partitions: 8}}
	first := &process{last: Line{Led: [][]int{{0, 1, 2}, {3, 4}}, Lost: 1}}
	c.alive = []*process{first, {}}
	assert.Equal(t, []int{3, 2, 0, 0}, c.shares(), "a process that has not said anything leads nothing")
	assert.False(t, c.even())

	c.alive[1].last = Line{Led: [][]int{{5, 6, 7}, nil}, Lost: 2}
	assert.False(t, c.even())
	assert.Equal(t, 1.5, c.spread())
	assert.Equal(t, 3, c.lost())

	c.alive[1].last = Line{Led: [][]int{{5, 6}, {7, 8}}}
	assert.True(t, c.even(), "one more than another")
}

func TestLed(t *testing.T) {
	c := &crowd{size: Size{Each: 1, Partitions: 2}}
	c.anew()
	say := func(of *process, lines ...string) {
		from, to, err := os.Pipe()
		require.NoError(t, err)
		_, err = to.WriteString(strings.Join(lines, "\n") + "\n")
		require.NoError(t, err)
		require.NoError(t, to.Close())
		c.listen(of, from)
	}
	lives, dead := &process{}, &process{}
	c.alive = []*process{lives}
	say(dead, `{"Led":[[1]]}`)
	say(lives, `{"Led":[[0]]}`)
	assert.False(t, c.led(), "1 is led by one that was killed")
	say(lives, `{"Led":[[1]]}`, `{"Led":[[`)
	assert.True(t, c.led(), "each was, and 0 is being handed over")
	assert.Equal(t, []int{1}, c.shares())
	c.anew()
	assert.False(t, c.led())
}
