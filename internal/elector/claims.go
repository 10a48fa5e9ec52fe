package elector

import (
	"iter"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// claims is what a process knows of vacant roles of one shard, and when it will
// claim them. The lease says which it may claim at all; all else is preference, and
// restraint: after an outage everybody would claim everything, and the log would never
// recover from that.
type claims struct {
	vacant     []*vacancy
	listed     []*vacancy                  // by role: which of them has it
	successors byRole[*successor]          // roles released in somebody's favour
	silent     map[lease.Session]clock.Raw // whose silence was found: when it was last heard; saidOnly
	silentAt   clock.Raw                   // when the next holder's lease will be over
	sharings   sharings                    // of what is vacant
}

func (c *claims) init() {
	*c = claims{silent: map[lease.Session]clock.Raw{}, silentAt: clock.Never}
}

// causeOf tells how this process came by a role that it has just won.
func (c *claims) causeOf(role int32, self string) cause {
	h := c.successors.at(role)
	if h == nil {
		return claimed
	}
	c.successors.remove(role)
	if h.process == self {
		return h.cause
	}
	return claimed
}

// successor is the process in whose favour roles were released. It does not change.
type successor struct {
	process string
	cause   cause
}

// designate notes in whose favour roles were released, by a record that changed who holds them,
// before anybody may claim them.
func (c *claims) designate(changed []int32, r *lease.Record, self string) {
	switch {
	case r == nil:
	case r.Kind == lease.Release && r.To != "":
		why := claimed
		if r.Moved {
			why = rebalanced
		}
		if r.Pinned {
			why = transferred
		}
		next := &successor{r.To, why}
		for _, role := range changed {
			c.successors.set(role, next)
		}
	case c.successors.len() == 0:
	case r.Kind == lease.Claim && r.Session.Process != self || r.Kind == lease.Release:
		for _, role := range changed {
			c.successors.remove(role)
		}
	}
}

// bySuccessor sorts roles by who comes first: this process, or another one that may take them, as
// they were released in its favour; or nobody.
func (c *claims) bySuccessor(roles []int32, self string, mayTake func(process string) bool) (ours, theirs, open []int32) {
	open = make([]int32, 0, len(roles))
	for _, role := range roles {
		h := c.successors.at(role)
		switch {
		case h != nil && h.process == self:
			ours = append(ours, role)
		case h != nil && mayTake(h.process):
			theirs = append(theirs, role)
		default:
			open = append(open, role)
		}
	}
	return ours, theirs, open
}

// promised reports whether something that nobody holds was released in favour of a process that
// takes it.
func (c *claims) promised(takes func(process string) bool) bool {
	for _, s := range c.successors.all() {
		if takes(s.process) {
			return true
		}
	}
	return false
}

// findSilent returns the holders whose leases are over by any clock, and of which that was not
// found before. A holder that is excepted is dealt with otherwise. It does not look before the
// first of the leases may be over.
func (c *claims) findSilent(holders iter.Seq[lease.HolderState], except func(lease.Session) bool, now clock.Instant) (found []lease.HolderState) {
	if c.silentAt != clock.Never && now.Raw < c.silentAt {
		return nil
	}
	c.silentAt = clock.Never
	known := c.silent
	if len(known) > 0 { // those that hold nothing any more are forgotten
		c.silent = make(map[lease.Session]clock.Raw, len(known))
	}
	for h := range holders {
		at, is := known[h.Session]
		if is {
			c.silent[h.Session] = at
		}
		switch {
		case is && at == h.Heard.Raw:
		case now.Raw < h.FreeAt:
			c.silentAt = min(c.silentAt, h.FreeAt)
		case except(h.Session):
		default:
			c.silent[h.Session] = h.Heard.Raw
			found = append(found, h)
		}
	}
	return found
}

// revived reports whether others were told that a session is silent, which was heard now.
func (c *claims) revived(id lease.Session) bool {
	_, was := c.silent[id]
	delete(c.silent, id)
	return was
}

// lookAgain lets it be worked out anew when the next lease will be over: records that were read
// since have put that off.
func (c *claims) lookAgain(now clock.Instant) bool {
	if c.silentAt == clock.Never {
		return false
	}
	c.silentAt = min(c.silentAt, now.Raw)
	return true
}

// saidSilent takes note that others were told of a holder's silence, maybe before it was
// dealt with: they have to be told if it is heard again.
func (c *claims) saidSilent(id lease.Session) {
	if id != (lease.Session{}) && c.silent[id] == 0 {
		c.silent[id] = saidOnly
	}
}

// saidOnly stands for a time in claims.silent: nothing was done yet but to say so.
const saidOnly = clock.Raw(1)

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

// sharings is how often vacant roles were shared out lately.
type sharings struct {
	next clock.Mono    // there is none before
	last time.Duration // the pause until then
	made int           // in a row
}

// row is how many there have been by now, each soon after the one before.
func (s *sharings) row(now clock.Mono) int {
	if now.Sub(s.next) > s.last {
		return 0
	}
	return s.made
}

// pause is the one after a sharing out that is made now: an eighth of the whole one after
// the first of a row, and twice as long after each of the next. Many who die together are
// found to be silent within much less than the whole pause, and what they held need not wait
// for it; where that goes on, sharing out is soon as rare as the whole pause makes it.
func (s *sharings) pause(now clock.Mono, whole time.Duration) time.Duration {
	return whole >> max(0, 3-s.row(now))
}

// add takes note of a sharing out.
func (s *sharings) add(now clock.Mono, pause time.Duration) {
	*s = sharings{next: now.Add(pause), last: pause, made: s.row(now) + 1}
}

// headStart is how long others leave a role to the one in whose favour it was released.
func headStart(unit time.Duration) time.Duration { return 4*unit + 10*time.Millisecond }

// settleFor is how long a process that starts waits for Hellos, before it claims its share of
// several roles: so long for each newcomer, three times at most.
const settleFor = 100 * time.Millisecond
