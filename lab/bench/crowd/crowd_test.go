package crowd

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestShares(t *testing.T) {
	l := newLedger(8)
	first, second := l.open(2), l.open(2)
	l.take(first, Line{Member: 0, Gained: []int{0, 1, 2}})
	l.take(first, Line{Member: 1, Gained: []int{3, 4}, Fenced: 1})
	assert.Equal(t, []int{3, 2, 0, 0}, l.shares(), "a process that has not reported anything leads nothing")
	assert.Equal(t, 3, l.vacant)
	assert.False(t, l.shared())

	l.take(second, Line{Member: 0, Gained: []int{5, 6, 7}})
	most, least := l.spread()
	assert.Equal(t, []float64{1.5, 0}, []float64{most, least})
	assert.Zero(t, l.vacant)
	assert.False(t, l.shared(), "one member leads nothing")

	l.take(first, Line{Member: 0, Lost: []int{2}})
	l.take(second, Line{Member: 0, Lost: []int{7}})
	assert.Equal(t, 2, l.vacant)
	l.take(second, Line{Member: 1, Gained: []int{2}, Fenced: 2})
	assert.False(t, l.shared(), "role 7 is being handed over")
	l.take(second, Line{Member: 1, Gained: []int{7}})
	assert.True(t, l.shared())
	assert.Equal(t, 3, l.fenced())
}

func TestMembersWithoutRolesHaveNoShare(t *testing.T) {
	l := newLedger(99)
	for range 12 {
		l.open(1)
	}
	for role := range 99 {
		l.take(l.alive[role/9], Line{Gained: []int{role}})
	}
	most, _ := l.spread()
	assert.Less(t, most, Even)
	assert.False(t, l.shared(), "although no other member has too much")
}

func TestLed(t *testing.T) {
	l := newLedger(2)
	l.anew(0)
	lives, dead := l.open(1), l.open(1)
	assert.False(t, l.some())
	l.take(dead, Line{At: 1, Gained: []int{1}})
	l.take(lives, Line{At: 2, Gained: []int{0}})
	assert.True(t, l.led())

	l.end(dead)
	l.anew(3)
	assert.False(t, l.led(), "the leader of role 1 was killed")
	assert.Equal(t, 1, l.vacant)
	l.take(dead, Line{At: 9, Gained: []int{1}})
	assert.False(t, l.led(), "reports of an ended process do not count")

	l.take(lives, Line{At: 4 * time.Second, Lost: []int{0}})
	l.take(lives, Line{At: 5*time.Second + 3, Gained: []int{1}})
	assert.True(t, l.led(), "each role was led, and role 0 is being handed over")
	assert.True(t, l.some())
	assert.Equal(t, 5.0, l.seconds(3))
	assert.Equal(t, []int{1}, l.shares())
}

func TestStarted(t *testing.T) {
	l := newLedger(1)
	a, b := l.open(1), l.open(1)
	l.take(a, Line{At: 3, Started: true})
	_, all := l.started()
	assert.False(t, all)
	l.take(b, Line{At: 7, Started: true})
	last, all := l.started()
	assert.True(t, all)
	assert.EqualValues(t, 7, last)
}
