package leases

import (
	"slices"

	"github.com/goneli/neli/internal/byrole"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/balance"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/term"
)

// Own is the roles of a shard that this process leads or gives up. It keeps the application's
// terms in the term table in step with them.
type Own struct {
	byrole.Map[*Hold]
	numbering byrole.Numbering
	session   Session
	traits    Traits
	process   string
	holder    func(local int32) (lease.Grantee, bool)
	table     *term.Table
	tokenBase int64   // added to the tokens that the application gets
	over      []int32 // roles whose lapse the application was told of
}

// NewOwn returns the roles that a process holds by some leases: none yet.
func NewOwn(n byrole.Numbering, l Leases, t Traits, process string, table *term.Table, tokenBase int64) Own {
	return Own{numbering: n, session: l, traits: t, process: process, holder: l.Holder, table: table, tokenBase: tokenBase}
}

// Hold is what roles that this process won together have in common. It does not change.
type Hold struct {
	Token int64 // of the fold
	Cause vacancy.Cause
	Since clock.Mono
	Line  int // the line of V that the term follows
}

// Movable reports whether a role may be handed over for balance.
func (h *Hold) Movable(now clock.Instant) bool {
	return h.Cause == vacancy.Claimed || h.Cause == vacancy.Rebalanced && now.Mono.Sub(h.Since) >= balance.MinTenure
}

// Tenured reports whether a role may be moved later, but not yet.
func (h *Hold) Tenured(now clock.Instant) bool {
	return h.Cause == vacancy.Rebalanced && now.Mono.Sub(h.Since) < balance.MinTenure
}

// AnyTenured reports whether a role may be moved later, but not yet.
func (hs *Own) AnyTenured(now clock.Instant) bool {
	var last *Hold
	for _, h := range hs.All() {
		if h != last && h.Tenured(now) {
			return true
		}
		last = h
	}
	return false
}

// TokenOf returns the token under which this process holds a role, or −1.
func (hs *Own) TokenOf(local int32) int64 {
	if h := hs.At(local); h != nil {
		return h.Token
	}
	return -1
}

// Difference is how the leases differ from what this process holds.
type Difference struct {
	Superseded []int32 // held roles that records have taken away
	Lapsed     []int32 // held roles that are lost without such a record
	Shifted    []int32 // held roles whose terms follow another line of V by now
	Gained     wins    // roles that are held by a new term
	Taken      []int32 // roles that are not vacant
	Free       []int32 // vacant roles
}

// Compare compares roles that may have changed with the roles held here. Leases that remind of free
// roles repeat those already listed to be claimed: Free leaves these out.
func (hs *Own) Compare(changed []int32, listed func(int32) bool, now clock.Instant) (d Difference) {
	for _, local := range changed {
		t := hs.session.Term(local, now)
		h := hs.At(local)
		switch {
		case h != nil && (!t.Led || h.Token != t.Token):
			if hs.outdone(local) {
				d.Superseded = append(d.Superseded, local)
			} else {
				d.Lapsed = append(d.Lapsed, local)
			}
			h = nil
		case h != nil && h.Line != t.Line:
			d.Shifted = append(d.Shifted, local)
		}
		switch {
		case t.Led && h == nil:
			d.Gained.add(t.Token, local)
			d.Taken = append(d.Taken, local)
		case !t.Vacant:
			d.Taken = append(d.Taken, local)
		case !hs.traits.Reminds || !listed(local):
			d.Free = append(d.Free, local)
		}
	}
	return d
}

// outdone reports whether records, and not the clock, have ended a term. Without Traits.Together that is
// always so, since Ticked reports lapses.
func (hs *Own) outdone(local int32) bool {
	if !hs.traits.Together {
		return true
	}
	g, held := hs.holder(local)
	return held && g.Session.Process != hs.process
}

// Renew publishes V of all lines that terms follow. Ended terms were withdrawn before.
func (hs *Own) Renew() {
	for line, v := range hs.session.Lines() {
		if at, ok := hs.table.V(line); v != (clock.Instant{}) && (!ok || at != v) {
			hs.table.Renew(line, v)
		}
	}
}

// Shift lets terms follow their current lines of V.
func (hs *Own) Shift(roles []int32, now clock.Instant) {
	byLine := map[int][]int{}
	var from, to *Hold
	for _, local := range roles {
		h := hs.At(local)
		if t := hs.session.Term(local, now); t.Led && h != nil && h.Line != t.Line {
			if from != h || to.Line != t.Line {
				moved := *h
				moved.Line = t.Line
				from, to = h, &moved
			}
			hs.Set(local, to)
			byLine[t.Line] = append(byLine[t.Line], hs.numbering.Role(local))
		}
	}
	for line, units := range byLine {
		hs.table.Shift(units, line)
	}
}

// Gain begins the terms of roles won with one token; why says how this process got each of them.
func (hs *Own) Gain(w Won, why func(local int32) vacancy.Cause, now clock.Instant) {
	units := make([]int, 0, len(w.Roles))
	var of *Hold
	for _, local := range w.Roles {
		if hs.Has(local) {
			continue
		}
		if c := why(local); of == nil || of.Cause != c {
			of = &Hold{Token: w.Token, Cause: c, Since: now.Mono, Line: hs.numbering.Index}
		}
		hs.Set(local, of)
		units = append(units, hs.numbering.Role(local))
	}
	hs.table.Start(units, w.Token, hs.tokenBase+w.Token)
	hs.Shift(w.Roles, now)
}

// End ends the terms of roles.
func (hs *Own) End(roles []int32, why term.Reason) {
	if len(roles) == 0 {
		return
	}
	for _, local := range roles {
		hs.Remove(local)
	}
	hs.table.End(hs.numbering.Units(roles), why, false)
}

// Delivered notes that the application was told of the end of a role's term.
func (hs *Own) Delivered(local int32) {
	if hs.Has(local) {
		hs.over = append(hs.over, local)
	}
}

// TakeOver returns, once, the held roles that the application was told are over: they must not be
// led again, whatever the clocks show now.
func (hs *Own) TakeOver() (roles []int32) {
	for _, local := range hs.over {
		if hs.table.Over(hs.numbering.Role(local)) {
			roles = append(roles, local)
		}
	}
	hs.over = nil
	return roles
}

// Evidence returns the oldest V of the lines that the terms follow; zero if nothing is held.
func (hs *Own) Evidence(now clock.Instant) (oldest clock.Instant) {
	if hs.Len() == 0 {
		return clock.Instant{}
	}
	for line := range hs.session.Lines() {
		if v, ok := hs.table.V(line); ok && (oldest == (clock.Instant{}) || now.Age(v) > now.Age(oldest)) {
			oldest = v
		}
	}
	return oldest
}

// wins are roles that were won, by token.
type wins []Won

// Won is roles that were won with one token.
type Won struct {
	Token int64
	Roles []int32
}

// add adds a role. Most roles have the same token as the one before.
func (w *wins) add(token int64, local int32) {
	i := len(*w) - 1
	if i < 0 || (*w)[i].Token != token {
		if i = slices.IndexFunc(*w, func(x Won) bool { return x.Token == token }); i < 0 {
			i = len(*w)
			*w = append(*w, Won{Token: token})
		}
	}
	(*w)[i].Roles = append((*w)[i].Roles, local)
}
