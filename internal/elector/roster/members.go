package roster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// Member is a process of the group that has announced itself.
type Member struct {
	Name      string
	Process   string
	Self      bool
	Nominated bool
	Priority  int
	Roles     int // R, as it announced it
	Advertise string
	Zone      string
	MaxRoles  int // the most that it wants to lead; 0: no limit
	Heard     clock.Instant
}

// MaxMembers limits what a topic full of rubbish can make a process remember.
const MaxMembers = 10_000

// Members is what the other processes of the group have announced. It does not affect leases.
type Members struct {
	by    map[string]*member
	left  map[string]clock.Mono // processes that have left, and when that was read; none comes back
	wants []wish                // by partition: the last process that announced that it may claim there
	scans int                   // how often Turn or evict looked at all members
	turns uint64                // how often what Node.Members returns has changed, except for the times Heard
}

type member struct {
	name      string
	heard     clock.Instant
	period    time.Duration // the time between its Hellos
	priority  int
	roles     int
	advertise string
	zone      string
	maxRoles  int
	caps      bool // it knows caps
	prepares  *lease.Prepares
	nominated bool       // it may claim some roles
	present   bool       // it has said Hello since this process started
	suspect   bool       // one of its leases has expired; a Hello or Revive ends that
	since     clock.Mono // since when it has been nominated and no lease of it has expired
}

// staying reports whether a process has been heard more than once, and recently. A process that
// crashes soon after each start says hardly more than one Hello.
func (m *member) staying(now clock.Instant) bool {
	return m.heard.Mono.Sub(m.since) >= HelloEvery/2 && !m.overdue(now)
}

// overdue reports whether a process has been silent for so long that it has probably crashed.
func (m *member) overdue(now clock.Instant) bool {
	return now.Mono.Sub(m.heard.Mono) >= 3*max(m.period, HelloEvery)/2
}

// Self is a process's id and name.
type Self struct{ Process, Name string }

type wish struct {
	process string
	heard   clock.Instant
}

func NewMembers() Members { return Members{by: map[string]*member{}, left: map[string]clock.Mono{}} }

func (ms *Members) Open(partitions int) { ms.wants = make([]wish, partitions) }

// Size is the number of processes, including this one.
func (ms *Members) Size() int { return len(ms.by) + 1 }

// Looks is how often Turn or evict looked at all members.
func (ms *Members) Looks() int { return ms.scans }

// Departed is how many processes have left lately.
func (ms *Members) Departed() int { return len(ms.left) }

// Changes is how often what All returns has changed, except for the times Heard.
func (ms *Members) Changes() uint64 { return ms.turns }

// NameOf returns the name of a process; empty if it is unknown.
func (ms *Members) NameOf(id string) string {
	if m := ms.by[id]; m != nil {
		return m.name
	}
	return ""
}

// Present is how many processes have said Hello since this process started.
func (ms *Members) Present() (n int) {
	for _, m := range ms.by {
		if m.present {
			n++
		}
	}
	return n
}

// All returns the processes that Present counts.
func (ms *Members) All() (out []Member) {
	for id, m := range ms.by {
		if m.present {
			out = append(out, m.public(id))
		}
	}
	return out
}

// public returns what others may know of a process.
func (m *member) public(id string) Member {
	return Member{Name: m.name, Process: id, Nominated: m.nominated, Priority: m.priority, Roles: m.roles,
		Advertise: m.advertise, Zone: m.zone, MaxRoles: m.maxRoles, Heard: m.heard}
}

// Known returns what is known of a process; empty if nothing is.
func (ms *Members) Known(id string) Member {
	if m := ms.by[id]; m != nil {
		return m.public(id)
	}
	return Member{}
}

