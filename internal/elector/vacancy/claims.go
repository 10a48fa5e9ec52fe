package vacancy

import (
	"iter"
	"slices"
	"time"

	"github.com/goneli/neli/internal/byrole"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/placement"
)

// Claims is what a process knows about vacant roles of one shard, and when it will claim them. The
// lease decides what it may claim at all. The rest is preference and restraint: after an outage
// every process would claim everything, and the log would never recover from that.
type Claims struct {
	pending      []*pending
	numbered     []*pending                  // by number, from 1 on; nil if the number is not in use
	listed       []int32                     // by role: the number of the vacancy in which it is; 0: none
	successors   byrole.Map[*successor]      // roles released in favour of a process
	silent       map[lease.Session]clock.Raw // holders found silent: when each was last heard, or saidOnly
	silentAt     clock.Raw                   // when the next holder's lease will be over
	assignPauses assignPauses                // between assignments of vacant roles
	deferred     bool                        // vacancies were passed over, since the log's end was not read yet
	turns        uint64                      // how often a holder was found silent, or was heard again after that
}

func (c *Claims) Init() {
	*c = Claims{silent: map[lease.Session]clock.Raw{}, silentAt: clock.Never, turns: c.turns}
}

// CauseOf returns how this process got a role that it has just won.
func (c *Claims) CauseOf(local int32, self string) Cause {
	h := c.successors.At(local)
	if h == nil {
		return Claimed
	}
	c.successors.Remove(local)
	if h.process == self {
		return h.cause
	}
	return Claimed
}

// successor is the process in whose favour roles were released. It does not change.
type successor struct {
	process string
	cause   Cause
	wait    time.Duration // Record.Wait
}

// Designate notes in whose favour roles were released by a record that changed their holders,
// before any process may claim them.
func (c *Claims) Designate(changed []int32, r *lease.Record, self string) {
	switch {
	case r == nil:
	case r.Kind == lease.Release && r.To != "":
		why := Claimed
		if r.Moved {
			why = Rebalanced
		}
		if r.Pinned {
			why = Transferred
		}
		next := &successor{r.To, why, r.Wait}
		for _, local := range changed {
			c.successors.Set(local, next)
		}
	case c.successors.Len() == 0:
	case r.Kind == lease.Claim && r.Session.Process != self || r.Kind == lease.Release:
		for _, local := range changed {
			c.successors.Remove(local)
		}
	}
}

// BySuccessor sorts roles by the process in whose favour they were released: this one, another one
// that may claim them, or none.
func (c *Claims) BySuccessor(roles []int32, self string, mayTake func(process string) bool) (ours, theirs, open []int32) {
	if c.successors.Len() == 0 {
		return nil, nil, roles
	}
	open = make([]int32, 0, len(roles))
	for _, local := range roles {
		h := c.successors.At(local)
		switch {
		case h != nil && h.process == self:
			ours = append(ours, local)
		case h != nil && mayTake(h.process):
			theirs = append(theirs, local)
		default:
			open = append(open, local)
		}
	}
	return ours, theirs, open
}

// Favours reports whether a role was released in favour of a process.
func (c *Claims) Favours(local int32, process string) bool {
	s := c.successors.At(local)
	return s != nil && s.process == process
}

// LeftTo returns the vacant roles that are left to a process, ascending.
func (c *Claims) LeftTo(process string) (roles []int32) {
	for local, s := range c.successors.All() {
		if s.process == process && c.IsListed(local) {
			roles = append(roles, local)
		}
	}
	return roles
}

// Waits groups roles that have successors by the Wait of their Releases, limited to limit.
func (c *Claims) Waits(roles []int32, limit time.Duration) map[time.Duration][]int32 {
	by := map[time.Duration][]int32{}
	for _, local := range roles {
		wait := min(c.successors.At(local).wait, limit)
		by[wait] = append(by[wait], local)
	}
	return by
}

// Promised reports whether a vacant role has a successor that still accepts it.
func (c *Claims) Promised(takes func(process string) bool) bool {
	for _, s := range c.successors.All() {
		if takes(s.process) {
			return true
		}
	}
	return false
}

