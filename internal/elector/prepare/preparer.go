package prepare

import (
	"maps"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/offer"
	"github.com/goneli/neli/internal/lease"
)

const (
	// rest is how long a standby that failed is left alone.
	rest = 30 * time.Second
	// sayEvery is the least time between two states for one holder.
	sayEvery = 50 * time.Millisecond
	// maxHolders limits what a topic full of rubbish can make a process remember.
	maxHolders = 10_000
)

// Preparer is what this process prepares: roles to be handed to it, or for which it stands by.
type Preparer struct {
	set     lease.Prepares
	t       time.Duration
	by      map[offer.Place]*preparation
	hot     map[offer.Place]*preparation // those that are offered or running: each step looks at all of these
	queue   []*preparation               // standbys that wait for a place; some may have changed since
	resting []*preparation               // standbys that failed, by again; some may have changed since
	holders map[offer.From]*holder
	calls   map[uint64]clock.Mono // Prepares that have not returned, and when they began
	begun   uint64                // the number of the newest call
	states  uint64                // the number of the newest state
	counts  Counts
}

// Counts are counters of preparations, and their present state.
type Counts struct {
	Begun, Ready, Failed, Led uint64 // Led: of those that were ready
	Ended                     uint64 // ended for another reason

	Running int           // calls that have not returned
	Stuck   int           // of these, calls whose contexts have ended: each keeps another one from beginning
	Longest time.Duration // how long the first of the running ones has lasted

	Standbys, StandbysReady int // roles for which this process stands by
}

// NewPreparer returns a Preparer that prepares nothing. t is the lease.
func NewPreparer(set lease.Prepares, t time.Duration) *Preparer {
	return &Preparer{set: set, t: t, by: map[offer.Place]*preparation{}, hot: map[offer.Place]*preparation{}, holders: map[offer.From]*holder{}, calls: map[uint64]clock.Mono{}}
}

// Counts returns the counters, and the state at a time.
func (p *Preparer) Counts(now clock.Instant) Counts {
	c := p.counts
	c.Running, c.Stuck = len(p.calls), len(p.calls)
	for _, w := range p.hot {
		if w.stage == running {
			c.Stuck--
		}
	}
	for _, began := range p.calls {
		c.Longest = max(c.Longest, now.Mono.Sub(began))
	}
	return c
}

// tally adds a preparation to the counts of standbys, or, before it changes, takes it away (by −1). So Counts need not
// look at all of them.
func (p *Preparer) tally(w *preparation, by int) {
	if w.standby {
		p.counts.Standbys += by
	}
	if w.standby && w.stage == ready {
		p.counts.StandbysReady += by
	}
}

// Offered takes an offer that was read at an offset of a log, and returns what ends by it. holds reports
// whether its sender holds a role. A role that it no longer names is called off if the sender still holds the
// role; else this process may get it next. A role that failed is not tried again while offers name it.
func (p *Preparer) Offered(from offer.From, log int, offset int64, o *lease.Offer, willing bool, holds func(local int32) bool, now clock.Instant) (ended []End) {
	h := p.holders[from]
	if h == nil {
		if len(p.holders) >= maxHolders {
			clear(p.holders) // late offers may count once; what is offered is said again
		}
		h = &holder{}
		p.holders[from] = h
	}
	if o.N < h.newest {
		return nil
	}
	h.newest, h.log, h.offset, h.heard, h.owes = o.N, log, offset, now.Mono, willing
	if !willing {
		return nil
	}
	in := map[int32]bool{}
	for _, local := range o.Roles[:min(len(o.Roles), offer.Window(p.set))] {
		if holds(local) {
			in[local] = true
			p.wanted(offer.Place{Shard: from.Shard, Local: local}, from.Process, o.Urgent, now)
		}
	}
	return p.end(CalledOff, sorted(p.hot, func(w *preparation) bool {
		return w.Shard == from.Shard && w.from == from.Process && !in[w.Local] && holds(w.Local)
	}))
}

// wanted notes that a holder's newest offer names a role.
func (p *Preparer) wanted(at offer.Place, from string, urgent bool, now clock.Instant) {
	w := p.by[at]
	if w == nil {
		w = &preparation{Place: at}
		p.by[at] = w
	}
	w.from, w.urgent, w.expires = from, urgent, now.Mono.Add(2*p.t)
	p.file(w)
}

