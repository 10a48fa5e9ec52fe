package lease

import (
	"github.com/goneli/neli/internal/clock"
)

// doubt collects votes on the fold after a record has shown that some process has a
// different one. That record alone does not show which process is wrong. So processes that
// know the fold write Snapshots (see Asked), and all read the same votes from the log. A process
// with more votes against its fold than for it begins again.
type doubt struct {
	from   int64           // offset of that record: an agreeing Snapshot with a smaller Read does not count
	until  clock.Raw       // from then on a tie, too, makes this process begin again
	voices map[string]bool // process → whether it has the same fold
}

const (
	// maxVoices bounds the processes whose votes are counted. No group has as many members.
	maxVoices = 1024
	// enough is the number of votes for a fold from which on further processes with that fold
	// need not write a Snapshot.
	enough = 3
)

// votes counts the processes with this fold, including this process, and those with a different one.
func (d *doubt) votes() (same, other int) {
	same = 1
	for _, agrees := range d.voices {
		if agrees {
			same++
		} else {
			other++
		}
	}
	return same, other
}

// voice counts a record that shows whether another process has the same fold. It reports
// whether that process has a different one, and its last vote, if any, did not say so.
func (l *Lease) voice(r *Record, agrees bool, now clock.Instant) bool {
	d := l.doubt
	switch {
	case d == nil && agrees:
		return false
	case d == nil:
		d = &doubt{from: l.read, until: now.Raw.Add(clock.Patience(l.rules.T)), voices: map[string]bool{}}
		l.doubt = d
	case agrees && r.Read < d.from:
		return false
	}
	was, known := d.voices[r.Session.Process]
	if !known && len(d.voices) >= maxVoices {
		return false
	}
	d.voices[r.Session.Process] = agrees
	return !agrees && (was || !known)
}

// outcome is the result of the votes.
type outcome int

const (
	undecided outcome = iota
	confirmed         // most have this fold
	outvoted          // most have another one
	tied              // as many have this fold as another one
)

// judge evaluates the votes so far. More votes against the fold than for it decide at once.
// A tie stands for T/2 first, since processes with the same fold may not have voted yet.
func (l *Lease) judge(now clock.Instant) outcome {
	d := l.doubt
	if d == nil {
		return undecided
	}
	same, other := d.votes()
	switch {
	case other > same:
		return outvoted
	case other == 0, now.Raw >= d.until && same > other:
		return confirmed
	case now.Raw >= d.until:
		return tied
	}
	return undecided
}

// Doubtful reports whether this process must not claim, because its fold does not have more votes
// for it than against it.
func (l *Lease) Doubtful() bool {
	if l.doubt == nil {
		return false
	}
	same, other := l.doubt.votes()
	return other >= same
}

// Asked reports whether this process has to write a Snapshot for others to compare with
// theirs: some process contradicts its fold, and few have confirmed it.
func (l *Lease) Asked() bool {
	if l.doubt == nil {
		return false
	}
	same, _ := l.doubt.votes()
	return same < enough
}

// rejoin begins again after a contradiction. After a tie, the Snapshots of the processes that
// differed are not adopted for W of the longest lease. By then each of those processes has
// read the same votes, and has begun again or found a majority for its fold; or it was silent
// for so long that it leads nothing, and this process may claim.
func (l *Lease) rejoin(o int64, how outcome, now clock.Instant) Event {
	if how == tied {
		l.disbelieved = map[string]bool{}
		for id, agrees := range l.doubt.voices {
			l.disbelieved[id] = !agrees
		}
		l.believeAt = clock.FreeAt(now.Raw, l.rules.longest(), l.rules.Rho)
	}
	e := l.rewind(o, now)
	e.Outvoted, e.Tied = how == outvoted, how == tied
	return e
}

// believes reports whether a Snapshot of a process may be adopted.
func (l *Lease) believes(process string, now clock.Instant) bool {
	return !l.disbelieved[process] || now.Raw >= l.believeAt
}

// listen compares a record with the fold, and judges the votes. It returns an event if this process begins again.
func (l *Lease) listen(o int64, r *Record, evidence bool, now clock.Instant, e *Event) (Event, bool) {
	differs := r.Kind == Snapshot && l.trail.differs(r.Read, r.State.Hash) || r.Kind == Beat && !evidence && l.trail.contradicts(r)
	switch {
	case r.Kind != Snapshot && !differs:
	case differs && r.Session.Process == l.rules.Process: // a process knows its own fold best: no vote is needed
		return l.rejoin(o, undecided, now), true
	case r.Session.Process == l.rules.Process:
	default:
		began := l.doubt == nil
		e.Differs = l.voice(r, !differs, now)
		e.Doubts = began && l.doubt != nil
	}
	switch how := l.judge(now); how {
	case outvoted, tied:
		return l.rejoin(o, how, now), true
	case confirmed:
		l.doubt, e.Confirmed = nil, true
	case undecided:
	}
	return Event{}, false
}
