package lease

import (
	"maps"
	"slices"

	"github.com/goneli/neli/internal/clock"
)

// This file has a process of version 2 that follows the contract for newer versions. It keeps the
// fold of version 1 beside its own, and judges Claims of version 1 by that fold alone. A valid Claim
// makes its own fold equal to that one. Its records are opaque to version 1, except fresh Claims,
// which it always sends in version 1.

// newerFolds are the two folds of version 2.
type newerFolds struct {
	old, own fold
	alone    bool // there is no version 2: only old is kept
}

func newNewerFolds() newerFolds { return newerFolds{old: newFold(), own: newFold()} }

// cloneFold copies a fold.
func cloneFold(f *fold) fold {
	c := *f
	c.tokens, c.holders, c.session, c.unused, c.ended = slices.Clone(f.tokens), slices.Clone(f.holders), slices.Clone(f.session), slices.Clone(f.unused), slices.Clone(f.ended)
	c.index, c.grants = maps.Clone(f.index), make(map[int64]*grant, len(f.grants))
	for token, g := range f.grants {
		g := *g
		c.grants[token] = &g
	}
	return c
}

// step folds an entry. evidence reports whether it is evidence in the own fold. wonOld and won
// are the roles that the sender won in each fold.
func (f *newerFolds) step(e *simEntry, o int64, now clock.Instant) (evidence bool, wonOld, won []int32) {
	if e.newer {
		f.old.setNewer(o)
	}
	r := e.r
	if r == nil {
		return false, nil, nil
	}
	if e.newer {
		won, evidence = f.own.apply(r, o, now, nil)
		return evidence, nil, won
	}
	wonOld, _ = f.old.apply(r, o, now, nil)
	switch {
	case f.alone:
		return false, wonOld, nil
	case r.Kind == Claim && len(wonOld) > 0:
		f.own = cloneFold(&f.old)
		f.own.setNewer(none)
		return true, wonOld, wonOld
	case r.Kind == Claim: // it might be valid by the own fold, but that does not count
		return f.own.evidence(r.Session, o, now), nil, nil
	}
	won, evidence = f.own.apply(r, o, now, nil)
	return evidence, wonOld, won
}

// newerProc is a process of version 2. It uses a Lease for its session, stamps, Claims and own
// fold, but never calls Read.
type newerProc struct {
	*Lease
	old  fold
	kept []newerKept
}

type newerKept struct {
	e    *simEntry
	o    int64
	sent clock.Instant
}

func (p *newerProc) begin(s int64, empty bool, now clock.Instant) {
	p.Begin(s, empty, now)
	p.old, p.kept = newFold(), nil
}

// read consumes an entry of either version.
func (p *newerProc) read(o int64, e *simEntry, now clock.Instant) Event {
	l := p.Lease
	r := e.r
	if o <= l.read || r != nil && r.Read >= o {
		p.begin(o+1, false, now)
		return Event{Rewound: true}
	}
	l.read = o
	ev := Event{}
	if r != nil && r.Session == l.own.session {
		ev.Own, ev.Stamp = true, l.own.back(r.Seq, now, l.rules.T)
	}
	if l.join == nil {
		p.fold(newerKept{e, o, ev.Stamp}, now)
		return ev
	}
	p.kept = append(p.kept, newerKept{e, o, ev.Stamp})
	ev.Known = p.readUnknown(o, e, ev, now)
	return ev
}

func (p *newerProc) fold(k newerKept, now clock.Instant) {
	l := p.Lease
	lapsed := l.Lapsed(now)
	f := newerFolds{old: p.old, own: l.fold}
	evidence, _, _ := f.step(k.e, k.o, now)
	p.old, l.fold = f.old, f.own
	if r := k.e.r; evidence && r.Session == l.own.session && !lapsed && k.sent.Mono > l.own.v.Mono {
		l.own.v = k.sent
	}
}

func (p *newerProc) readUnknown(o int64, e *simEntry, ev Event, now clock.Instant) (known bool) {
	l, j, r := p.Lease, p.Lease.join, e.r
	if e.newer {
		j.busy = o
	}
	if r == nil {
		return false
	}
	j.limit(r)
	switch {
	case r.Kind == Snapshot && r.Read >= j.from-1 && r.State.Parts == 1 && (e.newer || r.State.Newer == none):
		own, _ := r.State.fold(now)
		old := cloneFold(&own)
		if e.newer {
			old, _ = e.old.fold(now)
		}
		l.known(o)
		p.old, l.fold = old, own
		for _, k := range p.kept {
			if k.o > r.Read {
				p.fold(k, now)
			}
		}
		p.kept = nil
		return true
	case r.Kind == Claim && r.Fresh && !e.newer && r.Read >= j.busy:
		l.known(o)
		p.old, p.kept = newFold(), nil
		p.fold(newerKept{e, o, ev.Stamp}, now)
		return true
	case r.Kind == Beat || r.Kind == Claim:
		j.hear(o, now, r.T, l.rules.Rho)
	}
	return false
}

// snapshot makes a Snapshot of both folds in version 2, or of the old fold in version 1.
func (p *newerProc) snapshot(now clock.Instant, newer bool) (r Record, old *State, ok bool) {
	all := p.Snapshot(now)
	if len(all) != 1 {
		return Record{}, nil, false
	}
	states := (&Lease{fold: p.old}).states()
	if len(states) != 1 {
		return Record{}, nil, false
	}
	old = states[0]
	old.Parts, old.Hash, old.Newer = 1, p.old.hash, p.old.newer
	if !newer {
		all[0].State, old = old, nil
	}
	return all[0], old, true
}