// FindSilent returns the holders whose leases are over by any clock, unless it did so since they
// were last heard. Excepted holders are handled elsewhere. It does not look before the first lease may be
// over.
func (c *Claims) FindSilent(holders iter.Seq[lease.HolderState], except func(lease.Session) bool, now clock.Instant) (found []lease.HolderState) {
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

// Given notes that a session has got roles, with a lease until a time. That lease may end before those
// of the holders found so far, since members may differ in T.
func (c *Claims) Given(until clock.Raw) {
	if c.silentAt != clock.Never { // else FindSilent looks in any case
		c.silentAt = min(c.silentAt, until)
	}
}

// Revived reports whether a session that was just heard had been reported as silent.
func (c *Claims) Revived(id lease.Session) bool {
	_, was := c.silent[id]
	if was {
		delete(c.silent, id)
		c.turns++
	}
	return was
}

// LookAgain makes FindSilent look now: records have extended leases. It reports whether any lease's end is awaited.
func (c *Claims) LookAgain(now clock.Instant) bool {
	if c.silentAt == clock.Never {
		return false
	}
	c.silentAt = min(c.silentAt, now.Raw)
	return true
}

// SaidSilent notes that a holder was reported as silent, possibly before FindSilent found it. If
// the holder is heard again, that has to be reported too.
func (c *Claims) SaidSilent(id lease.Session) {
	if id != (lease.Session{}) && c.silent[id] == 0 {
		c.silent[id] = saidOnly
	}
}

// saidOnly stands for a time in Claims.silent: the holder was only reported.
const saidOnly = clock.Raw(1)

// pending is a group of roles to be considered together from a time on, by the monotonic clock.
type pending struct {
	at    clock.Mono
	roles []int32 // only those still listed for it count
	what  Upcoming
	left  int // how many roles are still listed for it
	// number is its place in Claims.numbered. A pointer for each of a million roles would be work
	// for each garbage collection.
	number int32
}

// Upcoming is what happens to a vacancy when it is due.
type Upcoming int

const (
	ToClaim  Upcoming = iota // claim the roles that may be claimed then
	ToAssign                 // assign them, unless a process that may go first has claimed them
	ToRank                   // find the next process, if the one that should have claimed them has not
)

// list adds a vacancy. Each role is listed once: an earlier time that is listed already counts.
func (c *Claims) list(v *pending) {
	if len(v.roles) > 0 {
		if more := int(slices.Max(v.roles)) + 1 - len(c.listed); more > 0 {
			c.listed = append(c.listed, make([]int32, more)...)
		}
	}
	c.enter(v)
	for _, local := range v.roles {
		if n := c.listed[local]; n != 0 {
			old := c.numbered[n]
			if old.at <= v.at {
				continue
			}
			old.left--
		}
		c.listed[local] = v.number
		v.left++
	}
	c.tidy()
}

// enter adds a vacancy under a number that is not in use.
func (c *Claims) enter(v *pending) {
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
	c.pending = append(c.pending, v)
}

// Add lists roles to be claimed at a time, and AddFor lists roles for anything Upcoming.
func (c *Claims) Add(at clock.Mono, roles []int32) { c.AddFor(ToClaim, at, roles) }
func (c *Claims) AddFor(what Upcoming, at clock.Mono, roles []int32) {
	c.list(&pending{at: at, roles: roles, what: what})
}

// IsEmpty reports whether no role is listed.
func (c *Claims) IsEmpty() bool { return len(c.pending) == 0 }

// AnySilent reports whether there are holders that were found silent.
func (c *Claims) AnySilent() bool { return len(c.silent) > 0 }

// NextSilent is when the next holder's lease will be over; Never if there is none.
func (c *Claims) NextSilent() clock.Raw { return c.silentAt }

// Silences is how often a holder was found silent, or was heard again after that.
func (c *Claims) Silences() uint64 { return c.turns }

// Postpone notes that vacancies were passed over, since the log's end was not read yet.
func (c *Claims) Postpone() { c.deferred = true }

// IsPostponed reports whether vacancies were passed over.
func (c *Claims) IsPostponed() bool { return c.deferred }

// StartOver drops what was listed and found, so that all is looked at again at once. Assignments are
// dropped, too, so the next one need not wait: a process that is behind would otherwise put its own
// share off by T/2, again and again while its round trips vary.
func (c *Claims) StartOver(now clock.Instant) {
	c.Clear()
	c.assignPauses.next = min(c.assignPauses.next, now.Mono)
	c.deferred = false
	clear(c.silent)
	c.silentAt = 0
}

// AssignAt is the earliest time at which roles are assigned again.
func (c *Claims) AssignAt() clock.Mono { return c.assignPauses.next }

// Assigned notes that roles are assigned now, and returns the pause until the next time; see assignPauses.least.
func (c *Claims) Assigned(behind bool, roles, members int, t time.Duration, now clock.Instant) (pause time.Duration) {
	pause = c.assignPauses.least(behind, roles, members, t, now)
	c.assignPauses.add(now.Mono, pause)
	return pause
}

// Promises yields the roles that were released in favour of a process, and that process.
func (c *Claims) Promises() iter.Seq2[int32, string] {
	return func(yield func(int32, string) bool) {
		for local, s := range c.successors.All() {
			if !yield(local, s.process) {
				return
			}
		}
	}
}

// ForgetSuccessors notes that successors have not claimed their roles in time.
func (c *Claims) ForgetSuccessors(roles []int32) {
	for _, local := range roles {
		c.successors.Remove(local)
	}
}

// IsListed reports whether a role is in a vacancy.
func (c *Claims) IsListed(local int32) bool {
	_, _, listed := c.Planned(local)
	return listed
}

// Planned returns what happens to a role next, and when.
func (c *Claims) Planned(local int32) (what Upcoming, at clock.Mono, listed bool) {
	if int(local) >= len(c.listed) || c.listed[local] == 0 {
		return 0, 0, false
	}
	v := c.numbered[c.listed[local]]
	return v.what, v.at, true
}

// Drop removes roles, mostly because they have a holder now. When they are released, it is decided
// again which process claims them. Other vacant roles add nothing to its cost: every Claim drops
// some, and very many may be vacant.
func (c *Claims) Drop(roles []int32) {
	for _, local := range roles {
		if c.IsListed(local) {
			c.numbered[c.listed[local]].left--
			c.listed[local] = 0
		}
	}
	c.tidy()
}

// tidy removes empty vacancies.
func (c *Claims) tidy() {
	c.remove(func(v *pending) bool { return v.left == 0 })
}

// remove removes the vacancies for which over returns true. No role may be listed for them.
func (c *Claims) remove(over func(*pending) bool) {
	c.pending = slices.DeleteFunc(c.pending, func(v *pending) bool {
		if !over(v) {
			return false
		}
		c.numbered[v.number] = nil
		return true
	})
}

// Free gives the memory back while there is no vacancy.
func (c *Claims) Free() {
	if len(c.pending) == 0 {
		c.numbered, c.listed = nil, nil
	}
}

// Clear removes all vacancies.
func (c *Claims) Clear() {
	c.pending, c.numbered = nil, nil
	clear(c.listed)
}

// Due removes and returns the roles below limit of vacancies of this kind that are due, ascending.
func (c *Claims) Due(what Upcoming, now clock.Instant, limit int32) []int32 {
	var roles []int32
	c.remove(func(v *pending) bool {
		if v.what != what || now.Mono < v.at {
			return false
		}
		for _, local := range v.roles {
			if c.listed[local] == v.number {
				c.listed[local] = 0
				if local < limit {
					roles = append(roles, local)
				}
			}
		}
		return true
	})
	slices.Sort(roles)
	return roles
}

// Next is when the first vacancy is due. Vacancies to be assigned or ranked are not considered before thinkAt.
func (c *Claims) Next(thinkAt clock.Mono) clock.Mono {
	next := clock.Mono(clock.Never)
	for _, v := range c.pending {
		at := v.at
		if v.what != ToClaim {
			at = max(at, thinkAt)
		}
		next = min(next, at)
	}
	return next
}

// Overdue reports whether a vacancy to be assigned or ranked was due by a time.
func (c *Claims) Overdue(at clock.Mono) bool {
	return slices.ContainsFunc(c.pending, func(v *pending) bool { return v.what != ToClaim && v.at <= at })
}

// Take removes and returns the roles below limit that are to be claimed now, ascending.
func (c *Claims) Take(now clock.Instant, limit int32) []int32 { return c.Due(ToClaim, now, limit) }

// HeadStart is the least time for which others leave a role to the process in whose favour it was released.
func HeadStart(unit time.Duration) time.Duration { return 4*unit + 10*time.Millisecond }

// AnsweredIn returns the Wait of a Release in favour of a process whose Pong was read took after its Ping, and
// ago before now. Its Claim comes took after the Release, by every reader's clock, since a reader's own
// distance delays both records. The rest is for delays that vary: took again, or 100 ms if that is more, but
// no more than three times took, plus 10 ms. A process that answered T/4 ago or earlier may not trust its log.
// It sends a Hello first, which takes as long again, so it gets four times took. The wait is at most T/2, like
// every wait for others.
func AnsweredIn(took, ago, t time.Duration) time.Duration {
	if took <= 0 {
		return 0
	}
	wait := 4 * took
	if ago < clock.Stalled(t) {
		wait = min(wait, took+max(took, 100*time.Millisecond))
	}
	return min(wait+10*time.Millisecond, clock.Patience(t))
}

// Ranking says in which order processes may claim the roles of a shard.
type Ranking struct {
	Plan   *placement.Plan
	Me     int     // this process
	First  []int32 // by role: which process comes first
	RoleOf byrole.Numbering
	Full   bool // this process has as many roles as it wants, and so comes last
}

// before returns how many processes come between the first one and this one.
func (r Ranking) before(local int32) int {
	role := r.RoleOf.Role(local)
	if int(r.First[role]) == r.Me {
		return 0
	}
	if r.Full {
		return placement.MaxRank
	}
	return max(0, r.Plan.Rank(r.Me, int(r.First[role]), role)-1)
}

// Rank decides when this process will claim roles that the processes of higher rank have not
// claimed: a turn later for each of them. The first one has had its turn.
func (c *Claims) Rank(roles []int32, r Ranking, turn time.Duration, now clock.Instant) {
	byWait := map[time.Duration][]int32{}
	for _, local := range roles {
		wait := turn * time.Duration(r.before(local))
		byWait[wait] = append(byWait[wait], local)
	}
	for wait, some := range byWait {
		c.Add(now.Mono.Add(wait), some)
	}
}