// Announced handles a Hello of another process; live means that it was written while this process
// was running. unknown reports whether the Hello made the process known, and changed whether
// anything changed on which placement depends.
func (ms *Members) Announced(id, name string, a *lease.Announcement, live bool, now clock.Instant) (unknown, changed bool) {
	was, known := ms.by[id]
	if a.Leaving {
		ms.Forget(id)
		ms.Leave(id, now)
		return false, known
	}
	if _, gone := ms.left[id]; gone { // an earlier Hello in another log
		return false, false
	}
	if !known {
		if len(ms.by) >= MaxMembers {
			ms.evict()
		}
		was = &member{}
		ms.by[id] = was
	}
	m := *was
	m.name, m.heard, m.period, m.priority, m.roles = name, now, a.Period, a.Priority, a.Roles
	m.advertise, m.zone, m.maxRoles, m.caps, m.prepares = a.Advertise, a.Zone, a.MaxRoles, a.Caps, a.Prepares
	m.nominated = a.Wants == nil || len(a.Wants) > 0
	m.present = m.present || live
	m.suspect = false
	if !was.nominated || was.suspect {
		m.since = now.Mono
	}
	changed = !known || m.priority != was.priority || m.roles != was.roles || m.maxRoles != was.maxRoles || m.caps != was.caps || m.nominated != was.nominated ||
		m.present != was.present || was.suspect
	if changed && m.present || m.name != was.name || m.advertise != was.advertise || m.zone != was.zone {
		ms.turns++
	}
	*was = m
	ms.wish(id, a, now)
	return !known, changed
}

// Leave remembers that a process has left, as long as older records of it may be read.
func (ms *Members) Leave(id string, now clock.Instant) {
	if len(ms.left) >= MaxMembers {
		clear(ms.left)
	}
	ms.left[id] = now.Mono
}

