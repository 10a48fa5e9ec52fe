package elector

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// link is what a process knows of its way to one log and back: own records that have
// not come back, and how long others took. A log that has stood still proves nothing
// against those who were silent meanwhile, and what is queued before it must not be
// added to.
type link struct {
	trusted bool // nothing has to show that it works

	beat  flight
	hello flight

	good      clock.Mono // when an own record last came back within T/4
	stalled   bool       // none does
	recovered clock.Mono // when that was over

	behindUntil clock.Mono // what this process reads is old until then, going by its last record
}

// flight is an own record on its way.
type flight struct {
	seq uint64 // 0: none
	at  clock.Mono
}

func (l *link) reset() { *l = link{recovered: l.recovered} }

// sent takes note of a record that is waited for.
func (l *link) sent(k lease.Kind, seq uint64, now clock.Instant) {
	switch k {
	case lease.Beat, lease.Claim:
		l.beat = flight{seq, now.Mono}
	case lease.Hello:
		l.hello = flight{seq, now.Mono}
	case lease.Release, lease.Snapshot, lease.Ping, lease.Pong:
	}
}

// failed takes note that a record will not come back, or is not known to: another one has
// to show that the log works.
func (l *link) failed(seq uint64) {
	l.stalled = true
	if l.beat.seq == seq {
		l.beat = flight{}
	}
	if l.hello.seq == seq {
		l.hello = flight{}
	}
}

// back takes note that an own record has come back, sent being its stamp (zero: longer
// than T ago).
func (l *link) back(seq uint64, sent, now clock.Instant, t time.Duration) {
	if l.beat.seq <= seq {
		l.beat = flight{}
	}
	if l.hello.seq <= seq {
		l.hello = flight{}
	}
	took := t // or longer
	if sent != (clock.Instant{}) {
		took = now.Mono.Sub(sent.Mono)
	}
	l.behindUntil = 0
	if took >= clock.Behind(t) {
		l.behindUntil = now.Mono.Add(min(took, t))
	}
	if sent == (clock.Instant{}) || now.Age(sent) >= clock.Stalled(t) {
		l.stalled = true
		return
	}
	l.good = now.Mono
	if l.stalled {
		l.stalled, l.recovered = false, now.Mono
	}
}

// beating reports whether a Beat, or a Claim in its place, is on its way: no other is
// sent meanwhile. After T it is given up.
func (l *link) beating(now clock.Instant, t time.Duration) bool {
	return l.beat.seq != 0 && now.Mono.Sub(l.beat.at) < t
}

// probing is the same for Hellos.
func (l *link) probing(now clock.Instant, t time.Duration) bool {
	return l.hello.seq != 0 && now.Mono.Sub(l.hello.at) < t
}

// check reports whether own records come back, as of now: none is overdue, and one has
// within T/2. Otherwise a probe has to show it first.
func (l *link) check(now clock.Instant, t time.Duration) bool {
	if l.beat.seq != 0 && now.Mono.Sub(l.beat.at) >= clock.Stalled(t) || l.hello.seq != 0 && now.Mono.Sub(l.hello.at) >= clock.Stalled(t) {
		l.stalled = true
	}
	return l.trusted || !l.stalled && l.good != 0 && now.Mono.Sub(l.good) < clock.Recent(t)
}

// behind reports whether this process is far behind the log's end, so that what it would
// say to all now others may have said already: an own record is on its way for T/20, or took
// that long and came back less than as long ago.
func (l *link) behind(now clock.Instant, t time.Duration) bool {
	for _, f := range []flight{l.beat, l.hello} {
		if age := now.Mono.Sub(f.at); f.seq != 0 && clock.Behind(t) <= age && age < t { // then it is given up
			return true
		}
	}
	return now.Mono < l.behindUntil
}

// doubtful reports whether the log has stood still since a holder was heard, by the
// monotonic clock: its silence says nothing of it, then.
func (l *link) doubtful(heard clock.Instant) bool { return l.stalled || heard.Mono <= l.recovered }

// back takes note of an own record that was read back.
func (c *channel) back(r *lease.Record, sent, now clock.Instant) {
	if r.Kind == lease.Release {
		return // it has no stamp: that says nothing of how long it took
	}
	stalled := c.link.stalled
	c.link.back(r.Seq, sent, now, c.set.T)
	if stalled && !c.link.stalled && r.Kind != lease.Pong { // who was asked by a holder is not one of a crowd
		c.pacing.notBefore = max(c.pacing.notBefore, now.Mono.Add(c.set.Random(clock.Behind(c.set.T)+1)))
		c.timing.settles = 0 // all are back at the same time, and may have forgotten each other
		c.timing.newcomer(now)
		c.shard.review(now)
	}
	c.timing.back(sent, now)
	took := c.set.T // that long at least
	if sent != (clock.Instant{}) {
		took = now.Mono.Sub(sent.Mono)
	}
	c.counts.RoundTrips.Add(took, 1)
	if r.Kind == lease.Claim {
		c.pacing.returned(sent != (clock.Instant{}), took, c.set, now)
		c.ready.Changed = true // StepDown may wait for it
	}
}
