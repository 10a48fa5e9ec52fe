package history

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// part is the history of one partition. The fold says who holds what. The other fields are kept apart from
// it, so that a fold that breaks its own rules is noticed.
type part struct {
	h       *History
	index   int
	fold    *lease.Replay
	knownAt int64 // the fold is known from the record there on
	again   bool  // the log went back
	next    int64 // the offset behind the last record that was read, of any group

	last    Ref           // the newest record
	newer   Ref           // the newest record of a newer version that no valid Claim has outlived; offset −1: none
	mixed   bool          // a record of a newer version was read
	recent  []Ref         // the newest records
	open    map[int32]int // by role: the index in h.terms of its present term
	byToken map[grant]int // the indices of all terms
	held    map[lease.Session]*holder
	refused map[lease.Session]Ref // the newest Claim that won nothing
}

type grant struct {
	role  int32
	token int64
}

type holder struct {
	roles int
	t     time.Duration
	last  Ref // its newest evidence
}

const (
	none      = int64(-1)
	maxRecent = 8192
)

// role returns the number that the role with the given number in this log has in the group.
func (p *part) role(local int32) int { return int(local)*len(p.h.parts) + p.index }

// restart forgets the fold, as all members do there.
func (p *part) restart(from int64) {
	p.fold, p.knownAt, p.newer = lease.NewReplay(from), from-1, Ref{Partition: p.index, Offset: none}
	p.last = Ref{Partition: p.index, Offset: from - 1, Read: none}
	p.open, p.byToken = map[int32]int{}, map[grant]int{}
	p.held, p.refused = map[lease.Session]*holder{}, map[lease.Session]Ref{}
}

// from is the offset from which on the fold is known.
func (p *part) from() int64 {
	if p.fold.Known() {
		return p.knownAt + 1
	}
	return p.last.Offset + 1
}

func (p *part) ref(e Entry, r *lease.Record) Ref {
	name := r.Name
	if name == "" {
		name = p.h.names[r.Session.Process]
	}
	return Ref{Partition: p.index, Offset: e.Offset, Kind: r.Kind, Member: r.Session.Process, Name: name, Session: r.Session.N,
		Read: r.Read, Time: e.Time, other: r.ByOther()}
}

// remember makes a record the newest one.
func (p *part) remember(r Ref) {
	if len(p.recent) >= 2*maxRecent {
		p.recent = append(p.recent[:0], p.recent[maxRecent:]...)
	}
	p.last, p.recent = r, append(p.recent, r)
}

// at returns the record at an offset, as far as it is known.
func (p *part) at(o int64) Ref {
	i := sort.Search(len(p.recent), func(i int) bool { return p.recent[i].Offset >= o })
	if i < len(p.recent) && p.recent[i].Offset == o {
		return p.recent[i]
	}
	return Ref{Partition: p.index, Offset: o, Read: none}
}

// back reports whether a record shows that the log went back, and restarts behind it.
func (p *part) back(r Ref) bool {
	if r.Offset > p.last.Offset && r.Read < r.Offset {
		return false
	}
	p.h.fault(Order, r, p.last, fmt.Sprintf("the log went back: a record with offset %d, whose sender had read %d, comes after offset %d", r.Offset, r.Read, p.last.Offset))
	for _, i := range p.open {
		t := &p.h.terms[i]
		p.note(t)
		t.End, t.EndedAt = Lost, r.Offset
	}
	p.restart(r.Offset + 1)
	p.again, p.recent = true, nil
	return true
}

func (p *part) readNewer(e Entry) {
	ref := Ref{Partition: p.index, Offset: e.Offset, Read: none, Time: e.Time}
	if p.back(ref) {
		return
	}
	p.fold.ReadNewer(e.Offset)
	p.newer, p.mixed = ref, true
	p.remember(ref)
}

