package lease

import (
	"github.com/goneli/neli/internal/clock"
)

// Event is what a record did to a lease.
type Event struct {
	Rewound   bool          // the log went back, records were missed, or the fold was contradicted: Begin was called
	Missing   int64         // Rewound, because this many records before this one were lost
	Outvoted  bool          // Rewound, because more processes have another fold than this one's
	Tied      bool          // Rewound, because as many processes have another fold as this one's
	Differs   bool          // the sender has another fold, and its last vote, if any, did not say so
	Doubts    bool          // Differs, for the first time: Snapshots will show which fold is wrong
	Confirmed bool          // the Snapshots have shown it: this process's fold is right
	Known     bool          // the fold is known from this record on: everything may have changed
	Origin    bool          // Known, because the log was read from its origin: no record tells others the fold
	Evidence  bool          // a holder is alive
	Own       bool          // the present session appended the record
	Stamp     clock.Instant // Own: when the record was made; zero for a Release, or if that is longer ago than T
	Won       bool          // an own Claim was found valid: this record, or one kept while the fold was unknown
	Changed   []int32       // roles with a new holder or token, some perhaps twice; valid until the next call
	Outlived  []Session     // sessions that lost their last role to a Claim, since they had been silent
}

// Skip consumes a record that has no effect: one of another group or topic, or a malformed one.
// It still counts as read.
func (l *Lease) Skip(o int64, now clock.Instant) Event {
	if l.misplaced(o) {
		return l.rewind(o, now)
	}
	l.read = o
	return Event{}
}

// misplaced reports whether a record at o shows that the log went back, or that records of
// a dense log were lost. A lost record may be a Claim. Without it another process's role
// would look free, and a Claim of that role would be valid at every process.
func (l *Lease) misplaced(o int64) bool { return o <= l.read || l.rules.Dense && o > l.read+1 }

func (l *Lease) rewind(o int64, now clock.Instant) Event {
	e := Event{Rewound: true}
	if l.rules.Dense {
		e.Missing = max(0, o-l.read-1)
	}
	l.Begin(o+1, false, now)
	return e
}

// ReadNewer consumes a record of a newer version in this group. Its sender may hold any role.
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

// Read folds the record r at offset o. Records must come in log order. now must have been
// read after the record was received.
func (l *Lease) Read(o int64, r *Record, now clock.Instant) Event {
	// For every kind of record, first check whether its offset, or the offset up to which its
	// sender had read, contradicts the log as read so far.
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
		if len(l.own.forgotten) > 0 {
			for _, role := range l.changed[from:] {
				delete(l.own.forgotten, role) // another token, or none
			}
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
	believed := l.believes(r.Session.Process, now)
	if believed { // a process whose fold is wrong does not know the longest lease either
		j.limit(r)
	}
	switch {
	case r.Kind == Snapshot:
		if !believed || r.Read < j.since-1 { // since is never less than from
			return
		}
		if s, whole := j.snapshot(r); whole {
			l.won = false
			e.Known = l.adopt(o, r.Read, s, now)
			e.Won = l.won
		}
	case r.Kind == Claim && r.Fresh && r.Read >= j.from-1 && r.Read >= j.busy:
		// The sender had read every possible record of a holder, from before and after this
		// process began to read. So the Claim is valid in every fold, and the fold after a valid
		// fresh Claim depends on nothing before it.
		l.known(o)
		l.fold.apply(r, o, now, nil)
		if e.Own {
			l.own.v, l.own.ballot, e.Won = e.Stamp, r.Ballot, true
		}
		l.trail.add(o, l.fold.hash, l.rules.History)
		e.Known, e.Evidence = true, true
	case r.Kind.evidential():
		j.hear(o, now, r.T, l.rules.Rho)
	}
	if l.join != nil && e.Own && l.origin && j.from == 0 && j.since == 0 {
		l.won = false
		l.begun(o, now)
		e.Known, e.Origin, e.Won = true, true, l.won
	}
}

// begun makes known the fold of all records from offset 0 to the own record at o. Nobody can hold
// anything that this process has not read: when its own record was appended, after its session
// began, the log had lost nothing. Each holder's silence is counted from now.
func (l *Lease) begun(o int64, now clock.Instant) {
	kept := l.join.kept
	l.known(o)
	l.newerAt = now
	l.refold(kept, none, now)
}

// known ends the join at offset o, with an empty fold.
func (l *Lease) known(o int64) {
	l.join = nil
	l.disbelieved = nil
	l.fold = newFold()
	clear(l.own.forgotten)
	l.trail = trail{knownAt: o}
}

// adopt takes over a Snapshot of the fold as of offset read, then folds the records kept since.
// Each holder's silence is counted from now. It reports whether the Snapshot is consistent.
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
	l.refold(kept, read, now)
	return true
}

// refold folds the kept records after an offset.
func (l *Lease) refold(kept []entry, read int64, now clock.Instant) {
	for _, e := range kept {
		switch {
		case e.offset <= read:
		case e.record == nil:
			l.foldNewer(e.offset, now)
		default:
			l.foldRecord(e.offset, e.record, now, e.sent)
		}
	}
}

// fold rebuilds the fold from a Snapshot. ok is false if the Snapshot contradicts itself.
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
