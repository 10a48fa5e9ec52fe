package lease

import (
	"github.com/goneli/neli/internal/clock"
)

// Event is what a record did to a lease.
type Event struct {
	Rewound   bool          // the log went back, or a record contradicts the fold: Begin was called, nothing is known
	Missing   int64         // and so many records were lost before this one
	Outvoted  bool          // and most others have another fold
	Tied      bool          // and as many have another one as this one
	Differs   bool          // the record's sender has another fold, which it had not said before
	Doubts    bool          // and nobody else had: Snapshots will tell who is wrong
	Confirmed bool          // they have told: not this process
	Known     bool          // the fold is known from this record on: everything may have changed
	Evidence  bool          // a holder is alive
	Own       bool          // the record is the present session's, with this stamp
	Stamp     clock.Instant // zero: older than T, nobody knows by how much
	Won       bool          // an own Claim was found valid, here or among what was kept for a Snapshot
	Changed   []int32       // roles that have another holder or token now; perhaps twice; until the next call
	Outlived  []Session     // those of which a Claim has taken the last role: they had been silent
}

// Skip takes note of a record that plays no part: another group's, another topic's, a
// malformed one. It still has a place in the log.
func (l *Lease) Skip(o int64, now clock.Instant) Event {
	if l.misplaced(o) {
		return l.rewind(o, now)
	}
	l.read = o
	return Event{}
}

// misplaced reports whether a record at o shows that the log went back, or that records of
// a dense log were lost. A Claim may be among those: without it another process's role looks
// free, and a claim of it would be valid everywhere.
func (l *Lease) misplaced(o int64) bool { return o <= l.read || l.rules.Dense && o > l.read+1 }

func (l *Lease) rewind(o int64, now clock.Instant) Event {
	e := Event{Rewound: true}
	if l.rules.Dense {
		e.Missing = max(0, o-l.read-1)
	}
	l.Begin(o+1, false, now)
	return e
}

// ReadNewer takes note of a record of a newer version of this group. It may be of a
// holder of anything.
func (l *Lease) ReadNewer(o int64, now clock.Instant) Event {
	if l.misplaced(o) {
		return l.rewind(o, now)
	}
	l.read = o
	if j := l.join; j != nil {
		j.keep(entry{offset: o})
		j.hear(o, now, l.rules.longest(), l.rules.Rho)
		return Event{}
	}
	l.foldNewer(o, now)
	return Event{}
}

func (l *Lease) foldNewer(o int64, now clock.Instant) {
	l.fold.setNewer(o)
	l.newerAt = now
	l.trail.add(o, l.fold.hash, l.rules.History)
}

// Read folds the record r at offset o. Records come strictly in log order; now was
// read after the record was in hand.
func (l *Lease) Read(o int64, r *Record, now clock.Instant) Event {
	// Before all else, whatever the record is: it is not the next one, or it has seen what
	// lies ahead.
	if l.misplaced(o) || r.Read >= o {
		return l.rewind(o, now)
	}
	l.read = o
	e := Event{}
	if r.Session == l.own.session {
		e.Own = true
		e.Stamp = l.own.back(r.Seq, now, l.rules.T)
	}
	if l.join != nil {
		l.readUnknown(o, r, now, &e)
		return e
	}
	l.changed = l.changed[:0]
	l.won = false
	e.Evidence, e.Outlived = l.foldRecord(o, r, now, e.Stamp)
	e.Won = l.won
	if anew, yes := l.listen(o, r, e.Evidence, now, &e); yes {
		return anew
	}
	e.Changed = l.changed
	return e
}

