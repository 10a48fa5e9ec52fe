package elector

import (
	"slices"

	"github.com/goneli/neli/internal/clock"
)

// vacancy is roles to be claimed together from a time on, by the monotonic clock. Only
// those that may be claimed then are.
type vacancy struct {
	at    clock.Time
	roles []int32
	given bool // they were released in favour of somebody else: shared out then, not claimed
}

func (c *claims) add(at clock.Time, roles []int32) { c.list(vacancy{at: at, roles: roles}) }

// list takes note of a vacancy. On small logs there are many reasons to look at a role, on
// each log by itself: one that is listed already keeps its time, if that is not later.
func (c *claims) list(v vacancy) {
	if c.small {
		v.roles = slices.DeleteFunc(v.roles, func(role int32) bool {
			for int(role) >= len(c.due) {
				c.due = append(c.due, 0)
			}
			if c.listed(role) && c.due[role] <= v.at {
				return true
			}
			c.due[role] = v.at
			return false
		})
		if len(v.roles) == 0 {
			return
		}
	}
	c.vacant = append(c.vacant, v)
}

// listed reports whether a role of small logs is to be claimed, or shared out, at some time.
func (c *claims) listed(role int32) bool { return int(role) < len(c.due) && c.due[role] != 0 }

// taken returns the roles of a vacancy that is over. On small logs those are left out that
// are not listed any more, or for another time.
func (c *claims) taken(v vacancy) []int32 {
	if !c.small {
		return v.roles
	}
	return slices.DeleteFunc(v.roles, func(role int32) bool {
		if c.due[role] != v.at {
			return true
		}
		c.due[role] = 0
		return false
	})
}

// drop forgets that roles were vacant: somebody holds them. Should they be released, it
// is thought of anew who is to claim them. On small logs it costs no more than the roles
// that are dropped, as every record there drops some.
func (c *claims) drop(roles []int32) {
	if len(c.vacant) == 0 || len(roles) == 0 {
		return
	}
	if c.small {
		for _, role := range roles {
			if c.listed(role) {
				c.due[role] = 0
			}
		}
		return
	}
	held := make(map[int32]bool, len(roles))
	for _, role := range roles {
		held[role] = true
	}
	for i := range c.vacant {
		c.vacant[i].roles = slices.DeleteFunc(c.vacant[i].roles, func(role int32) bool { return held[role] })
	}
	c.vacant = slices.DeleteFunc(c.vacant, func(v vacancy) bool { return len(v.roles) == 0 })
}

// take returns the roles that are due, ascending, below limit.
func (c *claims) take(now clock.Instant, limit int32) []int32 {
	var due []int32
	c.vacant = slices.DeleteFunc(c.vacant, func(v vacancy) bool {
		if now.Mono < v.at {
			return false
		}
		due = append(due, c.taken(v)...)
		return true
	})
	slices.Sort(due)
	due = slices.Compact(due)
	return slices.DeleteFunc(due, func(role int32) bool { return role >= limit })
}
