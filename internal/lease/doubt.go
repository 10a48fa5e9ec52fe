package lease

import (
	"github.com/goneli/neli/internal/clock"
)

// doubt is what others say of the fold, since a record showed that somebody has another
// one. One such record does not tell who is wrong. So all who know the fold write a
// Snapshot, and the log tells everybody the same: a process that has more voices against
// it than for it begins anew.
type doubt struct {
	from   int64           // offset of the record that showed it: a Snapshot that was made before says nothing
	until  clock.Raw       // as many against it as for it are too many from then on
	voices map[string]bool // by process: has it the same fold?
}

const (
	// maxVoices bounds how many processes are listened to: more than a group has.
	maxVoices = 1024
	// enough is how many voices for a fold are as good as all: further processes with the
	// same fold need not write it down.
	enough = 3
)

// votes counts the processes that have this fold, the own one included, and those that have
// another one.
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

// voice takes note of a record by which another process has the same fold, or another one. It
// reports whether that one has another fold and had not said so before.
func (l *Lease) voice(r *Record, agrees bool, now clock.Instant) bool {
	d := l.doubt
	switch {
	case d == nil && agrees:
		return false
	case d == nil:
		d = &doubt{from: l.read, until: now.Raw.Add(l.rules.T / 2), voices: map[string]bool{}}
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

// outcome says what follows from the voices.
type outcome int

const (
	undecided outcome = iota
	confirmed         // most have this fold
	outvoted          // most have another one
	tied              // nobody knows
)

// judge says what follows from the voices so far. More voices against the fold than for it
// are enough at any time. As many as for it are given T/2 to change: those who have the same
// fold may not have spoken yet.
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

// Doubtful reports whether this process may not claim: its fold has as many voices against
// it as for it.
func (l *Lease) Doubtful() bool {
	if l.doubt == nil {
		return false
	}
	same, other := l.doubt.votes()
	return other >= same
}

// Asked reports whether this process has to write a Snapshot, with which others compare
// theirs: its fold is contradicted, and few have said that they have the same.
func (l *Lease) Asked() bool {
	if l.doubt == nil {
		return false
	}
	same, _ := l.doubt.votes()
	return same < enough
}

// rejoin begins anew after a contradiction. If nobody could tell who is wrong, Snapshots of
// those who differed are not believed for W of the longest lease. By then each of them has
// read the same voices: it has begun anew, or has more of them; or it was silent for so long
// that it leads nothing, and this process has claimed.
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

// listen compares a record of another process's with the fold. It returns an event if this
// process has to begin anew.
func (l *Lease) listen(o int64, r *Record, evidence bool, now clock.Instant, e *Event) (Event, bool) {
	differs := r.Kind == Snapshot && l.trail.differs(r.Read, r.State.Hash) || r.Kind == Beat && !evidence && l.trail.contradicts(r)
	switch {
	case r.Kind != Snapshot && !differs:
	case differs && r.Session.Process == l.rules.Process: // no other voice is needed
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
