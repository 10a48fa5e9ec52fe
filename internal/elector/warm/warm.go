// Package warm says how a handover goes on while its successor prepares the roles: role by role, since some
// get ready before others.
package warm

import (
	"iter"
	"slices"

	"github.com/goneli/neli/internal/byrole"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/handover"
	"github.com/goneli/neli/internal/elector/leases"
	"github.com/goneli/neli/internal/elector/offer"
	"github.com/goneli/neli/internal/elector/prepare"
	"github.com/goneli/neli/internal/elector/told"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/term"
)

// Shard is what this package needs of a shard.
type Shard struct {
	*Exchange // of its process
	byrole.Numbering
	Handovers *handover.Handovers
	Fold      leases.Fold
	Own       *leases.Own
	Claims    *vacancy.Claims
	Claiming  func() bool // whether Claims are in flight
	Keeps     int32       // this process could keep the roles below this number
	Log       int         // where offers are sent
	Idle      bool        // nobody drives this process any more
}

// Part is roles of a handover that take the next step together, and the conditions of that step.
type Part struct {
	*handover.Handover
	On       handover.Conditions
	Answered bool // the successor may take them unprepared
	Failed   bool // the successor failed them
}

// Prepares reports whether a handover waits for a successor that prepares the roles.
func (x *Exchange) Prepares(h *handover.Handover) bool {
	_, warm := x.members.Prepares(h.Successor())
	return (warm || h.IsPrepared()) && !h.IsUnprepared() && !h.IsAsked() && !x.set.Nominated
}

// ForBalance returns which of some roles are handed to a member for balance, and whether it prepares them: if so, it
// gets as many as it prepares at once. In a young group nothing is prepared: preparing all roles would take long.
func ForBalance(to string, roles []int, members told.Roll, young bool) (some []int, prepared bool) {
	is, prepares := members.Prepares(to)
	if !prepares || young {
		return roles, false
	}
	return roles[:min(len(roles), is.Most)], true
}

// Hand returns the handover of some roles for balance, and the groups of roles that share an outcome.
func Hand(to string, roles []int32, prepared bool, now clock.Instant) (h *handover.Handover, parts iter.Seq[[]int32]) {
	h = handover.NewHandover(term.Rebalanced, now, to, true)
	if prepared {
		return h, slices.Chunk(roles, 1)
	}
	h.Unprepared()
	return h, slices.Chunk(roles, len(roles))
}

// offers reports whether a role is still offered to a member, and if not, whether it was given away: its
// Release was read back, so the member knows.
func (s Shard) offers(local int32, to, us string) (offered, given bool) {
	h, own := s.Handovers.Of(local), s.Own.At(local) != nil
	switch g, held := s.Fold.Holder(local); {
	case !held || g.Session.Process != us:
		return false, true
	case h != nil:
		return h.Successor() == to, false
	}
	return !own, false // its Release was not read back yet
}

// holding describes the holder of a role, as this process knows it. The process wants the roles below roles.
func (s Shard) holding(local int32, roles int) (h prepare.Holding) {
	if g, held := s.Fold.Holder(local); held {
		h.Process = g.Session.Process
	}
	h.Own, h.Unwanted = s.Own.At(local) != nil, s.Role(local) >= roles
	return h
}

// mine reports whether a role was released in favour of this process, us, or may be in a Claim that it sends.
func (s Shard) mine(local int32, us string) bool {
	return s.Claims.Favours(local, us) || s.Claims.IsListed(local) || s.Claiming()
}

// Parts offers the roles of a handover, and returns parts that may go on.
func (s Shard) Parts(h *handover.Handover, now clock.Instant) (parts []Part) {
	to := h.Successor()
	is, _ := s.members.Prepares(to)
	for _, local := range h.Prepare(s.Log) {
		if s.Handovers.Of(local) == h {
			s.Offers.Name(to, is, s.place(local))
		}
	}
	looks, wanted := now.Mono.Add(s.set.T/4), h.Top() < s.Keeps
	h.Keeps(wanted, now)
	if !wanted {
		looks = min(looks, max(h.Since().Mono.Add(s.set.DrainTimeout/2), now.Mono))
	}
	var order []offer.Standing
	groups := map[offer.Standing][]int32{}
	for _, local := range s.looked(h) {
		is := s.Offers.Standing(to, s.place(local), h.Chosen(), now)
		if groups[is] == nil {
			order = append(order, is)
		}
		groups[is] = append(groups[is], local)
		if at := s.Offers.Changes(to, s.place(local), h.Chosen()); at > now.Mono {
			looks = min(looks, at)
		}
	}
	for _, is := range order {
		p := s.part(h, is, groups[is], now)
		if h.Decide(now, p.On) == handover.Stay {
			continue
		}
		if p.On.Ready && !p.On.Over {
			if at := h.Gather(len(groups[is]), s.trip.Takes(), now); now.Mono < at {
				looks = min(looks, at)
				continue
			}
		}
		p.Handover = s.Handovers.Part(h, groups[is])
		parts = append(parts, p)
		if p.Handover == h {
			return parts
		}
	}
	h.LooksAt(looks)
	return append(parts, s.part(h, s.Offers.Waiting(to, s.Index, now), []int32{h.Top()}, now))
}

