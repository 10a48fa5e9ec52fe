package elector

import (
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
	Heard     clock.Instant
}

// maxMembers bounds what a topic full of rubbish can make a process remember.
const maxMembers = 10_000

// members is what the other processes of the group have said of themselves. It plays no
// part in the lease.
type members struct {
	by    map[string]*member
	left  map[string]clock.Mono // who has left and when that was read; it does not come back
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
	since     clock.Mono // since when it has been nominated and let no lease run out
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

func newMembers() members { return members{by: map[string]*member{}, left: map[string]clock.Mono{}} }

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

// turn is how long a process leaves it to others to answer: all are asked, one will do, and
// its answer calls off the others'.
//
// A closing process does not count on members that have said goodbye, but those that did so
// within T/2 are probably there still. It waits for them too, for T/2 at most: where all close
// together, each would otherwise be the only one left in its own eyes, and all would answer.
func (ms *members) turn(self string, key uint64, closing bool, t, roundTrip time.Duration, now clock.Instant) time.Duration {
	mine, before := hash(self, key), 0
	for id, m := range ms.by {
		if m.present && !m.suspect && hash(id, key) < mine {
			before++
		}
	}
	leaving := 0
	if closing {
		for id, at := range ms.left {
			if now.Mono.Sub(at) < clock.Recent(t) && hash(id, key) < mine {
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

// quick is how many may answer after round trips, if those before them do not. Of the rest
// each waits longer, by far more than a member that is busy is late: otherwise a hundred
// would answer before they have read that one has.
const quick = 3

func hash(id string, key uint64) uint64 {
	h := key*0x9e3779b97f4a7c15 + 0xcbf29ce484222325
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * 0x100000001b3
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	return h ^ h>>29
}
