package elector

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// talk is what is said in one log that has no part in the rules: Hellos, the answers to
// Pings, and Snapshots for those who do not know the fold.
type talk struct {
	helloAt clock.Time // monotonic: when this process may say Hello here again
	greeted bool       // it has, since it read this log anew
	begun   clock.Time // monotonic: since when it reads it
	read    clock.Time // monotonic: when it had read what was there then; 0: not yet
	back    bool       // and asked for more, farther back
	again   bool       // reading began here because of that
	caught  bool       // it has read what was there then

	snapshotAt clock.Time // monotonic: when a Snapshot is due; 0: none is
	patience   clock.Time // monotonic: until when it is put off as this process is behind; 0: it was not
	toldAt     clock.Time // monotonic: when one was read
	since      int        // records since the newest Snapshot
	voice      bool       // it is for others to compare: theirs do not call it off
	gave       bool       // something was released here: leave a Snapshot behind
	left       bool       // it was left

	contradicts string // the process that was last found to have another fold
}

func (t *talk) reset(now clock.Instant) { *t = talk{helloAt: now.Mono, begun: now.Mono} }

// catchUp takes note that what was in the log when reading began was read: up to then a role
// that a Snapshot calls vacant may be held by what comes after it. There may be gaps at the
// end of a log, which are not waited for for ever.
func (n *Node) catchUp(p *partition, now clock.Instant) {
	if !p.talk.caught && (p.log.Offset()+1 >= p.end || now.Mono >= p.catchUpUntil(n.set.T)) {
		p.talk.caught = true
		n.resize(n.rolesOf(p), now) // there may be vacancies to count
		if p.talk.again {
			n.offerSnapshot(p, n.turn(uint64(p.index), now), now) // others look for one, too
		}
		n.ready.Changed = true
	}
}

func (p *partition) catchUpUntil(t time.Duration) clock.Time { return p.talk.begun.Add(t) }

// caughtUp reports whether the logs that tell who holds the roles of p were read so far that
// what they call vacant is: all of one, or most of several.
func (n *Node) caughtUp(p *partition) bool {
	logs, caught := n.logsOf(p), 0
	for _, l := range logs {
		if l.talk.caught {
			caught++
		}
	}
	return caught > len(logs)/2
}

// listen draws the conclusions of what a record says, whatever it did to the lease.
func (n *Node) listen(p *partition, o int64, r *lease.Record, now clock.Instant) {
	id, live := r.Session.Process, o >= p.end
	if p.talk.since++; p.talk.since >= n.snapshotEvery(p) && r.Kind != lease.Snapshot {
		n.offerSnapshot(p, 4*n.turn(uint64(o), now), now) // nobody waits for it
	}
	if r.Kind == lease.Hello && r.Hello.Leaving {
		n.timing.partedAt = now.Mono
		n.timing.byeBack = n.timing.byeBack || id == n.set.Process
	}
	if id == n.set.Process {
		switch {
		case r.Kind != lease.Ping:
		case r.To == lease.Everyone || r.Request != nil:
			n.requests.back(p.index, o, r)
		default:
			n.pinged(p, o, r)
		}
		if r.Kind == lease.Snapshot {
			p.talk.told(now)
		}
		return
	}
	if live {
		n.members.alive(id, now)
	}
	switch r.Kind {
	case lease.Hello:
		n.greeted(p, o, r, live, now)
	case lease.Ping:
		switch {
		case r.To == lease.Everyone:
			n.answerCall(o, live, now)
		case r.To != n.set.Process || !live: // what was asked before this process came was asked of another
		case r.Request != nil:
			n.requested(p, o, r, now)
		default:
			n.pong(p, o, r, now)
		}
	case lease.Pong:
		if r.To == n.set.Process && !n.requests.replied(p.index, r, now) {
			n.ponged(p, r)
		}
	case lease.Snapshot:
		p.talk.told(now)
	case lease.Beat, lease.Claim, lease.Release:
	}
}

