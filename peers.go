package neli

import (
	"errors"
	"log/slog"
	"time"
)

// helloEvery is how often a process announces itself; one that was not heard of
// for three times as long is taken for gone.
const helloEvery = 5 * time.Second

// helloPeriod is helloEvery in a group of n. All read what each says, so that the
// cost grows with the square of n: of more than 25, all together say five a second.
func helloPeriod(n int) time.Duration { return max(helloEvery, time.Duration(n)*helloEvery/25) }

// helloGap is how soon a process says it again if there is news, as there is for all
// others when somebody comes: in a group of more than 20, all together say twenty a
// second.
func helloGap(n int) time.Duration {
	return max(time.Second, time.Duration(n)*time.Second/20)
}

// maxPeers bounds what a topic full of rubbish can make a process remember.
const maxPeers = 10_000

// peers is what the other processes of the group have said of themselves. It
// plays no part in the lease: a holder that leaves waits for a successor by it, and
// candidates give way to each other by it.
type peers struct {
	heard map[string]peer // by member: what each said last
	wants []wish          // by partition: the latest word of wanting it
}

type peer struct {
	name      string
	heard     instant
	nominated bool // it may claim something
	present   bool // it has said something since this process came
	priority  int
	since     instant       // since when it has been nominated and let no lease lapse, as far as is known here
	suspect   bool          // a lease of its has lapsed since it was heard
	period    time.Duration // in which it says Hello: as few as there were when it did
}

type wish struct {
	member string
	heard  instant
}

func newPeers(m int) peers { return peers{heard: map[string]peer{}, wants: make([]wish, m)} }

// hear takes note of a Hello, and reports whether its sender was not known before. What
// is said aside, in another log, may be read after what was said later: it makes nobody
// come back who has left, or is not well.
func (ps *peers) hear(r record, self string, now instant) bool {
	former, known := ps.heard[r.member]
	if r.member == self || !known && (len(ps.heard) >= maxPeers || r.aside()) {
		return false
	}
	ps.forget(r.member)
	if r.leaving {
		return false
	}
	p := peer{name: r.name, heard: now, nominated: r.wants == nil || len(r.wants) > 0, present: former.present,
		priority: r.priority, since: now, period: helloPeriod(ps.size() + 1)}
	if r.aside() {
		p.nominated = p.nominated && former.nominated
	}
	if former.nominated && !former.suspect {
		p.since = former.since
	}
	ps.heard[r.member] = p
	if r.wants == nil {
		for p := range ps.wants {
			ps.wants[p] = wish{r.member, now}
		}
	}
	for _, p := range r.wants {
		if p >= 0 && p < len(ps.wants) {
			ps.wants[p] = wish{r.member, now}
		}
	}
	return !known
}

// suspect takes note that a lease of a member has lapsed: it is no candidate until
// it is heard again, and is there since then only.
func (ps *peers) suspect(member string) {
	if p, ok := ps.heard[member]; ok {
		p.suspect = true
		ps.heard[member] = p
	}
}

// takes reports whether a member would claim what is released in its favour.
func (ps *peers) takes(member string) bool {
	p, ok := ps.heard[member]
	return ok && p.nominated && p.present && !p.suspect
}

// confirm takes note that what a member said last was said while this process was
// there to hear it: it lives, or did a moment ago.
func (ps *peers) confirm(member string) {
	if p, ok := ps.heard[member]; ok {
		p.present = true
		ps.heard[member] = p
	}
}

func (ps *peers) forget(member string) {
	delete(ps.heard, member)
	for p := range ps.wants {
		if ps.wants[p].member == member {
			ps.wants[p] = wish{}
		}
	}
}

// size is how many processes there are, this one included.
func (ps *peers) size() int { return len(ps.heard) + 1 }

// expire forgets those who have been silent for three Hellos.
func (ps *peers) expire(now instant) {
	period := helloPeriod(ps.size())
	for member, p := range ps.heard {
		if now.age(p.heard) > 3*max(period, p.period) {
			ps.forget(member)
		}
	}
}

