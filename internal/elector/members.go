package elector

import (
	"cmp"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/placement"
)

// Member is a process of the group that has announced itself.
type Member struct {
	Name      string
	Process   string
	Self      bool
	Nominated bool
	Priority  int
	Heard     clock.Instant
}

// maxMembers bounds what a topic full of rubbish can make a process remember.
const maxMembers = 10_000

// members is what the other processes of the group have said of themselves. It plays no
// part in the lease.
type members struct {
	by    map[string]*member
	left  map[string]clock.Time // monotonic: who has left and when that was read; it does not come back
	wants []wish                // by partition: who said last that it may claim there
}

type member struct {
	name      string
	heard     clock.Instant
	period    time.Duration // in which it says Hello
	priority  int
	roles     int
	nominated bool       // it may claim something
	present   bool       // it has said something since this process came
	suspect   bool       // a lease of its has run out since it was heard
	since     clock.Time // monotonic: since when it has been nominated and let no lease run out
}

// staying reports whether a process has been heard again since it came, and lately. One of
// many that crash as soon as they are started says hardly more than one Hello.
func (m *member) staying(now clock.Instant) bool {
	return m.heard.Mono.Sub(m.since) >= helloEvery/2 && now.Mono.Sub(m.heard.Mono) < 3*max(m.period, helloEvery)/2
}

type wish struct {
	process string
	heard   clock.Instant
}

func newMembers() members { return members{by: map[string]*member{}, left: map[string]clock.Time{}} }

func (ms *members) open(partitions int) { ms.wants = make([]wish, partitions) }

// size is how many processes there are, this one included.
func (ms *members) size() int { return len(ms.by) + 1 }

// announced takes note of a Hello of another process; live tells that it was said while
// this one was there. It reports whether the process was not known before, and whether
// anything has changed by which roles are placed.
func (ms *members) announced(id, name string, a *lease.Announcement, live bool, now clock.Instant) (unknown, changed bool) {
	was, known := ms.by[id]
	if a.Leaving {
		ms.forget(id)
		ms.leave(id, now)
		return false, known
	}
	if _, gone := ms.left[id]; gone { // said before that, in another log
		return false, false
	}
	if !known {
		if len(ms.by) >= maxMembers {
			ms.evict()
		}
		was = &member{}
		ms.by[id] = was
	}
	m := *was
	m.name, m.heard, m.period, m.priority, m.roles = name, now, a.Period, a.Priority, a.Roles
	m.nominated = a.Wants == nil || len(a.Wants) > 0
	m.present = m.present || live
	m.suspect = false
	if !was.nominated || was.suspect {
		m.since = now.Mono
	}
	changed = !known || m.priority != was.priority || m.roles != was.roles || m.nominated != was.nominated ||
		m.present != was.present || was.suspect
	*was = m
	ms.wish(id, a, now)
	return !known, changed
}

// leave remembers that a process has left, for as long as others of its words may be read.
func (ms *members) leave(id string, now clock.Instant) {
	if len(ms.left) >= maxMembers {
		clear(ms.left)
	}
	ms.left[id] = now.Mono
}

// wish notes for which partitions a process may claim.
func (ms *members) wish(id string, a *lease.Announcement, now clock.Instant) {
	for p := range ms.wants {
		if ms.wants[p].process == id {
			ms.wants[p] = wish{}
		}
		if a.Wants == nil {
			ms.wants[p] = wish{id, now}
		}
	}
	for _, p := range a.Wants {
		if p >= 0 && p < len(ms.wants) {
			ms.wants[p] = wish{id, now}
		}
	}
}

// alive takes note that a process has written something while this one was there.
func (ms *members) alive(id string, now clock.Instant) {
	if m := ms.by[id]; m != nil {
		m.heard = now
	}
}

// heardSince reports whether a process has written something since then, in any log.
func (ms *members) heardSince(id string, then clock.Instant) bool {
	m := ms.by[id]
	return m != nil && m.heard.Mono > then.Mono
}

