package elector

import (
	"slices"

	"github.com/goneli/neli/internal/byrole"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/term"
)

// own is the roles of a shard that this process leads or gives up. It keeps the application's
// terms in the term table in step with them.
type own struct {
	byrole.Map[*hold]
	numbering byrole.Numbering
	lease     leases
	table     *term.Table
	tokenBase int64   // added to the tokens that the application gets
	over      []int32 // roles whose lapse the application was told of
}

// hold is what roles that this process holds by one Claim have in common. It does not change.
type hold struct {
	token int64
	cause vacancy.Cause
	since clock.Mono
	line  int // the line of V that the term follows
}

// tokenOf returns the token under which this process holds a role, or −1.
func (hs *own) tokenOf(local int32) int64 {
	if h := hs.At(local); h != nil {
		return h.token
	}
	return -1
}

// difference is how the lease differs from what this process holds.
type difference struct {
	superseded []int32 // held roles that records have taken away
	lapsed     []int32 // held roles that are lost without such a record
	shifted    []int32 // held roles whose terms follow another line of V by now
	gained     wins    // roles that are held by a new term
	taken      []int32 // roles that nobody may claim
	free       []int32 // roles that may be claimed
}

// compare compares roles that may have changed with the roles held here. Leases that remind of
// free roles do so for roles that are listed to be claimed already.
func (hs *own) compare(changed []int32, listed func(int32) bool, now clock.Instant) (d difference) {
	for _, local := range changed {
		token, line, led := hs.lease.Term(local)
		h := hs.At(local)
		switch {
		case h != nil && (!led || h.token != token):
			if hs.lease.Outdone(local) {
				d.superseded = append(d.superseded, local)
			} else {
				d.lapsed = append(d.lapsed, local)
			}
			h = nil
		case h != nil && h.line != line:
			d.shifted = append(d.shifted, local)
		}
		switch {
		case led && h == nil:
			d.gained.add(token, local)
			d.taken = append(d.taken, local)
		case led || !hs.lease.Vacant(local, now):
			d.taken = append(d.taken, local)
		case !hs.lease.Reminds() || !listed(local):
			d.free = append(d.free, local)
		}
	}
	return d
}

// renew publishes V of all lines that terms follow. Ended terms were withdrawn before.
func (hs *own) renew() {
	for line := range hs.lease.InUse() {
		v := hs.lease.V(line)
		if at, ok := hs.table.V(line); v != (clock.Instant{}) && (!ok || at != v) {
			hs.table.Renew(line, v)
		}
	}
}

// shift lets terms follow their current lines of V.
func (hs *own) shift(roles []int32) {
	byLine := map[int][]int{}
	var from, to *hold
	for _, local := range roles {
		h := hs.At(local)
		if _, line, led := hs.lease.Term(local); led && h != nil && h.line != line {
			if from != h || to.line != line {
				moved := *h
				moved.line = line
				from, to = h, &moved
			}
			hs.Set(local, to)
			byLine[line] = append(byLine[line], hs.numbering.Role(local))
		}
	}
	for line, units := range byLine {
		hs.table.Shift(units, line)
	}
}

// gain begins the terms of roles won by one Claim; why says how this process got each of them.
func (hs *own) gain(w won, why func(local int32) vacancy.Cause, now clock.Instant) {
	units := make([]int, 0, len(w.roles))
	var of *hold
	for _, local := range w.roles {
		if hs.Has(local) {
			continue
		}
		if c := why(local); of == nil || of.cause != c {
			of = &hold{token: w.token, cause: c, since: now.Mono, line: hs.numbering.Index}
		}
		hs.Set(local, of)
		units = append(units, hs.numbering.Role(local))
	}
	hs.table.Start(units, w.token, hs.tokenBase+w.token)
	hs.shift(w.roles)
}

// end ends the terms of roles.
func (hs *own) end(roles []int32, why term.Reason) {
	if len(roles) == 0 {
		return
	}
	for _, local := range roles {
		hs.Remove(local)
	}
	hs.table.End(hs.numbering.Units(roles), why, false)
}

// delivered notes that the application was told of the end of a role's term.
func (hs *own) delivered(local int32) {
	if hs.Has(local) {
		hs.over = append(hs.over, local)
	}
}

// takeOver returns, once, the held roles that the application was told are over: they must not be
// led again, whatever the clocks show now.
func (hs *own) takeOver() (roles []int32) {
	for _, local := range hs.over {
		if hs.table.Over(hs.numbering.Role(local)) {
			roles = append(roles, local)
		}
	}
	hs.over = nil
	return roles
}

// evidence returns the oldest V of the lines that the terms follow; zero if nothing is held.
func (hs *own) evidence(now clock.Instant) (oldest clock.Instant) {
	if hs.Len() == 0 {
		return clock.Instant{}
	}
	for line := range hs.lease.InUse() {
		if v, ok := hs.table.V(line); ok && (oldest == (clock.Instant{}) || now.Age(v) > now.Age(oldest)) {
			oldest = v
		}
	}
	return oldest
}

// wins are roles that were won, by token.
type wins []won

// won is roles that were won by one Claim.
type won struct {
	token int64
	roles []int32
}

// add adds a role. Most roles have the same token as the one before.
func (w *wins) add(token int64, local int32) {
	i := len(*w) - 1
	if i < 0 || (*w)[i].token != token {
		if i = slices.IndexFunc(*w, func(x won) bool { return x.token == token }); i < 0 {
			i = len(*w)
			*w = append(*w, won{token: token})
		}
	}
	(*w)[i].roles = append((*w)[i].roles, local)
}
