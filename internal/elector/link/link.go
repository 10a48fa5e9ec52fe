package link

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// Link is what a process knows about its way to one log and back: own records in flight, and how
// long earlier ones took. If a log has stood still, the silence of other processes means nothing,
// and no more records may be queued for it.
type Link struct {
	reading bool // the records that were in the log when reading began are not read yet
	trusted bool // the log itself reports that it can be reached

	beat  flight
	hello flight

	good      clock.Mono // when an own record last came back within T/4
	stalled   bool       // own records do not come back in time
	recovered clock.Mono // when one did again

	took     time.Duration // how long the last own record took, T at most
	withheld clock.Mono    // since when this process would have claimed, had own records come back in time; 0: it withholds nothing
	said     bool          // that it withholds Claims was logged

	behindUntil clock.Mono // until then the records being read are old, judging by the last own record
}

// flight is an own record in flight.
type flight struct {
	seq uint64 // 0: none
	at  clock.Mono
}

// TrustedLink returns the link to a log that reports by itself that it can be reached.
func TrustedLink() Link { return Link{trusted: true} }

// IsStalled reports whether own records do not come back in time.
func (l *Link) IsStalled() bool { return l.stalled }

// IsReading reports whether the log's history is not read yet.
func (l *Link) IsReading() bool { return l.reading }

// Greeting reports whether a Hello is in flight.
func (l *Link) Greeting() bool { return l.hello.seq != 0 }

// Clear reports whether own records come back in time and no Hello is in flight.
func (l *Link) Clear() bool { return l.hello.seq == 0 && !l.stalled }

// ProbeLostAt is when the Hello in flight counts as lost.
func (l *Link) ProbeLostAt(t time.Duration) clock.Mono { return l.hello.at.Add(t) }

// Recovering reports whether the log was stalled until less than T ago.
func (l *Link) Recovering(now clock.Instant, t time.Duration) bool {
	return l.recovered != 0 && now.Mono.Sub(l.recovered) < t
}

// LastTook is how long the last own record took, T at most.
func (l *Link) LastTook() time.Duration { return l.took }

// WithheldFor is for how long this process has not claimed what it would claim.
func (l *Link) WithheldFor(now clock.Instant) time.Duration {
	if l.withheld == 0 {
		return 0
	}
	return now.Mono.Sub(l.withheld)
}

func (l *Link) Reset() { *l = Link{trusted: l.trusted, recovered: l.recovered, reading: true} }

// CaughtUp notes that the records that were in the log when reading began are read. Own records
// in flight lie behind them, so their round trips begin now: reading a million roles' history takes
// a second or more, and says nothing about the log.
func (l *Link) CaughtUp(now clock.Instant) {
	l.reading = false
	for _, f := range []*flight{&l.beat, &l.hello} {
		if f.seq != 0 {
			f.at = now.Mono
		}
	}
}

// Sent notes that an own record is in flight.
func (l *Link) Sent(k lease.Kind, seq uint64, now clock.Instant) {
	switch k {
	case lease.Beat, lease.Claim:
		l.beat = flight{seq, now.Mono}
	case lease.Hello:
		l.hello = flight{seq, now.Mono}
	case lease.Release, lease.Snapshot, lease.Ping, lease.Pong:
	}
}

// Failed notes that an own record may never come back. Another one has to show that the log works.
func (l *Link) Failed(seq uint64) {
	l.stalled = true
	if l.beat.seq == seq {
		l.beat = flight{}
	}
	if l.hello.seq == seq {
		l.hello = flight{}
	}
}

// Back notes that an own record has come back. sent is its stamp; zero means longer than T ago.
func (l *Link) Back(seq uint64, sent, now clock.Instant, t time.Duration) {
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
	l.took, l.behindUntil = took, 0
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

// Beating reports whether a Beat, or a Claim in its place, is in flight. No regular Beat is
// sent meanwhile. After T it counts as lost.
func (l *Link) Beating(now clock.Instant, t time.Duration) bool {
	return l.beat.seq != 0 && now.Mono.Sub(l.beat.at) < t
}

// Probing reports whether a Hello is in flight. After T it counts as lost.
func (l *Link) Probing(now clock.Instant, t time.Duration) bool {
	return l.hello.seq != 0 && now.Mono.Sub(l.hello.at) < t
}

// WaitsSince is since when own records are awaited and nothing was read; read is when something last
// was. Never: none is awaited.
func (l *Link) WaitsSince(read clock.Mono) clock.Mono {
	since := clock.Mono(clock.Never)
	if l.stalled {
		since = read
	}
	for _, f := range []flight{l.beat, l.hello} {
		if f.seq != 0 {
			since = min(since, max(read, f.at))
		}
	}
	return since
}

// Check reports whether own records come back: none is overdue, and one came back in time less than T/2
// ago. Otherwise a probe must show it first, unless the link is trusted.
func (l *Link) Check(now clock.Instant, t time.Duration) bool {
	overdue := l.beat.seq != 0 && now.Mono.Sub(l.beat.at) >= clock.Stalled(t) || l.hello.seq != 0 && now.Mono.Sub(l.hello.at) >= clock.Stalled(t)
	if overdue && !l.reading {
		l.stalled = true
	}
	return l.trusted || !l.stalled && l.good != 0 && now.Mono.Sub(l.good) < clock.Recent(t)
}

// Withhold notes that this process does not claim what it would claim, since no probe has come back
// in time. It reports, once, that this has lasted for T although records come back, too late: no role
// becomes this process's then, and nothing else would say why.
func (l *Link) Withhold(now clock.Instant, t time.Duration) (say bool) {
	if l.withheld == 0 {
		l.withheld = now.Mono
	}
	say = !l.said && now.Mono.Sub(l.withheld) >= t && l.took >= clock.Stalled(t)
	l.said = l.said || say
	return say
}

// Claims notes that this process withholds nothing: it claims, or would not claim now.
func (l *Link) Claims() { l.withheld, l.said = 0, false }

// Behind reports whether this process is far behind the log's end, so that others may have written
// what it would write. An own record has been in flight for T/20, or the last took d ≥ T/20 and came
// back less than d ago.
func (l *Link) Behind(now clock.Instant, t time.Duration) bool {
	for _, f := range []flight{l.beat, l.hello} {
		if age := now.Mono.Sub(f.at); f.seq != 0 && clock.Behind(t) <= age && age < t { // after that it counts as lost
			return true
		}
	}
	return now.Mono < l.behindUntil
}

// ProbedUntil is until when a Claim waits for the probe in flight, or to send one (helloAt); 0: no wait.
func (l *Link) ProbedUntil(helloAt clock.Mono, now clock.Instant, t time.Duration) clock.Mono {
	switch {
	case l.Check(now, t):
		return 0
	case l.Probing(now, t):
		return l.hello.at.Add(t)
	}
	return helloAt
}

// Doubtful reports whether the log has stood still since a holder was heard, by the monotonic
// clock. The holder's silence then means nothing.
func (l *Link) Doubtful(heard clock.Instant) bool { return l.stalled || heard.Mono <= l.recovered }
