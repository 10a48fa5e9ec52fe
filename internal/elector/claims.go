package elector

import (
	"iter"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/placement"
)

// claims is what a process knows about vacant roles of one shard, and when it will claim them. The
// lease decides what it may claim at all. The rest is preference and restraint: after an outage
// every process would claim everything, and the log would never recover from that.
type claims struct {
	vacant     []*vacancy
	numbered   []*vacancy                  // by number, from 1 on; nil if the number is not in use
	listed     []int32                     // by role: the number of the vacancy in which it is; 0: none
	successors byRole[*successor]          // roles released in favour of a process
	silent     map[lease.Session]clock.Raw // holders found silent: when each was last heard, or saidOnly
	silentAt   clock.Raw                   // when the next holder's lease will be over
	sharings   sharings                    // of vacant roles
	deferred   bool                        // vacancies were passed over, since the log's end was not read yet
	turns      uint64                      // how often a holder was found silent, or was heard again after that
}

func (c *claims) init() {
	*c = claims{silent: map[lease.Session]clock.Raw{}, silentAt: clock.Never, turns: c.turns}
}

// causeOf returns how this process got a role that it has just won.
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
	wait    time.Duration // Record.Wait
}

// designate notes in whose favour roles were released by a record that changed their holders,
// before any process may claim them.
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
		next := &successor{r.To, why, r.Wait}
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

// bySuccessor sorts roles by the process in whose favour they were released: this one, another one
// that may claim them, or none.
func (c *claims) bySuccessor(roles []int32, self string, mayTake func(process string) bool) (ours, theirs, open []int32) {
	if c.successors.len() == 0 {
		return nil, nil, roles
	}
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

// leftTo returns the vacant roles that are left to a process, ascending.
func (c *claims) leftTo(process string) (roles []int32) {
	for role, s := range c.successors.all() {
		if s.process == process && c.isListed(role) {
			roles = append(roles, role)
		}
	}
	return roles
}

// waits groups roles that have successors by how long they are left to them, at most limit.
func (c *claims) waits(roles []int32, limit time.Duration) map[time.Duration][]int32 {
	by := map[time.Duration][]int32{}
	for _, role := range roles {
		wait := min(c.successors.at(role).wait, limit)
		by[wait] = append(by[wait], role)
	}
	return by
}

// promised reports whether a role that nobody holds was released in favour of a process that takes
// it.
func (c *claims) promised(takes func(process string) bool) bool {
	for _, s := range c.successors.all() {
		if takes(s.process) {
			return true
		}
	}
	return false
}

// findSilent returns the holders whose leases are over by any clock and that were not found
// before. Excepted holders are handled elsewhere. It does not look before the first lease may be
// over.
func (c *claims) findSilent(holders iter.Seq[lease.HolderState], except func(lease.Session) bool, now clock.Instant) (found []lease.HolderState) {
	if c.silentAt != clock.Never && now.Raw < c.silentAt {
		return nil
	}
	c.silentAt = clock.Never
	known := c.silent
	if len(known) > 0 { // forget those that hold nothing any more
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
			c.turns++
		}
	}
	return found
}

// given notes that a session has got roles, with a lease until a time. It may end before those of
// the holders found so far, since members may differ in T.
func (c *claims) given(until clock.Raw) {
	if c.silentAt != clock.Never { // else findSilent looks in any case
		c.silentAt = min(c.silentAt, until)
	}
}

// revived reports whether a session that was just heard had been reported as silent.
func (c *claims) revived(id lease.Session) bool {
	_, was := c.silent[id]
	if was {
		delete(c.silent, id)
		c.turns++
	}
	return was
}

// lookAgain makes the end of the next lease be computed again: records read since have extended
// leases.
func (c *claims) lookAgain(now clock.Instant) bool {
	if c.silentAt == clock.Never {
		return false
	}
	c.silentAt = min(c.silentAt, now.Raw)
	return true
}

// saidSilent notes that a holder was reported as silent, possibly before findSilent found it. If
// the holder is heard again, that has to be reported too.
func (c *claims) saidSilent(id lease.Session) {
	if id != (lease.Session{}) && c.silent[id] == 0 {
		c.silent[id] = saidOnly
	}
}

// saidOnly stands for a time in claims.silent: the holder was only reported.
const saidOnly = clock.Raw(1)

// vacancy is a group of roles to be considered together from a time on, by the monotonic clock.
type vacancy struct {
	at    clock.Mono
	roles []int32 // only those still listed for it count
	what  upcoming
	left  int // the number of these
	// number is its place in claims.numbered. A pointer for each of a million roles would be work
	// for each garbage collection.
	number int32
}

// upcoming is what happens to a vacancy when it is due.
type upcoming int

const (
	toClaim upcoming = iota // claim the roles that may be claimed then
	toShare                 // share them out, if the process in whose favour they were released has not claimed them
	toRank                  // find the next process, if the one that should have claimed them has not
)

// list adds a vacancy. Each role is listed once: an earlier time that is listed already counts.
func (c *claims) list(v *vacancy) {
	if len(v.roles) > 0 {
		if more := int(slices.Max(v.roles)) + 1 - len(c.listed); more > 0 {
			c.listed = append(c.listed, make([]int32, more)...)
		}
	}
	c.enter(v)
	for _, role := range v.roles {
		if n := c.listed[role]; n != 0 {
			old := c.numbered[n]
			if old.at <= v.at {
				continue
			}
			old.left--
		}
		c.listed[role] = v.number
		v.left++
	}
	c.tidy()
}