func (p *part) read(e Entry, r *lease.Record) {
	ref := p.ref(e, r)
	if p.back(ref) {
		return
	}
	known := p.fold.Known()
	changed := p.fold.Read(e.Offset, r)
	p.remember(ref)
	if !known {
		if p.fold.Known() {
			p.learn()
		}
		return
	}
	if r.Kind == lease.Release {
		p.checkRelease(r, ref)
	}
	if p.change(r, ref, changed); r.Kind == lease.Beat || r.Kind == lease.Claim {
		if h := p.held[r.Session]; h != nil {
			h.last = ref
		}
	}
	p.checkFold(r, ref)
}

// learn takes over the fold once it is known. The records so far do not prove it.
func (p *part) learn() {
	p.knownAt, p.newer.Offset = p.last.Offset, none
	for role := range p.fold.Roles() {
		if h, token, held := p.fold.Holder(role); held {
			p.begin(role, h, token, p.at(token))
			p.held[h.Session].last = p.at(h.Last)
		}
	}
}

// change notes the terms that a record began and ended.
func (p *part) change(r *lease.Record, ref Ref, changed []int32) {
	outlived := map[lease.Session]bool{}
	won := 0
	slices.Sort(changed)
	for _, role := range slices.Compact(changed) {
		h, token, held := p.fold.Holder(role)
		i, open := p.open[role]
		if open && held && p.h.terms[i].Token == token {
			continue
		}
		if open {
			if s := p.h.terms[i].session; r.Kind == lease.Claim && !outlived[s] {
				outlived[s] = true
				p.checkClaim(r, ref, s)
			}
			p.end(i, role, r, ref)
		}
		if held {
			p.checkBegin(r, ref, role, h, token)
			p.begin(role, h, token, ref)
			won++
		}
	}
	switch {
	case r.Kind != lease.Claim:
	case won == 0:
		p.refuse(r, ref)
	default:
		p.checkNewer(r, ref)
		p.newer.Offset = none
		delete(p.refused, r.Session)
	}
}

// refuse notes a Claim that won nothing. It remembers such Claims of maxRecent sessions at most.
func (p *part) refuse(r *lease.Record, ref Ref) {
	if len(p.refused) >= maxRecent {
		clear(p.refused)
	}
	p.refused[r.Session] = ref
}

func (p *part) begin(role int32, s lease.Holder, token int64, claim Ref) {
	h := p.held[s.Session]
	if h == nil {
		h = &holder{t: s.T, last: claim}
		p.held[s.Session] = h
	}
	h.roles++
	p.open[role] = len(p.h.terms)
	p.byToken[grant{role, token}] = len(p.h.terms)
	p.h.names[s.Session.Process] = s.Name
	p.h.terms = append(p.h.terms, Term{Role: p.role(role), Partition: p.index, Token: token, Member: s.Session.Process, Name: s.Name,
		Session: s.Session.N, LeaseMS: s.T.Milliseconds(), From: claim.Time, Evidence: token, End: Leads, session: s.Session, local: role, claim: claim})
}

// note copies the holder's newest evidence into a term.
func (p *part) note(t *Term) *holder {
	h := p.held[t.session]
	t.Evidence = h.last.Offset
	return h
}

func (p *part) end(i int, role int32, r *lease.Record, ref Ref) {
	t := &p.h.terms[i]
	h := p.note(t)
	leaseEnd := time.Time{}
	if !h.last.Time.IsZero() {
		leaseEnd = h.last.Time.Add(clock.Hold(h.t))
	}
	p.checkEnd(r, ref, t)
	t.EndedAt, t.Until, t.To = ref.Offset, ref.Time, r.To
	switch {
	case r.Kind == lease.Claim:
		t.End = Outlived
		if !leaseEnd.IsZero() && leaseEnd.Before(ref.Time) {
			t.Until = leaseEnd
		}
	case r.ByOther():
		t.End = Died
	case r.Pinned:
		t.End = Transferred
	case r.Moved:
		t.End = Moved
	case r.To != "":
		t.End = HandedOver
	case !leaseEnd.IsZero() && !ref.Time.Before(leaseEnd):
		t.End, t.Until = Lapsed, leaseEnd
	default:
		t.End = Released
	}
	delete(p.open, role)
	if h.roles--; h.roles == 0 {
		delete(p.held, t.session)
	}
}