// greeted takes note of another process's Hello. A newcomer is told at once who else is
// there, and who holds what.
func (n *Node) greeted(p *partition, o int64, r *lease.Record, live bool, now clock.Instant) {
	unknown, changed := n.members.announced(r.Session.Process, r.Name, r.Hello, live, now)
	if changed {
		n.planner.forget()
		n.mover.dirty = true
	}
	if r.Longest == lease.Unsaid && live {
		n.offerSnapshot(p, n.turn(uint64(o), now), now)
	}
	if !live {
		return
	}
	if !unknown {
		if !changed {
			n.announceWith(now)
		}
		return
	}
	n.showUp(now)
	if !n.set.Nominated {
		n.announceSoon(now)
		n.timing.newcomer(now)
	}
}

// showUp lets a newcomer know at once that this process leads what it leads. Where that
// would be many records, it waits for the next beat.
func (n *Node) showUp(now clock.Instant) {
	if len(n.parts) > fewHolders {
		return
	}
	for _, p := range n.parts {
		switch {
		case p.lease.Sessions() > fewHolders:
		default:
			n.beat(p, now, n.set.Every)
		}
	}
}

// fewHolders is how many holders may answer a newcomer with a beat each; with more members
// than that, a closing one waits before it names its successors.
const fewHolders = 8

// snapshotEvery is how many records lie between two Snapshots: K, or less where they are
// small, for those who only read and cannot ask for one.
func (n *Node) snapshotEvery(p *partition) int {
	return min(History, max(leastHistory, int(p.log.Roles())/8))
}

// leastHistory is how many records lie between two Snapshots at least.
const leastHistory = 60