// enter adds a vacancy under a number that is not in use.
func (c *claims) enter(v *vacancy) {
	if len(c.numbered) == 0 {
		c.numbered = append(c.numbered, nil) // 0 is no number
	}
	if i := slices.Index(c.numbered[1:], nil); i >= 0 {
		v.number = int32(i + 1)
		c.numbered[v.number] = v
	} else {
		v.number = int32(len(c.numbered))
		c.numbered = append(c.numbered, v)
	}
	c.vacant = append(c.vacant, v)
}

func (c *claims) add(at clock.Mono, roles []int32) { c.list(&vacancy{at: at, roles: roles}) }

// isListed reports whether a role is in a vacancy.
func (c *claims) isListed(role int32) bool {
	return int(role) < len(c.listed) && c.listed[role] != 0
}

// drop removes roles that have a holder now. When they are released, it is decided again which
// process claims them. Its cost depends on the dropped roles only: every Claim drops some, and
// very many may be vacant.
func (c *claims) drop(roles []int32) {
	for _, role := range roles {
		if c.isListed(role) {
			c.numbered[c.listed[role]].left--
			c.listed[role] = 0
		}
	}
	c.tidy()
}

// tidy removes empty vacancies.
func (c *claims) tidy() {
	c.remove(func(v *vacancy) bool { return v.left == 0 })
}

// remove removes the vacancies for which over returns true. No role may be listed for them.
func (c *claims) remove(over func(*vacancy) bool) {
	c.vacant = slices.DeleteFunc(c.vacant, func(v *vacancy) bool {
		if !over(v) {
			return false
		}
		c.numbered[v.number] = nil
		return true
	})
}

// free gives the memory back while there is no vacancy.
func (c *claims) free() {
	if len(c.vacant) == 0 {
		c.numbered, c.listed = nil, nil
	}
}

// clear removes all vacancies.
func (c *claims) clear() {
	c.vacant, c.numbered = nil, nil
	clear(c.listed)
}

// due removes and returns the roles below limit of vacancies of this kind that are due, ascending.
func (c *claims) due(what upcoming, now clock.Instant, limit int32) []int32 {
	var roles []int32
	c.remove(func(v *vacancy) bool {
		if v.what != what || now.Mono < v.at {
			return false
		}
		for _, role := range v.roles {
			if c.listed[role] == v.number {
				c.listed[role] = 0
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

// next is when the first vacancy is due. Vacancies other than those to be claimed are not
// considered before thinkAt.
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

// overdue reports whether a vacancy that is not to be claimed was due by a time.
func (c *claims) overdue(at clock.Mono) bool {
	return slices.ContainsFunc(c.vacant, func(v *vacancy) bool { return v.what != toClaim && v.at <= at })
}

// take removes and returns the roles below limit that are to be claimed now, ascending.
func (c *claims) take(now clock.Instant, limit int32) []int32 { return c.due(toClaim, now, limit) }

// headStart is how long others leave a role at least to the process in whose favour it was released.
func headStart(unit time.Duration) time.Duration { return 4*unit + 10*time.Millisecond }

// answeredIn returns the Wait of a Release in favour of a process that answered a Ping after took, read
// by read, some time ago. Its Claim comes as long after the Release, by the clock of every reader, since a
// reader's own distance delays both records. The rest is for delays that vary: as long again, and 100 ms
// where that is less, but no more than three times as long. A process that answered T/4 ago or earlier may
// no longer trust its log. It sends a Hello first, which takes as long again, so it gets four times as long.
// The wait is at most T/2, as every wait for others.
func answeredIn(took, ago, t time.Duration) time.Duration {
	if took <= 0 {
		return 0
	}
	wait := 4 * took
	if ago < clock.Stalled(t) {
		wait = min(wait, took+max(took, 100*time.Millisecond))
	}
	return min(wait+10*time.Millisecond, clock.Patience(t))
}

// settleFor is how long a starting process waits for Hellos before it claims its share of several
// roles: this long after each newcomer, at most three times.
const settleFor = 100 * time.Millisecond

// ranking is in which order processes come for the roles of a shard.
type ranking struct {
	plan   *placement.Plan
	me     int     // this process
	first  []int32 // by role: which process comes first
	roleOf numbering
}

// before returns how many processes of those that come second or later do so before this one.
func (r ranking) before(local int32) int {
	role := r.roleOf.role(local)
	if int(r.first[role]) == r.me {
		return 0
	}
	return max(0, r.plan.Rank(r.me, int(r.first[role]), role)-1)
}

// rank decides when this process will claim roles that the processes of higher rank have not
// claimed: a turn later for each of them. The first one has had its turn.
func (c *claims) rank(roles []int32, r ranking, turn time.Duration, now clock.Instant) {
	byWait := map[time.Duration][]int32{}
	for _, role := range roles {
		wait := turn * time.Duration(r.before(role))
		byWait[wait] = append(byWait[wait], role)
	}
	for wait, some := range byWait {
		c.add(now.Mono.Add(wait), some)
	}
}
