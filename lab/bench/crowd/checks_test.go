package crowd

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goneli/neli"
)

func TestCheckThatTurnsTrueAgainIsCounted(t *testing.T) {
	three := neli.Change{Terms: []neli.Term{{Roles: []int{3}}}}
	acquired := neli.LeaderAcquired{Change: three}
	says := func(yes bool) func(int) bool { return func(int) bool { return yes } }
	c := newChecker(5)
	c.look(says(false))
	assert.Zero(t, c.counts(), "it was told nothing")

	c.tell(acquired)
	for _, yes := range []bool{true, false, false, true} {
		c.look(says(yes))
	}
	assert.Equal(t, Checks{Made: 4, False: 1}, c.counts())

	c.look(says(false))
	c.tell(neli.LeaderFenced{Change: three})
	c.tell(acquired)
	c.look(says(true))
	assert.Equal(t, Checks{Made: 6, False: 1}, c.counts(), "in another term it may be true")

	few := newChecker(10 * lookedAt)
	few.tell(acquired)
	few.look(says(true))
	assert.Zero(t, few.counts(), "role 3 is not looked at")
}