// turn is how long this process leaves it to others to answer: all are asked, one will do,
// and its answer calls off the others'.
//
// A closing process does not count on members that have said goodbye, but those that did so
// within T/2 are probably there still. It waits for them too, for T/2 at most: where all close
// together, each would otherwise be the only one left in its own eyes, and all would answer.
func (n *Node) turn(key uint64, now clock.Instant) time.Duration {
	mine, before := hash(n.set.Process, key), 0
	for id, m := range n.members.by {
		if m.present && !m.suspect && hash(id, key) < mine {
			before++
		}
	}
	leaving := 0
	if n.desired.Closing {
		for id, at := range n.members.left {
			if now.Mono.Sub(at) < n.set.T/2 && hash(id, key) < mine {
				leaving++
			}
		}
	}
	patience := min(n.set.T/2, n.set.T/20*time.Duration(leaving))
	wait := 2 * n.timing.roundTrip() * time.Duration(before)
	if before <= quick {
		return patience + min(wait, n.set.T/20)
	}
	return patience + max(wait, n.set.T/20*time.Duration(before-quick))
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

// told takes note that everybody was told who holds what.
func (t *talk) told(now clock.Instant) {
	t.since, t.toldAt = 0, now.Mono
	if !t.voice {
		t.snapshotAt, t.patience = 0, 0
	}
}

// speak lets a Snapshot be due with which others compare theirs. Nobody else's stands for
// it, and whoever is behind does not wait: a fold that is wrong goes on meanwhile.
func (n *Node) speak(p *partition, after time.Duration, now clock.Instant) {
	if !n.set.Observer {
		p.talk.voice, p.talk.snapshotAt = true, max(1, now.Mono.Add(after))
	}
}

// snapshotPause is how long after a Snapshot there is no other one: everybody has to read
// it, and a hundred newcomers would ask for a hundred. To read it takes each about a tenth
// of a microsecond a role, so that with all members on one machine a quarter of a core is
// busy with Snapshots at most. Where a Snapshot is cheap that is no longer than a round trip.
func (n *Node) snapshotPause(p *partition) time.Duration {
	return min(n.set.T/2, time.Duration(int(p.log.Roles())*(n.members.size()+1))*400*time.Nanosecond)
}

// offerSnapshot lets a Snapshot be due after a while, unless another's is read first.
func (n *Node) offerSnapshot(p *partition, after time.Duration, now clock.Instant) {
	if p.talk.snapshotAt == 0 && p.log.Known() && !n.set.Observer {
		p.talk.snapshotAt = now.Mono.Add(after)
		if p.talk.toldAt != 0 {
			p.talk.snapshotAt = max(p.talk.snapshotAt, p.talk.toldAt.Add(n.snapshotPause(p)))
		}
		if p.talk.snapshotAt == 0 {
			p.talk.snapshotAt = 1
		}
	}
}

// answer appends a Snapshot if one is due. Who is behind does not know whether another one
// has done so, and looks again later, for T/2: all may be behind, for ever.
func (n *Node) answer(p *partition, now clock.Instant) {
	if p.talk.snapshotAt == 0 || now.Mono < p.talk.snapshotAt {
		return
	}
	if p.talk.voice && !p.log.Asked() {
		p.talk.voice, p.talk.snapshotAt = false, 0 // it is decided, or enough have said so
		return
	}
	if p.talk.patience == 0 {
		p.talk.patience = now.Mono.Add(n.set.T / 2)
	}
	if !p.talk.voice && p.link.behind(now, n.set.T) && now.Mono < p.talk.patience {
		p.talk.snapshotAt = now.Mono.Add(n.set.T / 20)
		return
	}
	p.talk.snapshotAt, p.talk.patience, p.talk.since, p.talk.voice = 0, 0, 0, false
	n.append(p, now, n.snapshot(p, now)...)
}

// wants is what a Hello says that this process may claim; nil means everything.
func (n *Node) wants(now clock.Instant) []int {
	wants := []int{}
	switch {
	case n.desired.Closing:
	case !n.set.Nominated:
		if n.desired.Willing(now) && n.set.Alive(now) {
			return nil
		}
	default:
		for _, p := range n.parts {
			if p.group.nominated {
				wants = append(wants, p.index)
			}
		}
	}
	return wants
}

func (n *Node) announcement(wants []int) *lease.Announcement {
	return &lease.Announcement{Priority: n.set.Priority, Roles: n.desired.Roles, Wants: wants, Leaving: n.desired.Closing,
		Period: helloPeriod(n.members.size())}
}

// announce says Hello if it is time, in the log that is this process's home, or in
// another one if that cannot be reached.
func (n *Node) announce(now clock.Instant) {
	t := &n.timing
	if !n.announces() {
		return
	}
	if n.desired.Closing {
		t.bye, t.byeAt, t.announceAt = true, now.Mono, now.Mono
	}
	wants := n.wants(now)
	t.wavered = t.wavered || t.willing && wants != nil
	if t.wavered && wants == nil {
		wants = []int{} // though it is over when it can be said: others must not take this process for steady
	}
	if !n.set.Nominated && t.willing != (wants == nil) {
		n.announceSoon(now)
	}
	if now.Mono < n.announceDue(now) {
		return
	}
	n.announced(wants, now)
	n.hello(n.logs[n.reachable()], wants, now)
}

// announceDue is when the next Hello may go out: not while another one has not come back
// from the log that it would go to, unless it is the last.
func (n *Node) announceDue(now clock.Instant) clock.Time {
	at := n.timing.announceAt
	if link := &n.logs[n.reachable()].link; link.probing(now, n.set.T) && !n.desired.Closing {
		at = max(at, link.hello.at.Add(n.set.T))
	}
	return at
}

// announces reports whether this process has anything to announce, now or later.
func (n *Node) announces() bool {
	return !n.set.Observer && !(n.desired.Closing && n.timing.bye)
}

// announceSoon lets the next Hello come earlier.
func (n *Node) announceSoon(now clock.Instant) {
	t := &n.timing
	t.announceAt = min(t.announceAt, max(now.Mono, t.saidAt.Add(helloGap(n.members.size()))))
}

// announceWith lets a Hello of which half the period has passed go out when another's is
// read that has no news: as with Beats, all readers are woken once for all of them. With
// less than half, groups that are far enough apart would stay so. One that was put off on
// purpose waits.
func (n *Node) announceWith(now clock.Instant) {
	t := &n.timing
	period := t.announceAt.Sub(t.saidAt)
	if t.saidAt != 0 && period <= helloPeriod(n.members.size()) && now.Mono.Sub(t.saidAt) >= period/2 {
		t.announceAt = min(t.announceAt, now.Mono)
	}
}

// answerCall lets the next Hello come earlier, because a process asks who is there. A group of
// up to twenty answers at once. A larger one spreads its answers, so that all together say
// twenty a second, however many call and however often. A Hello that was put off on purpose
// waits.
func (n *Node) answerCall(o int64, live bool, now clock.Instant) {
	t, size := &n.timing, n.members.size()
	if !live || t.announceAt.Sub(t.saidAt) > helloPeriod(size) {
		return
	}
	at := t.saidAt.Add(helloGap(size))
	if size > 20 {
		at = max(at, now.Mono.Add(time.Duration(hash(n.set.Process, uint64(o))%uint64(helloGap(size)))))
	}
	t.announceAt = min(t.announceAt, max(at, now.Mono))
}

// announced takes note of what others are told.
func (n *Node) announced(wants []int, now clock.Instant) {
	t := &n.timing
	t.announceAt, t.saidAt = now.Mono.Add(helloPeriod(n.members.size())), now.Mono
	t.willing, t.wavered = wants == nil, false
}

// hello says Hello in a log. All members read all logs, so each is as good as another,
// but for one from which nothing comes back.
func (n *Node) hello(p *partition, wants []int, now clock.Instant) {
	if p.link.hello.seq == 0 && !p.link.stalled {
		n.announced(wants, now)
	}
	r := n.word(p, lease.Hello, now)
	r.Hello = n.announcement(wants)
	p.talk.greeted = true
	p.talk.helloAt = now.Mono.Add(max(n.set.T/8, 4*n.timing.roundTrip()))
	n.append(p, now, r)
	if n.timing.settles == 0 {
		n.timing.newcomer(now)
	}
}

// probe says Hello in a log to see whether it comes back. One at a time is enough.
func (n *Node) probe(p *partition, now clock.Instant) {
	if now.Mono < p.talk.helloAt || p.link.probing(now, n.set.T) || n.set.Observer {
		return
	}
	n.hello(p, n.wants(now), now)
}

// greet says Hello in a log that this process has read to its end and does not know, so
// that somebody writes a Snapshot; and before a holder's lease is over, so that it is
// known by then whether the log works.
func (n *Node) greet(p *partition, now clock.Instant) {
	if n.set.Observer || n.desired.Closing {
		return
	}
	if at, ok := n.greetDue(p, now); !ok || now.Mono < at {
		return
	}
	n.heardSince(p, now)
	if at, ok := n.greetDue(p, now); ok && now.Mono >= at {
		n.probe(p, now)
	}
}

func (n *Node) greetDue(p *partition, now clock.Instant) (at clock.Time, ok bool) {
	switch {
	case !p.log.Known():
		if p.log.Offset()+1 < p.end && p.talk.greeted {
			return 0, false
		}
		at = p.talk.helloAt
		if p.talk.greeted {
			// More and more seldom: who answers at all does so at once.
			at = at.Add(max(n.set.T/2, min(helloEvery, p.talk.helloAt.Sub(p.talk.begun)/2)))
			if !p.link.check(now, n.set.T) && n.willing(p, now) { // soon enough for the first Claim
				at = min(at, max(p.talk.helloAt, now.MonoOf(p.log.FreshAt()).Add(-n.set.T/4)))
			}
		} else if p.log.Offset()+1 < p.end {
			at = at.Add(n.set.Every) // there are gaps at the end, perhaps
		}
	case p.claims.silentAt != clock.Never && n.willing(p, now) && !p.link.check(now, n.set.T):
		at = max(p.talk.helloAt, now.MonoOf(p.claims.silentAt).Add(-n.set.T/4))
	default:
		return 0, false
	}
	if p.link.probing(now, n.set.T) {
		at = max(at, p.link.hello.at.Add(n.set.T))
	}
	return at, true
}

// pong answers a Ping, in the same log.
func (n *Node) pong(p *partition, o int64, r *lease.Record, now clock.Instant) {
	if n.set.Nominated || n.set.Observer || n.desired.Closing || !n.willing(p, now) {
		return
	}
	answer := n.word(p, lease.Pong, now)
	answer.To, answer.Ping, answer.Hello = r.Session.Process, o, n.announcement(n.wants(now))
	n.append(p, now, answer)
}

// talkDue tells when something is to be said in p.
func (n *Node) talkDue(p *partition, now clock.Instant, mono func(clock.Time)) {
	if p.talk.snapshotAt != 0 {
		mono(p.talk.snapshotAt)
	}
	if !p.talk.caught {
		mono(p.catchUpUntil(n.set.T))
	}
	mono(n.lookBackAt(p, now))
	if n.set.Observer || n.desired.Closing {
		return
	}
	if at, ok := n.greetDue(p, now); ok {
		mono(at)
	}
}
