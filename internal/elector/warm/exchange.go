package warm

import (
	"slices"
	"time"

	"github.com/goneli/neli/internal/byrole"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/link"
	"github.com/goneli/neli/internal/elector/offer"
	"github.com/goneli/neli/internal/elector/outside"
	"github.com/goneli/neli/internal/elector/prepare"
	"github.com/goneli/neli/internal/elector/request"
	"github.com/goneli/neli/internal/elector/standby"
	"github.com/goneli/neli/internal/elector/told"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/placement"
)

// Exchange is what a process offers to others, and what it prepares of what they offer to it.
type Exchange struct {
	Offers   *offer.Offers
	preparer *prepare.Preparer // nil: it prepares nothing
	anew     bool              // something has changed since the preparer looked
	moved    bool              // holders or R have changed since it last reviewed them
	roles    int               // R when it last looked
	do       prepare.Do

	set      *outside.Settings
	self     string
	members  told.Roll
	plans    Plans
	trip     *link.RoundTrip
	standby  bool          // this process stands by for roles of others
	standbys standby.Table // which members stand by for roles
	looksAt  clock.Mono    // when it next looks for which roles it stands by
	shifted  bool          // holders, standbys or R have changed since the last look
}

// lookEvery is the least time between two looks for own standbys.
const lookEvery = 500 * time.Millisecond

// maxStandby bounds the roles for which members stand by: each look is at all of them.
const maxStandby = 1 << 17

// Plans returns the current plan, and the index of this process in it.
type Plans interface {
	Plan(expected bool, now clock.Instant) (plan *placement.Plan, me int)
}

// NewExchange returns an Exchange of a process among members, with its round trip.
func NewExchange(set *outside.Settings, members told.Roll, plans Plans, trip *link.RoundTrip) Exchange {
	x := Exchange{Offers: offer.NewOffers(set.SuccessorWait, set.T), set: set, self: set.Process, members: members, plans: plans, trip: trip, shifted: true}
	if is := set.Prepares; is != nil {
		x.preparer, x.standby = prepare.NewPreparer(*is, set.T), is.Standby
	}
	return x
}

// Do is what is to be done for the application's Prepare.
type Do = prepare.Do

// Will is what a process wants.
type Will struct {
	Willing bool // it would lead roles
	Able    bool // it would lead a role that it won now
	Process string
}

// WillOf returns what a process wants now.
func WillOf(set *outside.Settings, d outside.Desired, now clock.Instant) Will {
	return Will{Willing: d.Willing(now), Able: outside.Able(set, d, now), Process: set.Process}
}

// Changed notes that roles may have other holders.
func (x *Exchange) Changed() { x.moved, x.shifted = true, true }

// Offered takes the offer that a Ping at an offset of a log may have, and reports whether it took one: such a
// Ping needs no other answer. holder returns who holds a role of the shard.
func (x *Exchange) Offered(shard, log int, offset int64, r *lease.Record, is Will, holder func(local int32) (lease.Grantee, bool), now clock.Instant) bool {
	if x.preparer == nil || r.Offer == nil {
		return false
	}
	from := r.Session.Process
	x.anew = true
	x.do.End = append(x.do.End, x.preparer.Offered(offer.From{Process: from, Shard: shard}, log, offset, r.Offer, is.Willing, func(local int32) bool {
		g, held := holder(local)
		return held && g.Session.Process == from
	}, now)...)
	return true
}

// Answered takes the state that a Pong may have.
func (x *Exchange) Answered(shard int, r *lease.Record, now clock.Instant) {
	if r.Prepared != nil {
		x.Offers.Answered(offer.From{Process: r.Session.Process, Shard: shard}, r.Prepared, now)
	}
}

// Returned notes that a call of the application's Prepare has returned.
func (x *Exchange) Returned(b prepare.Begin, ok bool, now clock.Instant) {
	x.anew = true
	x.do.End = append(x.do.End, x.preparer.Returned(b, ok, now)...)
}

// Anew notes that a log has begun anew.
func (x *Exchange) Anew(log, shard int, lost bool) {
	if x.preparer != nil {
		x.do.End = append(x.do.End, x.preparer.Anew(log, shard, lost)...)
	}
}

// Letters returns what this process has to send now. It wants the roles below a number; of returns a shard.
func (x *Exchange) Letters(is Will, roles int, of func(int) Shard, now clock.Instant) []request.Letter {
	return append(x.offer(is, of, now), x.prepare(is, roles, of, now)...)
}

func (x *Exchange) offer(is Will, of func(int) Shard, now clock.Instant) (out []request.Letter) {
	if x.Offers.IsIdle() {
		return nil
	}
	x.Offers.Review(func(to offer.From, local int32) (offered, given bool) {
		return of(to.Shard).offers(local, to.Process, is.Process)
	})
	for _, o := range x.Offers.Sends(!is.Willing, now) {
		out = append(out, request.Letter{Log: of(o.To.Shard).Log, Kind: lease.Ping, To: o.To.Process, Offer: &o.Offer})
	}
	return out
}