func (s Shard) place(local int32) offer.Place { return offer.Place{Shard: s.Index, Local: local} }

// looked returns the roles to look at: those on which the member may have decided, or all if this process
// could keep them: these are few, and each may wait for too long.
func (s Shard) looked(h *handover.Handover) (roles []int32) {
	if h.Deliberate() {
		return h.Sorted(true)
	}
	for _, local := range s.Offers.Named(h.Successor(), s.Index) {
		if s.Handovers.Of(local) == h {
			roles = append(roles, local)
		}
	}
	return roles
}

// part returns what the next step of some roles with the same standing depends on.
func (s Shard) part(h *handover.Handover, is offer.Standing, roles []int32, now clock.Instant) Part {
	to, top := h.Successor(), roles[len(roles)-1]
	wanted := top < s.Keeps
	on := offer.Handing{Standing: is, Keeps: h.Deliberate() && wanted, Takes: s.members.Takes(to) && s.members.Wanting(to, s.Role(top)),
		Patient: offer.Patient(h.Since(), s.set.DrainTimeout, now)}
	on.Another = !on.Keeps && s.Another(top, to, now) != ""
	p := Part{Handover: h, On: on.Conditions(), Answered: is.Answered && on.Takes && !is.Failed && !is.Silent}
	p.On.Wanted, p.On.Idle = wanted, s.Idle
	_, p.Failed = on.Cools()
	return p
}

// Another returns a member that may take a role instead of another one, and has not failed it; empty if there
// is none. Roles that need one are spread over the members.
func (s Shard) Another(local int32, not string, now clock.Instant) string {
	plan, me := s.plans.Plan(false, now)
	for i := range plan.Len() {
		c := (i + int(local)) % plan.Len()
		id := plan.Candidate(c).ID
		if c != me && id != not && s.members.Takes(id) && s.members.Wanting(id, s.Role(local)) && !s.Offers.Rests(id, s.place(local), now) {
			return id
		}
	}
	return ""
}

// Rename gives each role of a part another successor, or none, and returns the handovers that this begins.
func (s Shard) Rename(p Part, now clock.Instant) (begun []*handover.Handover) {
	to := p.Successor()
	for _, local := range p.Sorted(true) {
		s.Offers.CallOff(to, s.place(local))
		s.Offers.Failed(to, s.place(local), now)
		if h := s.Handovers.Rename(local, s.Another(local, to, now), s.set.DrainTimeout, now); h != nil {
			begun = append(begun, h)
		}
	}
	return begun
}

// Ask notes that the application is asked to finish a part. If the Release will name no successor, the offers
// are called off. It returns why roles that should be prepared are given up unprepared.
func (s Shard) Ask(p Part, alone bool) (why string) {
	roles := p.Sorted(true)
	if len(roles) == 0 {
		return ""
	}
	counter, why := s.counter(p)
	if counter != nil {
		*counter += uint64(len(roles))
	}
	if !p.IsPrepared() {
		return why
	}
	for _, local := range roles {
		if alone {
			s.Offers.CallOff(p.Successor(), s.place(local))
		} else {
			s.Offers.Asked(p.Successor(), s.place(local))
		}
	}
	return why
}

// counter returns the counter for roles that are given up as this part is; nil if there is none. why says why they
// are not prepared, if they should be.
func (s Shard) counter(p Part) (counter *uint64, why string) {
	_, prepares := s.members.Prepares(p.Successor())
	given := &s.Offers.Counts
	switch {
	case p.IsPrepared() && p.On.Ready:
		return &given.Warm, ""
	case p.WasPrepared() && (p.On.Refused || p.Successor() == ""):
		return &given.Failed, "no member has prepared them"
	case p.WasPrepared() && p.On.Idle:
		return nil, "Lead or Background has ended, so nothing waits for preparation"
	case p.WasPrepared():
		return &given.Late, "half of DrainTimeout is over"
	case p.IsUnprepared() && prepares:
		return &given.Young, ""
	case p.Successor() != "" && !prepares && s.set.Prepares != nil:
		return &given.Unable, ""
	}
	return nil, ""
}

// CallOff calls off what a part offers. A role that its successor failed is not offered to it for a while.
func (s Shard) CallOff(p Part, now clock.Instant) {
	if !p.IsPrepared() {
		return
	}
	for local := range p.Each() {
		s.Offers.Counts.CalledOff++
		s.Offers.CallOff(p.Successor(), s.place(local))
		if p.Failed {
			s.Offers.Failed(p.Successor(), s.place(local), now)
		}
	}
}