// suspect takes note that a lease of a process has run out: it is no candidate until it
// is heard again, and is there since then only.
// It reports whether it was not before.
func (ms *members) suspect(id string) bool {
	m := ms.by[id]
	if m == nil || m.suspect {
		return false
	}
	m.suspect = true
	return true
}

// suspected reports whether a lease of a process has run out since it was heard.
func (ms *members) suspected(id string) bool {
	m := ms.by[id]
	return m != nil && m.suspect
}

// takes reports whether a process would claim what is released in its favour.
func (ms *members) takes(id string) bool {
	m := ms.by[id]
	return m != nil && m.nominated && m.present && !m.suspect
}

// mayTake reports whether a process may claim what was released in its favour. It has
// answered the one that released it, so that it need not be known here: it may have come
// just before this process.
func (ms *members) mayTake(id string) bool {
	_, gone := ms.left[id]
	m, known := ms.by[id]
	return !gone && (!known || m.nominated && !m.suspect)
}

// wanting reports whether a process wants a role, by the number that it announced.
func (ms *members) wanting(id string, role int) bool {
	m := ms.by[id]
	return m != nil && role < m.roles
}

func (ms *members) forget(id string) {
	delete(ms.by, id)
	for p := range ms.wants {
		if ms.wants[p].process == id {
			ms.wants[p] = wish{}
		}
	}
}

// evict forgets the process that was silent longest.
func (ms *members) evict() {
	oldest := ""
	for id, m := range ms.by {
		if oldest == "" || m.heard.Mono < ms.by[oldest].heard.Mono {
			oldest = id
		}
	}
	ms.forget(oldest)
}

// expire forgets those who have been silent for three of the periods that they
// announced, and calls gone if there were any.
func (ms *members) expire(now clock.Instant, gone func()) {
	for id, at := range ms.left {
		if now.Mono.Sub(at) > 3*maxHelloPeriod {
			delete(ms.left, id)
		}
	}
	for id, m := range ms.by {
		if now.Mono.Sub(m.heard.Mono) > 3*max(m.period, helloEvery) {
			ms.forget(id)
			gone()
		}
	}
}

// find returns the one process that has this id, or else this name, and would claim.
func (ms *members) find(to string) string {
	if ms.takes(to) {
		return to
	}
	found := ""
	for id, m := range ms.by {
		if m.name != to || !ms.takes(id) {
			continue
		}
		if found != "" {
			return ""
		}
		found = id
	}
	return found
}

// means reports whether a name or id means this process: it is its id, or it is its name and
// no other member has that.
func (ms *members) means(to, process, name string) bool {
	if to == process {
		return true
	}
	for id, m := range ms.by {
		if id == to || m.name == to && id != process {
			return false
		}
	}
	return to == name
}

// wantedBy reports whether there is nobody to wait for on partition p: another process
// has said that it is nominated, since this one was, or there is no other process. What
// was said before is void: its sender may have crashed, and its partitions come to this
// process thereby.
func (ms *members) wantedBy(p int, since clock.Instant) bool {
	w := ms.wants[p]
	return len(ms.by) == 0 || w.process != "" && w.heard.Mono >= since.Mono
}

// planner keeps the plan that follows from who is there: it is made anew only when that
// has changed.
type planner struct {
	valid   [2]bool
	plans   [2]*placement.Plan
	who     [2][]placement.Candidate
	fresh   bool
	prefs   map[string][]int32 // Preference's words, by process
	forR    int                // for so many roles
	sharing sharing            // who should claim what is vacant (claim.go)
}

func (pl *planner) forget() { pl.valid = [2]bool{} }

// changed reports whether there is another plan than when it was last asked.
func (pl *planner) changed() bool {
	c := pl.fresh
	pl.fresh = false
	return c
}