func (x *Exchange) prepare(is Will, roles int, of func(int) Shard, now clock.Instant) (out []request.Letter) {
	p := x.preparer
	if p == nil {
		return nil
	}
	if roles != x.roles {
		x.moved, x.shifted, x.roles = true, true, roles
	}
	x.stand(is, roles, of, now)
	if p.IsIdle() {
		return nil
	}
	if !is.Willing {
		x.shifted = true // its standbys end now
		x.do.End = append(x.do.End, p.Quit()...)
	}
	if x.moved {
		x.anew, x.moved = true, false
		x.do.End = append(x.do.End, p.Review(func(at offer.Place) prepare.Holding { return of(at.Shard).holding(at.Local, roles) })...)
	}
	if !x.anew && now.Mono < p.Due(is.Able) {
		return nil
	}
	x.anew = false
	do := p.Step(is.Able, func(at offer.Place) bool { return of(at.Shard).mine(at.Local, is.Process) }, now)
	x.do.End, x.do.Begin = append(x.do.End, do.End...), append(x.do.Begin, do.Begin...)
	for _, s := range do.Say {
		out = append(out, request.Letter{Log: s.Log, Kind: lease.Pong, To: s.To.Process, Ping: s.Offset, Prepared: &s.State})
	}
	return out
}

// stand finds the roles for which this process stands by: others hold them, and it comes first in the table.
func (x *Exchange) stand(is Will, roles int, of func(int) Shard, now clock.Instant) {
	if !x.standby || now.Mono < x.looksAt {
		return
	}
	x.looksAt = now.Mono.Add(lookEvery)
	if x.look(); !x.shifted || !is.Willing {
		return
	}
	x.shifted, x.anew = false, true
	mine := map[offer.Place]bool{}
	for i := range of(0).Of {
		s := of(i)
		for local := range s.Count(min(roles, maxStandby)) {
			g, held := s.Fold.Holder(local)
			if held && g.Session.Process != x.self && x.standbys.Of(s.Role(local), g.Session.Process) == x.self ||
				!held && x.preparer.Stands(s.place(local)) { // it is to claim what it has prepared
				mine[s.place(local)] = true
			}
		}
	}
	x.do.End = append(x.do.End, x.preparer.Stand(mine)...)
}

// look updates the table of the members that stand by.
func (x *Exchange) look() {
	who := x.members.Standbys()
	if x.standby {
		who = append(who, x.self)
		slices.Sort(who)
	}
	if x.standbys.Update(who) {
		x.shifted = true
	}
}

// Sort sorts vacant roles of a shard that have no successor: those that are prepared here, those for which another
// member stands by, and others.
func (x *Exchange) Sort(n byrole.Numbering, roles []int32, holder func(local int32) (lease.Grantee, bool)) (ready, theirs, others []int32) {
	x.look()
	if x.standbys.IsEmpty() && (x.preparer == nil || x.preparer.IsIdle()) {
		return nil, nil, roles // without a look at each: there may be a million
	}
	for _, local := range roles {
		by := ""
		if g, held := holder(local); held {
			by = x.standbys.Of(n.Role(local), g.Session.Process)
		}
		switch {
		case x.preparer != nil && x.preparer.IsReady(offer.Place{Shard: n.Index, Local: local}):
			ready = append(ready, local)
		case by != "" && by != x.self:
			theirs = append(theirs, local)
		default:
			others = append(others, local)
		}
	}
	return ready, theirs, others
}

// Take returns, once, the calls to begin and the calls whose contexts are to end. shards is the number of
// shards.
func (x *Exchange) Take(shards int) prepare.Do {
	do := x.do
	x.do = prepare.Do{}
	for i := range do.Begin {
		b := &do.Begin[i]
		b.Role = byrole.Numbering{Index: b.Shard, Of: shards}.Role(b.Local)
	}
	return do
}

// Due is when time alone has an effect.
func (x *Exchange) Due(is Will) clock.Mono {
	next := x.Offers.Due()
	if x.standby && x.shifted && is.Willing {
		next = min(next, x.looksAt)
	}
	if x.preparer != nil {
		next = min(next, x.preparer.Due(is.Able))
	}
	return next
}

// Counts returns what became of roles that this process prepared, and of those that it gave up.
func (x *Exchange) Counts(now clock.Instant) (prepares prepare.Counts, given offer.Given) {
	if x.preparer != nil {
		prepares = x.preparer.Counts(now)
	}
	return prepares, x.Offers.Counts
}

// Rests reports whether a role is not handed over for balance for now: a member has failed to prepare it.
func (x *Exchange) Rests(shard int, local int32, now clock.Instant) bool {
	return x.Offers.RestsAnywhere(offer.Place{Shard: shard, Local: local}, now)
}

// Spares returns how much longer a handover to a member may take because it prepares the role, and whether the member
// is not at fault if the handover is called off: it is there, and was at work on other roles or failed this one.
func (x *Exchange) Spares(to string, shard int, members told.Roll, now clock.Instant) (longer time.Duration, spared bool) {
	is, prepares := members.Prepares(to)
	if prepares {
		longer = 2*is.For + x.set.SuccessorWait
	}
	return longer, prepares && members.Takes(to) && !x.Offers.Silent(to, shard, now)
}
