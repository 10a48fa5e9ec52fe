package crowd

import (
	"fmt"
	"sync/atomic"

	"github.com/goneli/neli"
)

// lookedAt is the number of roles whose checks are observed, of all roles.
const lookedAt = 1024

// Checks counts the checks of leadership that were observed, for roles that members had been told
// they lead.
type Checks struct {
	Made  uint64
	False uint64 // times when the answer was no, and then yes again in the same term
}

func (c *Checks) add(more Checks) { c.Made, c.False = c.Made+more.Made, c.False+more.False }

// String is a line of the log.
func (c Checks) String() string {
	return fmt.Sprintf("%d of %d checks were false within a term", c.False, c.Made)
}

// checker observes one member's check of leadership, for some roles. Between the event that begins
// a term and the event that ends it, the check may become false, but must not become true again.
// Only counts may be called while another method runs.
type checker struct {
	apart       int          // one role in so many is observed
	told        map[int]bool // the roles that the member was told it leads; true if the last check was false
	made, wrong atomic.Uint64
}

func newChecker(roles int) *checker {
	return &checker{apart: max(1, roles/lookedAt), told: map[int]bool{}}
}

// tell takes an event of the member.
func (c *checker) tell(e neli.Event) {
	switch e := e.(type) {
	case neli.LeaderAcquired:
		for _, role := range e.Roles() {
			if role%c.apart == 0 {
				c.told[role] = false
			}
		}
	case neli.LeaderRevoked:
		c.end(e.Roles())
	case neli.LeaderFenced:
		c.end(e.Roles())
	}
}

func (c *checker) end(roles []int) {
	for _, role := range roles {
		delete(c.told, role)
	}
}

// look calls the member's check for each observed role.
func (c *checker) look(leads func(role int) bool) {
	for role, was := range c.told {
		leads := leads(role)
		if leads && was {
			c.wrong.Add(1)
		}
		c.told[role] = !leads
		c.made.Add(1)
	}
}

func (c *checker) counts() Checks { return Checks{c.made.Load(), c.wrong.Load()} }

// checksOf adds up the counts of some members.
func checksOf(checkers []*checker) (sum Checks) {
	for _, c := range checkers {
		sum.add(c.counts())
	}
	return sum
}