// wish notes on which partitions a process may claim.
func (ms *Members) wish(id string, a *lease.Announcement, now clock.Instant) {
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

// Alive notes that a process has written something while this process was running.
func (ms *Members) Alive(id string, now clock.Instant) {
	if m := ms.by[id]; m != nil {
		m.heard = now
	}
}

// HeardSince reports whether a process was heard after a time, in any log.
func (ms *Members) HeardSince(id string, then clock.Instant) bool {
	m := ms.by[id]
	return m != nil && m.heard.Mono > then.Mono
}

// Suspect notes that a lease of a process has expired: the process is no candidate until it says
// Hello, and SteadyAfter counts from then on, unless Revive is called. Suspect reports whether the
// process was known and not suspect.
func (ms *Members) Suspect(id string) bool {
	m := ms.by[id]
	if m == nil || m.suspect {
		return false
	}
	m.suspect = true
	return true
}

// Revive notes that a suspect process was heard before another one took its roles: this process had read its record
// late. If the lease may have lapsed all the same, SteadyAfter counts from now on. Revive reports
// whether it was suspect.
func (ms *Members) Revive(id string, lapsed bool, now clock.Instant) bool {
	m := ms.by[id]
	if m == nil || !m.suspect {
		return false
	}
	m.suspect = false
	if lapsed {
		m.since = now.Mono
	}
	return true
}

// Suspected reports whether a process is suspect: see Suspect.
func (ms *Members) Suspected(id string) bool {
	m := ms.by[id]
	return m != nil && m.suspect
}

// Takes reports whether a process would claim what is released in its favour.
func (ms *Members) Takes(id string) bool {
	m := ms.by[id]
	return m != nil && m.nominated && m.present && !m.suspect
}

// MayTake reports whether a process may claim what was released in its favour. This process need not
// know it: it has answered the former holder, and may have joined just before.
func (ms *Members) MayTake(id string) bool {
	_, gone := ms.left[id]
	m, known := ms.by[id]
	return !gone && (!known || m.nominated && !m.suspect)
}

// Wanting reports whether a process wants a role, by the number of roles that it announced.
func (ms *Members) Wanting(id string, role int) bool {
	m := ms.by[id]
	return m != nil && role < m.roles
}

// Prepares returns how a process prepares roles before it leads them; false if it takes them unprepared.
func (ms *Members) Prepares(id string) (p lease.Prepares, ok bool) {
	if m := ms.by[id]; m != nil && m.prepares != nil {
		return *m.prepares, true
	}
	return p, false
}

// Standbys returns the processes that stand by for roles of others, ascending.
func (ms *Members) Standbys() (out []string) {
	for id, m := range ms.by {
		if m.prepares != nil && m.prepares.Standby && ms.Takes(id) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

func (ms *Members) Forget(id string) {
	if ms.by[id] != nil {
		delete(ms.by, id)
		ms.turns++
	}
	for p := range ms.wants {
		if ms.wants[p].process == id {
			ms.wants[p] = wish{}
		}
	}
}

// evict forgets the hundredth of the processes that has been silent longest. It looks at all of
// them, so it makes room for more than one.
func (ms *Members) evict() {
	ms.scans++
	silent := make([]wish, 0, len(ms.by))
	for id, m := range ms.by {
		silent = append(silent, wish{id, m.heard})
	}
	slices.SortFunc(silent, func(a, b wish) int {
		return cmp.Or(cmp.Compare(a.heard.Mono, b.heard.Mono), cmp.Compare(a.process, b.process))
	})
	for _, w := range silent[:max(1, len(silent)/100)] {
		ms.Forget(w.process)
	}
}

// Expire forgets processes that have been silent for three announced periods (15 s at least), and
// calls gone for each.
func (ms *Members) Expire(now clock.Instant, gone func()) {
	for id, at := range ms.left {
		if now.Mono.Sub(at) > 3*maxHelloPeriod {
			delete(ms.left, id)
		}
	}
	for id, m := range ms.by {
		if now.Mono.Sub(m.heard.Mono) > 3*max(m.period, HelloEvery) {
			ms.Forget(id)
			gone()
		}
	}
}

// Find returns the id of the process that an id or name refers to; empty if there is none that
// would claim. self is this process, which may be the one. After a crash and a restart two
// processes have one name for a while: an overdue one counts only if all are. If several are left,
// the error says so.
func (ms *Members) Find(to string, self Self, now clock.Instant) (id string, err error) {
	if to == self.Process || ms.Takes(to) {
		return to, nil
	}
	var present, overdue []string
	if to == self.Name {
		present = append(present, self.Process)
	}
	for id, m := range ms.by {
		switch {
		case m.name != to || !ms.Takes(id):
		case m.overdue(now):
			overdue = append(overdue, id)
		default:
			present = append(present, id)
		}
	}
	if len(present) == 0 {
		present = overdue
	}
	switch len(present) {
	case 0:
		return "", nil
	case 1:
		return present[0], nil
	}
	slices.Sort(present)
	return "", &severalError{present}
}

// severalError says that a name belongs to several members. For callers it is an ErrNoMember.
type severalError struct{ ids []string }

func (e *severalError) Error() string {
	return fmt.Sprintf("neli: %d members have this name, use an id: %s", len(e.ids), Harmless(strings.Join(e.ids[:min(len(e.ids), 5)], ", ")))
}

func (e *severalError) Is(target error) bool { return target == ErrNoMember }

// Means reports whether a name or id refers to a process: its id, or its name if no other member that Takes has it.
func (ms *Members) Means(to string, of Self, now clock.Instant) bool {
	if to == of.Process {
		return true
	}
	for id, m := range ms.by {
		if id == to || m.name == to && id != of.Process && ms.Takes(id) && !m.overdue(now) {
			return false
		}
	}
	return to == of.Name
}

// WantedBy reports whether this process need not wait for another one on partition p: another
// process has announced a nomination after this process got its own, or there is no other process.
// Earlier announcements do not count: their sender may have crashed, which may be why this process
// was nominated.
func (ms *Members) WantedBy(p int, since clock.Instant) bool {
	w := ms.wants[p]
	return len(ms.by) == 0 || w.process != "" && w.heard.Mono >= since.Mono
}

// Turn is how long a process waits for others to answer first. A question goes to all. One answer
// is enough: when it is read, the other members do not answer.
//
// A closing process does not expect answers from members that have said goodbye, except those that
// did so within T/2: they are probably still running. It waits at most T/2 for them. If all
// members close together, each would otherwise consider itself the only one left, and all would
// answer.
func (ms *Members) Turn(self string, key uint64, closing bool, t, roundTrip time.Duration, now clock.Instant) time.Duration {
	ms.scans++
	mine, before := Hash(self, key), 0
	for id, m := range ms.by {
		if m.present && !m.suspect && Hash(id, key) < mine {
			before++
		}
	}
	leaving := 0
	if closing {
		for id, at := range ms.left {
			if now.Mono.Sub(at) < clock.Recent(t) && Hash(id, key) < mine {
				leaving++
			}
		}
	}
	patience := min(clock.Patience(t), clock.Behind(t)*time.Duration(leaving))
	wait := 2 * roundTrip * time.Duration(before)
	if before <= quick {
		return patience + min(wait, clock.Behind(t))
	}
	return patience + max(wait, clock.Behind(t)*time.Duration(before-quick))
}

// quick is how many members may answer a few round trips apart if those before them do not. Each of
// the rest waits longer, by much more than a busy member is late. Otherwise a hundred members would
// answer before they have read the first answer.
const quick = 3

func Hash(id string, key uint64) uint64 {
	h := key*0x9e3779b97f4a7c15 + 0xcbf29ce484222325
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * 0x100000001b3
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	return h ^ h>>29
}
