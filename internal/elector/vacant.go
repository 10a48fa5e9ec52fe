package elector

import (
	"slices"

	"github.com/goneli/neli/internal/clock"
)

// vacancy is roles of which something is to be thought, together, from a time on by the
// monotonic clock.
type vacancy struct {
	at    clock.Mono
	roles []int32 // those that are still listed for it count
	what  upcoming
	left  int // how many these are
}

// upcoming is what a vacancy is listed for.
type upcoming int

const (
	toClaim upcoming = iota // of them what may be claimed then
	toShare                 // they were released in favour of another one, who may not have claimed them
	toRank                  // another one should have claimed them: who comes next?
)

// list takes note of a vacancy. A role is listed once: if it was already, and for no later
// time, that counts.
func (c *claims) list(v *vacancy) {
	if len(v.roles) > 0 {
		if more := int(slices.Max(v.roles)) + 1 - len(c.listed); more > 0 {
			c.listed = append(c.listed, make([]*vacancy, more)...)
		}
	}
	for _, role := range v.roles {
		switch old := c.listed[role]; {
		case old == nil:
		case old.at <= v.at:
			continue
		default:
			old.left--
		}
		c.listed[role] = v
		v.left++
	}
	c.vacant = append(c.vacant, v)
	c.tidy()
}

func (c *claims) add(at clock.Mono, roles []int32) { c.list(&vacancy{at: at, roles: roles}) }

// isListed reports whether something is to be thought of a role.
func (c *claims) isListed(role int32) bool {
	return int(role) < len(c.listed) && c.listed[role] != nil
}

// drop forgets that roles were vacant: somebody holds them. Should they be released, it
// is thought of anew who is to claim them. It costs no more than the roles that are
// dropped: every Claim of somebody drops some, and there may be very many vacant.
func (c *claims) drop(roles []int32) {
	for _, role := range roles {
		if c.isListed(role) {
			c.listed[role].left--
			c.listed[role] = nil
		}
	}
	c.tidy()
}

// tidy forgets vacancies of which nothing is left.
func (c *claims) tidy() {
	c.vacant = slices.DeleteFunc(c.vacant, func(v *vacancy) bool { return v.left == 0 })
}

// clear forgets all vacancies.
func (c *claims) clear() {
	c.vacant = nil
	clear(c.listed)
}

// due takes out the roles of which this is to be thought by now, ascending, below limit.
func (c *claims) due(what upcoming, now clock.Instant, limit int32) []int32 {
	var roles []int32
	c.vacant = slices.DeleteFunc(c.vacant, func(v *vacancy) bool {
		if v.what != what || now.Mono < v.at {
			return false
		}
		for _, role := range v.roles {
			if c.listed[role] == v {
				c.listed[role] = nil
				if role < limit {
					roles = append(roles, role)
				}
			}
		}
		return true
	})
	slices.Sort(roles)
	return roles
}

// next is when the first of the vacancies is due. Before thinkAt nothing is thought of that is
// not claimed yet.
func (c *claims) next(thinkAt clock.Mono) clock.Mono {
	next := clock.Mono(clock.Never)
	for _, v := range c.vacant {
		at := v.at
		if v.what != toClaim {
			at = max(at, thinkAt)
		}
		next = min(next, at)
	}
	return next
}

// overdue reports whether something was to be thought of by a time that is not claimed yet.
func (c *claims) overdue(at clock.Mono) bool {
	return slices.ContainsFunc(c.vacant, func(v *vacancy) bool { return v.what != toClaim && v.at <= at })
}

// take takes out the roles that are to be claimed by now, ascending, below limit.
func (c *claims) take(now clock.Instant, limit int32) []int32 { return c.due(toClaim, now, limit) }