// foldRecord folds a record of this version when the fold is known, and moves V. It reports
// whether the record is evidence, and the sessions that a Claim has outlived.
func (l *Lease) foldRecord(o int64, r *Record, now, sent clock.Instant) (evidence bool, outlived []Session) {
	before := l.fold.hash
	mine := r.Session == l.own.session
	lapsed := mine && l.Lapsed(now)
	from := len(l.changed)
	l.changed, evidence = l.fold.apply(r, o, now, l.changed)
	if len(l.changed) > from {
		ended := l.fold.takeEnded()
		l.trail.end(ended, o)
		if r.Kind == Claim {
			outlived = ended
		}
		for _, role := range l.changed[from:] {
			delete(l.own.forgotten, role) // another token, or none
		}
	}
	if evidence && mine && !lapsed {
		if sent.Mono > l.own.v.Mono {
			l.own.v = sent
		}
		l.own.ballot = max(l.own.ballot, r.Ballot)
	}
	if mine && r.Kind == Claim && l.fold.grants[o] != nil {
		l.won = true
	}
	if l.fold.hash != before {
		l.trail.add(o, l.fold.hash, l.rules.History)
	}
	return evidence, outlived
}

// readUnknown is Read while the fold is not known.
func (l *Lease) readUnknown(o int64, r *Record, now clock.Instant, e *Event) {
	j := l.join
	j.keep(entry{o, r, e.Stamp})
	switch {
	case r.Kind == Snapshot:
		j.limit(r)
		if !l.believes(r.Session.Process, now) || r.Read < j.since-1 { // since is never before from
			return
		}
		if s, whole := j.snapshot(r); whole {
			l.won = false
			e.Known = l.adopt(o, r.Read, s, now)
			e.Won = l.won
		}
	case r.Kind == Claim && r.Fresh && r.Read >= j.from-1 && r.Read >= j.busy:
		// Its sender had read all that may be of a holder, here and before this process
		// began, so it is valid by everybody's fold; and the fold after a valid fresh Claim
		// depends on nothing before it.
		l.known(o)
		l.fold.apply(r, o, now, nil)
		if e.Own {
			l.own.v, l.own.ballot, e.Won = e.Stamp, r.Ballot, true
		}
		l.trail.add(o, l.fold.hash, l.rules.History)
		e.Known, e.Evidence = true, true
	case r.Kind.evidential():
		j.limit(r)
		j.hear(o, now, r.T, l.rules.Rho)
	default:
		j.limit(r)
	}
}

// known ends the join. The silence of each holder is counted from now on.
func (l *Lease) known(o int64) {
	l.join = nil
	l.disbelieved = nil
	l.fold = newFold()
	clear(l.own.forgotten)
	l.trail = trail{knownAt: o}
}

// adopt takes over a Snapshot of the fold at read, and folds what was kept of the
// records since; all silence is counted from now, whenever they were read. It reports whether
// the Snapshot was what it says.
func (l *Lease) adopt(o, read int64, s State, now clock.Instant) bool {
	f, ok := s.fold(now)
	if !ok {
		return false
	}
	kept := l.join.kept
	l.known(o)
	l.fold = f
	l.newerAt = now
	l.trail.add(read, f.hash, l.rules.History)
	for _, e := range kept {
		switch {
		case e.offset <= read:
		case e.record == nil:
			l.foldNewer(e.offset, now)
		default:
			l.foldRecord(e.offset, e.record, now, e.sent)
		}
	}
	return true
}

// fold rebuilds the fold that a Snapshot was made of. ok is false if it contradicts
// itself.
func (s *State) fold(now clock.Instant) (f fold, ok bool) {
	f = newFold()
	for _, g := range s.Grants {
		if int(g.Holder) >= len(s.Holders) || len(g.Roles) == 0 {
			return f, false
		}
		for _, role := range g.Roles {
			if f.holderOf(role) != nil {
				return f, false
			}
		}
		f.grant(s.Holders[g.Holder], g.Token, g.Roles, now)
	}
	for _, i := range f.index {
		f.session[i].heard = now
	}
	if s.Newer != none {
		f.setNewer(s.Newer)
	}
	return f, f.hash == s.Hash
}