// find returns the id of the one member that has this id, or else this name, and
// would claim.
func (ps *peers) find(to string) string {
	if ps.takes(to) {
		return to
	}
	found := ""
	for id, p := range ps.heard {
		if p.name != to || !ps.takes(id) {
			continue
		}
		if found != "" {
			return ""
		}
		found = id
	}
	return found
}

// list returns those who have said something since this process came.
func (ps *peers) list(now instant) []Member {
	var ms []Member
	for id, p := range ps.heard {
		if p.present {
			ms = append(ms, Member{Name: p.name, ID: id, Nominated: p.nominated, Priority: p.priority, Heard: p.heard.time(), Age: now.ageAtMost(p.heard)})
		}
	}
	return ms
}

// ready reports whether there is nobody to wait for on partition p: another
// process has said that it is nominated, since this one was, or there is no other
// process. What was said before is void: its sender may have crashed, and its
// partitions come to this process thereby.
func (ps *peers) ready(p int, since instant) bool {
	w := ps.wants[p]
	return len(ps.heard) == 0 || w.member != "" && w.heard.age(since) >= 0
}

// tempo keeps what an arbiter knows of its own timing.
type tempo struct {
	rtt     time.Duration // smoothed round trip of own records
	longest time.Duration // that is believed
	own     instant       // when an own record was last read back
	asked   instant       // when the log was last doubted
	helloAt time.Duration // monotonic time of the next Hello
	saidAt  time.Duration // and of the last one
	bye     bool          // the last Hello was said
	wanting bool          // the last Hello said that this process wants all it can have
	wavered bool          // and since then there was a moment when it did not
	freeAt  time.Duration // closing: when nothing was held any more
}

// back takes note of an own record that was stamped at sent and has come back.
func (t *tempo) back(sent, now instant) {
	t.own = now
	t.measure(now.age(sent))
}

// measure takes note of a round trip. Shorter ones count for more: the first takes
// a connection, and others may wait for a broker that is gone.
func (t *tempo) measure(d time.Duration) {
	switch {
	case d >= t.longest:
	case d < t.rtt:
		t.rtt += (d - t.rtt) / 2
	default:
		t.rtt += (d - t.rtt) / 8
	}
}

// wavers reports whether there was a moment since the last Hello, which said that this
// process wants all it can have, when it did not.
func (t *tempo) wavers(all bool) bool {
	t.wavered = t.wavered || t.wanting && !all
	return t.wavered
}

// woke takes note of how late a step is that was due at a given time. A process
// that was suspended may not have heard yet that its session is over and others
// have its partitions: for a pause it does not say what it wants.
func (t *tempo) woke(now instant, due, pause time.Duration) {
	if due != 0 && now.mono-due > time.Second {
		t.helloAt = max(t.helloAt, now.mono+pause)
	}
}

// doubtful reports, once in every wait, that own records are expected and none
// has come back for that long: perhaps the topic is another one by now.
func (t *tempo) doubtful(now instant, busy bool, wait time.Duration) bool {
	if !busy {
		t.own = now
		return false
	}
	if now.age(t.own) < wait || now.age(t.asked) < wait {
		return false
	}
	t.asked = now
	return true
}

// skipped makes sure that each kind of odd record is logged once.
type skipped struct {
	malformed, newer bool
}

// count takes note of a record that decode refused.
func (k *skipped) count(s *Stats, n *notes, err error, e logEntry) {
	switch {
	case errors.Is(err, errForeign):
		s.Foreign++
	case errors.Is(err, errNewer):
		s.Newer++
		if !k.newer {
			k.newer = true
			n.add(slog.LevelWarn, "skipping records of a newer version of this library; logged once",
				"partition", e.partition, "offset", e.offset)
		}
	default:
		s.Malformed++
		if !k.malformed {
			k.malformed = true
			n.add(slog.LevelWarn, "skipping malformed records; logged once",
				"partition", e.partition, "offset", e.offset, "error", err)
		}
	}
}