// Held notes that a process holds a role now, and returns what ends by that. A Release ends nothing: the
// role may be this process's next.
func (p *Preparer) Held(at offer.Place, process string, own bool) (ended []End) {
	w := p.by[at]
	if w == nil || !own && (w.from == process || w.from == "") {
		return nil
	}
	why := Elsewhere
	if own {
		why = Led
	}
	return p.end(why, []*preparation{w})
}

// Holding is what this process knows of who holds a role.
type Holding struct {
	Process  string // the holder; "": none
	Own      bool   // it is this process
	Unwanted bool   // the role is R or greater
}

// Review ends preparations of roles that have gone to this process or elsewhere by now, or are unwanted.
func (p *Preparer) Review(of func(offer.Place) Holding) (ended []End) {
	ended = p.Exclude(func(at offer.Place) bool { return of(at).Unwanted })
	for _, w := range sorted(p.by, every) {
		if h := of(w.Place); h.Own || h.Process != "" {
			ended = append(ended, p.Held(w.Place, h.Process, h.Own)...)
		}
	}
	return ended
}

// IsIdle reports whether nothing is prepared, running or owed, and no offer was read lately.
func (p *Preparer) IsIdle() bool { return len(p.by)+len(p.holders)+len(p.calls) == 0 }

// Stands reports whether this process stands by for a role.
func (p *Preparer) Stands(at offer.Place) bool { return p.by[at] != nil && p.by[at].standby }

// Stand sets the roles for which this process stands by, and returns what ends by that.
func (p *Preparer) Stand(roles map[offer.Place]bool) (ended []End) {
	for at := range roles {
		if p.by[at] == nil {
			p.by[at] = &preparation{Place: at}
		}
	}
	for _, w := range sorted(p.by, every) {
		p.tally(w, -1)
		if w.standby = roles[w.Place]; w.standby {
			p.file(w)
		}
		p.tally(w, 1)
	}
	ended = p.end(Relieved, sorted(p.by, func(w *preparation) bool { return !w.standby && w.from == "" }))
	gone := func(w *preparation) bool { return p.by[w.Place] != w }
	p.queue, p.resting = slices.DeleteFunc(p.queue, gone), slices.DeleteFunc(p.resting, gone)
	return ended
}

// IsReady reports whether a role is prepared.
func (p *Preparer) IsReady(at offer.Place) bool { return p.by[at] != nil && p.by[at].stage == ready }

// Quit ends all preparations, since this process would lead nothing.
func (p *Preparer) Quit() (ended []End) {
	for _, h := range p.holders {
		h.owes = false
	}
	return p.end(Unwilling, sorted(p.by, every))
}

// Exclude ends the preparation of roles that this process does not want.
func (p *Preparer) Exclude(unwanted func(offer.Place) bool) (ended []End) {
	return p.end(Unwanted, sorted(p.by, func(w *preparation) bool { return unwanted(w.Place) }))
}

// Anew notes that a log has begun anew. If nothing is known any more of who holds what, that ends a shard's preparations.
func (p *Preparer) Anew(log, shard int, lost bool) (ended []End) {
	for _, h := range p.holders {
		if h.log == log {
			h.log = -1 // there is no Ping at that offset any more
		}
	}
	return p.Exclude(func(at offer.Place) bool { return lost && at.Shard == shard })
}

// Returned notes that a call of Prepare has returned. If its context had ended, that only frees its slot.
func (p *Preparer) Returned(b Begin, ok bool, now clock.Instant) (ended []End) {
	delete(p.calls, b.Call)
	w := p.by[b.Place]
	if w == nil || w.call != b.Call {
		return nil
	}
	p.tally(w, -1)
	if w.stage = ready; ok {
		p.counts.Ready++
	} else {
		ended = p.fail(w, Failed, now)
	}
	p.tally(w, 1)
	p.file(w)
	p.owe(w)
	return ended
}

// fail ends the context of a preparation that has failed. The preparation stays, so that no offer begins it anew.
func (p *Preparer) fail(w *preparation, why Why, now clock.Instant) []End {
	e := End{Begin{Place: w.Place, Call: w.call}, why}
	w.stage, w.call, w.again = failed, 0, now.Mono.Add(rest)
	p.counts.Failed++
	return []End{e}
}

