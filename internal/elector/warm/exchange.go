package warm

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/handover"
	"github.com/goneli/neli/internal/elector/offer"
	"github.com/goneli/neli/internal/elector/prepare"
	"github.com/goneli/neli/internal/lease"
)

// Exchange is what a process offers to others, and what it prepares of what they offer to it.
type Exchange struct {
	Offers   *offer.Offers
	preparer *prepare.Preparer // nil: it prepares nothing
	anew     bool              // something has changed since the preparer looked
	end      []prepare.End
	begin    []prepare.Begin
}

// NewExchange returns an Exchange of a process with a lease of t that prepares so, or not at all.
func NewExchange(is *lease.Prepares, wait, t time.Duration) Exchange {
	x := Exchange{Offers: offer.NewOffers(wait, t)}
	if is != nil {
		x.preparer = prepare.NewPreparer(*is, t)
	}
	return x
}

// Holding is what a process knows of who holds a role.
type Holding struct {
	prepare.Holding
	Us       bool // by what was read, this process
	Handover *handover.Handover
}

// Will is what a process wants.
type Will struct{ Willing, Able bool }

// Letter is a Ping or a Pong to be sent, a Pong in a log.
type Letter struct {
	lease.Record
	Shard, Log int
}

// IsIdle reports whether nothing is offered or prepared, nor was lately.
func (x *Exchange) IsIdle() bool {
	return x.Offers.IsIdle() && (x.preparer == nil || x.preparer.IsIdle())
}

// Changed notes that roles have other holders.
func (x *Exchange) Changed() { x.anew = true }

// Offered takes the offer that a Ping at an offset of a log may have, and reports whether that answers it.
// holder returns who holds a role of the shard.
func (x *Exchange) Offered(shard, log int, offset int64, r *lease.Record, is Will, holder func(local int32) (lease.Grantee, bool), now clock.Instant) bool {
	if x.preparer == nil || r.Offer == nil {
		return false
	}
	from := r.Session.Process
	x.anew = true
	x.end = append(x.end, x.preparer.Offered(offer.From{Process: from, Shard: shard}, log, offset, r.Offer, is.Willing, func(local int32) bool {
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
func (x *Exchange) Returned(b prepare.Begin, ok bool) {
	x.anew = true
	x.end = append(x.end, x.preparer.Returned(b, ok)...)
}

// Anew notes that a log has begun anew.
func (x *Exchange) Anew(log, shard int) {
	if x.preparer != nil {
		x.end = append(x.end, x.preparer.Anew(log, shard)...)
	}
}

// Letters returns what is to be sent now.
func (x *Exchange) Letters(is Will, of func(offer.Place) Holding, now clock.Instant) (out []Letter) {
	return append(x.offer(is, of, now), x.prepare(is, of, now)...)
}

func (x *Exchange) offer(is Will, of func(offer.Place) Holding, now clock.Instant) (out []Letter) {
	if x.Offers.IsIdle() {
		return nil
	}
	x.Offers.Review(func(to offer.From, local int32) (offered, given bool) {
		h := of(offer.Place{Shard: to.Shard, Local: local})
		return Offered(h.Handover, to.Process, h.Own, h.Us)
	})
	for _, o := range x.Offers.Sends(!is.Willing, now) {
		out = append(out, Letter{lease.Record{Kind: lease.Ping, To: o.To.Process, Offer: &o.Offer}, o.To.Shard, 0})
	}
	return out
}

func (x *Exchange) prepare(is Will, of func(offer.Place) Holding, now clock.Instant) (out []Letter) {
	p := x.preparer
	if p == nil || p.IsIdle() {
		return nil
	}
	if !is.Willing {
		x.end = append(x.end, p.Quit()...)
	}
	if !x.anew && now.Mono < p.Due(is.Able) {
		return nil
	}
	x.anew = false
	x.end = append(x.end, p.Review(func(at offer.Place) prepare.Holding { return of(at).Holding })...)
	do := p.Step(is.Able, func(at offer.Place) bool { return of(at).Mine }, now)
	x.end, x.begin = append(x.end, do.End...), append(x.begin, do.Begin...)
	for _, s := range do.Say {
		out = append(out, Letter{lease.Record{Kind: lease.Pong, To: s.To.Process, Ping: s.Offset, Prepared: &s.State}, s.To.Shard, s.Log})
	}
	return out
}

// Take returns, once, whose contexts are to end, and which calls are to begin.
func (x *Exchange) Take() (end []prepare.End, begin []prepare.Begin) {
	end, begin = x.end, x.begin
	x.end, x.begin = nil, nil
	return end, begin
}

// Due is when time alone has an effect.
func (x *Exchange) Due(able bool) clock.Mono {
	next := x.Offers.Due()
	if x.preparer != nil {
		next = min(next, x.preparer.Due(able))
	}
	return next
}

// Counts returns the preparer's counters, and how many calls should have returned.
func (x *Exchange) Counts() (c prepare.Counts, stuck int) {
	if x.preparer != nil {
		c, _, stuck = x.preparer.Counts()
	}
	return c, stuck
}