// plan returns the plan, and the index of this process. With expected it reckons with
// members of whom only history tells: at a start of all, they are likely to be there.
// Without, only with those that have been heard.
func (pl *planner) plan(n *Node, expected bool, now clock.Instant) (plan *placement.Plan, me int) {
	i := 0
	if expected {
		i = 1
	}
	who := pl.candidates(n, expected, now)
	if !pl.valid[i] || !slices.EqualFunc(who, pl.who[i], sameCandidate) {
		pl.plans[i], pl.who[i], pl.valid[i] = placement.New(who), who, true
		pl.fresh = true
	}
	return pl.plans[i], pl.plans[i].Find(n.set.Process)
}

func sameCandidate(a, b placement.Candidate) bool {
	return a.ID == b.ID && a.Priority == b.Priority && a.Roles == b.Roles && a.Steady == b.Steady && a.Soon == b.Soon &&
		len(a.Prefs) == len(b.Prefs)
}

// candidates are those who may claim: of them who holds something and was not heard for
// half of its lease is not reckoned with.
func (pl *planner) candidates(n *Node, expected bool, now clock.Instant) []placement.Candidate {
	who := make([]placement.Candidate, 0, n.members.size())
	quiet := n.quiet(now)
	for id, m := range n.members.by {
		if !m.nominated || m.suspect || !m.present && !expected || quiet[id] {
			continue
		}
		cool := n.moves.cool.leaves(id, now.Mono)
		steady := m.present && now.Mono.Sub(m.since) >= steadyAfter && now.Mono.Sub(m.heard.Mono) < 2*max(m.period, helloEvery) && !cool
		soon := !steady && m.present && !cool && m.staying(now)
		who = append(who, placement.Candidate{ID: id, Priority: m.priority, Roles: m.roles, Steady: steady, Soon: soon, Prefs: pl.prefs[id]})
	}
	if n.desired.Willing(now) && !n.set.Observer && n.set.Alive(now) {
		steady := n.moves.willing != 0 && now.Mono.Sub(n.moves.willing) >= steadyAfter
		who = append(who, placement.Candidate{ID: n.set.Process, Priority: n.set.Priority, Roles: n.desired.Roles, Steady: steady,
			Soon: !steady, Prefs: pl.prefs[n.set.Process]})
	}
	slices.SortFunc(who, func(a, b placement.Candidate) int { return cmp.Compare(a.ID, b.ID) })
	return who
}

// quiet returns the processes that hold something and of which nothing was read for half
// of their lease, though the log works: they are probably dead.
func (n *Node) quiet(now clock.Instant) map[string]bool {
	var quiet map[string]bool
	for _, p := range n.parts {
		if p.link.stalled {
			continue
		}
		for h := range p.lease.Holders() {
			whole := h.FreeAt.Sub(h.Heard.Raw)
			if now.Raw.Sub(h.Heard.Raw) > whole/2 && !p.link.doubtful(h.Heard) {
				if quiet == nil {
					quiet = map[string]bool{}
				}
				quiet[h.Session.Process] = true
			}
		}
	}
	return quiet
}

// Unasked returns the members whose Preference is not known, for so many roles. The
// caller asks without a lock, as it is the user's code, and says what it heard with
// Preferred.
func (n *Node) Unasked() (ask []Member, roles int) {
	if n.set.Preference == nil || n.set.Nominated {
		return nil, 0
	}
	pl := &n.planner
	if pl.forR != n.desired.Roles || pl.prefs == nil {
		pl.prefs, pl.forR = map[string][]int32{}, n.desired.Roles
	}
	for id := range pl.prefs {
		if n.members.by[id] == nil && id != n.set.Process {
			delete(pl.prefs, id)
		}
	}
	for id, m := range n.members.by {
		if pl.prefs[id] == nil {
			ask = append(ask, Member{Name: m.name, Process: id, Priority: m.priority})
		}
	}
	if pl.prefs[n.set.Process] == nil && !n.set.Observer {
		ask = append(ask, Member{Name: n.set.Name, Process: n.set.Process, Priority: n.set.Priority})
	}
	return ask, pl.forR
}

// Preferred says how much a member is wanted, by role.
func (n *Node) Preferred(process string, prefs []int32) {
	if len(prefs) == n.planner.forR {
		n.planner.prefs[process] = prefs
		n.planner.forget()
	}
}