func (p *Preparer) owe(w *preparation) {
	if h := p.holders[offer.From{Process: w.from, Shard: w.Shard}]; h != nil && h.log >= 0 {
		h.owes = true
	}
}

// Step does what is due. mine reports whether a role was released in favour of this process, or is being
// claimed by it: such a preparation does not expire.
func (p *Preparer) Step(willing bool, mine func(offer.Place) bool, now clock.Instant) (do Do) {
	do.End = p.end(Unconfirmed, sorted(p.hot, func(w *preparation) bool {
		if w.from == "" || now.Mono < w.expires {
			return false
		}
		if mine(w.Place) {
			w.expires = now.Mono.Add(p.t / 4)
			return false
		}
		return true
	}))
	for _, w := range sorted(p.hot, func(w *preparation) bool { return w.stage == running && now.Mono >= w.late }) {
		do.End = append(do.End, p.fail(w, Late, now)...)
		p.file(w)
		p.owe(w)
	}
	for len(p.resting) > 0 && now.Mono >= p.resting[0].again {
		if w := p.pop(&p.resting, failed); w != nil {
			w.stage = queued
			p.file(w)
		}
	}
	maps.DeleteFunc(p.holders, func(_ offer.From, h *holder) bool { return now.Mono >= h.heard.Add(4*p.t) })
	if !willing {
		return do
	}
	for _, w := range p.next() {
		p.begun++
		p.counts.Begun++
		w.stage, w.call, w.late = running, p.begun, now.Mono.Add(p.set.For)
		p.calls[w.call] = now.Mono
		p.file(w)
		do.Begin = append(do.Begin, Begin{Place: w.Place, Call: w.call})
		p.owe(w)
	}
	do.Say = p.say(now)
	return do
}

// say returns the states that are due.
func (p *Preparer) say(now clock.Instant) (out []Say) {
	for from, h := range p.holders {
		if !h.owes || h.log < 0 || now.Mono < h.said.Add(sayEvery) {
			continue
		}
		h.owes, h.said = false, now.Mono
		out = append(out, Say{To: from, Log: h.log, Offset: h.offset, State: lease.Prepared{Of: h.newest}})
	}
	slices.SortFunc(out, func(a, b Say) int { return a.To.Compare(b.To) })
	for i := range out {
		s := &out[i]
		p.states++
		s.State.N = p.states
		for _, w := range sorted(p.hot, func(w *preparation) bool { return w.from == s.To.Process && w.Shard == s.To.Shard }) {
			switch w.stage {
			case running:
				s.State.Running = append(s.State.Running, w.Local)
			case ready:
				s.State.Ready = append(s.State.Ready, w.Local)
			case failed:
				s.State.Failed = append(s.State.Failed, w.Local)
			case queued: // what the state does not name waits
			}
		}
	}
	return out
}

// Due is when time alone has an effect.
func (p *Preparer) Due(willing bool) clock.Mono {
	next := clock.Mono(clock.Never)
	waits := false
	for _, w := range p.hot {
		if w.from != "" {
			next = min(next, w.expires)
		}
		switch w.stage {
		case running:
			next = min(next, w.late)
		case queued:
			waits = true
		case failed, ready:
		}
	}
	if len(p.resting) > 0 {
		next = min(next, p.resting[0].again)
	}
	waits = waits || len(p.queue) > 0
	if willing && waits && len(p.calls) < p.set.Most {
		return 0
	}
	for _, h := range p.holders {
		if willing && h.owes && h.log >= 0 {
			next = min(next, h.said.Add(sayEvery))
		}
	}
	return next
}

// end ends preparations, and returns the calls whose contexts end by that.
func (p *Preparer) end(why Why, which []*preparation) (ended []End) {
	for _, w := range which {
		if w.standby && (why == CalledOff || why == Unconfirmed || why == Elsewhere) {
			w.from, w.urgent = "", false // it stays a standby
			p.file(w)
			continue
		}
		p.tally(w, -1)
		delete(p.by, w.Place)
		delete(p.hot, w.Place)
		if w.call == 0 {
			continue
		}
		ended = append(ended, End{Begin{Place: w.Place, Call: w.call}, why})
		switch {
		case why != Led:
			p.counts.Ended++
		case w.stage == ready:
			p.counts.Led++
		}
	}
	if len(p.by) == 0 { // no step will look at them any more
		p.queue, p.resting = nil, nil
	}
	return ended
}
