package crowd

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestShares(t *testing.T) {
	c := &crowd{size: Size{Processes: 2, Each: 2, Partitions: 8}}
	c.alive = []*process{{last: Line{Led: []int{3, 2}, Lost: 1}}, {}}
	assert.Equal(t, []int{3, 2, 0, 0}, c.shares(), "a process that has not said anything leads nothing")
	assert.False(t, c.led())
	assert.False(t, c.even())

	c.alive[1].last = Line{Led: []int{3, 0}, Lost: 2}
	assert.True(t, c.led())
	assert.False(t, c.even())
	assert.Equal(t, 1.5, c.spread())
	assert.Equal(t, 3, c.lost())

	c.alive[1].last = Line{Led: []int{2, 2}}
	assert.True(t, c.even(), "one more than another")
}
