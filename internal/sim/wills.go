package sim

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/nelitest"
)

// What operators and applications want in the simulator: priorities and preferences, consistent
// and contradictory; unhealthy applications; transfers to members that are alive or dead.

// leaning is the kind of preferences that members have.
type leaning int

const (
	leaningNone     leaning = iota
	leaningPriority         // each has a priority
	leaningFunction         // all have the same function
	leaningLies             // each has another function
	leaningZones            // each has a zone, and all prefer zones in the same order
	leaningCaps             // each has a priority and a cap (MaxRoles)
	leanings
)

// will is what a seed decides about these, for all members.
type will struct {
	willed  bool
	leaning leaning
	stays   bool
	still   bool // no jitter at all
	patient bool // nothing is transferred, and in the end every member must have its share
}

func drawWill(rnd *rand.Rand) will {
	w := will{
		willed:  rnd.IntN(2) == 0,
		leaning: leaning(rnd.IntN(int(leanings))),
		stays:   rnd.IntN(4) == 3,
		still:   rnd.IntN(3) == 0,
		patient: rnd.IntN(3) == 0,
	}
	if !w.willed {
		w = will{patient: w.patient}
	}
	return w
}

func (w will) String() string {
	return fmt.Sprintf("willed %v, leaning %d, no rebalance %v, no jitter %v, patient %v", w.willed, w.leaning, w.stays, w.still, w.patient)
}

// inclined completes a member's configuration.
func (w *world) inclined(p *proc, cfg *neli.Config) {
	if !w.willed {
		return
	}
	cfg.Healthy, cfg.DisableRebalance = p.healthy, w.stays
	switch w.leaning {
	case leaningNone, leanings:
	case leaningPriority:
		p.priority = w.rnd.IntN(2)
		cfg.Priority = p.priority
	case leaningFunction:
		cfg.Preference = func(m neli.Member, role int) int { return opinion("", m, role) }
	case leaningZones:
		p.priority, p.zone = w.rnd.IntN(2), w.rnd.IntN(3)
		cfg.Priority, cfg.Zone, cfg.Preference = p.priority, fmt.Sprint("z", p.zone), neli.ByZone("z2", "z1")
	case leaningCaps:
		p.priority, p.most = w.rnd.IntN(2), 1+w.rnd.IntN(w.roles)
		cfg.Priority = p.priority
		if w.nomination == neli.NominationOpen {
			cfg.MaxRoles = p.most
		}
	case leaningLies:
		cfg.Preference = func(m neli.Member, role int) int { return opinion(p.id, m, role) }
	}
}

// opinion returns how much a member's preference favours another member for a role.
func opinion(of string, m neli.Member, role int) int {
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, of, m.ID, role)
	return int(h.Sum32() >> 30)
}

var errUnwell = errors.New("unwell")

// healthy is the application's health check. It is suspended with its process.
func (p *proc) healthy() error {
	if stopped := p.app.stoppedUntil(); stopped != nil {
		<-stopped
	}
	p.mu.Lock()
	until := p.checkHangs
	p.mu.Unlock()
	time.Sleep(time.Until(until))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unwell.IsZero() {
		return nil
	}
	return errUnwell
}

// ails makes the application well or unwell.
func (p *proc) ails(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unwell = time.Time{}
	if yes {
		p.unwell = time.Now()
	}
}

const (
	// noticed is how long it may take until the library notices a change of health.
	noticed     = 1100 * time.Millisecond
	noticedHung = 5*time.Second + noticed
)

// unwellFor returns for how long the library must have known that the application is unwell, or that its check hangs.
func (p *proc) unwellFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := func(since time.Time, after time.Duration) time.Duration {
		if p.woken.After(since) {
			since = p.woken
		}
		return max(0, time.Since(since)-after)
	}
	switch {
	case p.asleep.Load():
		return 0
	case time.Until(p.checkHangs) > 0:
		return known(p.checkHung, noticedHung)
	case p.unwell.IsZero():
		return 0
	case p.checkHangs.After(p.unwell):
		return known(p.checkHangs, noticed)
	}
	return known(p.unwell, noticed)
}

// stalls makes the health check hang for d.
func (p *proc) stalls(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Until(p.checkHangs) <= 0 {
		p.checkHung, p.checkHangs = time.Now(), time.Now().Add(d)
	}
}

// wills are the faults that come from what operators and applications want.
var wills = []fault{
	{"unwell", func(w *world, p *proc) {
		p.ails(true)
		w.later(w.long(), func() { p.ails(false) })
	}},
	{"health flaps", func(w *world, p *proc) {
		at := time.Duration(0)
		for i := range 10 {
			time.AfterFunc(at, func() { p.ails(i%2 == 0) })
			at += 500*time.Millisecond + w.upTo(2*time.Second)
		}
		w.quietAfter(at)
	}},
	{"health check hangs", func(w *world, p *proc) {
		d := w.upTo(20 * time.Second)
		p.stalls(d)
		w.quietAfter(d)
	}},
	{"another priority", func(w *world, p *proc) {
		p.priority = w.rnd.IntN(2)
		if err := p.SetPriority(p.priority); err != nil {
			w.violated("%s: SetPriority: %v", p.id, err)
		}
	}},
	{"rebalance", func(w *world, p *proc) {
		if w.nomination != neli.NominationOpen {
			return
		}
		d := w.upTo(time.Minute)
		p.heed.moves.Store(true)
		p.shares.Store(true)
		w.ending.Go(func() {
			ctx, stop := context.WithTimeout(context.Background(), d)
			defer stop()
			moved, err := p.Rebalance(ctx)
			w.say(p.id, "rebalance: %v, %v", moved, err)
		})
	}},
	{"step down", func(w *world, p *proc) { w.stepDown(p) }},
	{"transfer", func(w *world, p *proc) { w.transfer(p, w.another(p)) }},
	{"transfer to the dead", func(w *world, p *proc) {
		q := w.another(p)
		if q == nil {
			return
		}
		w.crash(q)
		w.transfer(p, q)
		w.start("")
	}},
	{"transfer to somebody who is cut off", func(w *world, p *proc) {
		if q := w.another(p); q != nil {
			w.broker.CutOff(q.id, nelitest.LinkAll)
			w.transfer(p, q)
			w.later(w.long(), func() { w.broker.Restore(q.id, nelitest.LinkAll) })
		}
	}},
	{"transfer, and cut off", func(w *world, p *proc) {
		w.transfer(p, w.another(p))
		w.broker.CutOff(p.id, oneOf(w.rnd, nelitest.LinkAll, nelitest.LinkAppends, nelitest.LinkReads, nelitest.LinkAcks))
		w.later(w.long(), func() { w.broker.Restore(p.id, nelitest.LinkAll) })
	}},
	{"transfer to several at once", func(w *world, p *proc) {
		for range 3 {
			w.transfer(p, w.another(p))
		}
	}},
}

// wish lets one of the wills strike now and then.
func (w *world) wish() {
	if !w.willed || w.rnd.IntN(3) > 0 {
		return
	}
	w.strike(oneOf(w.rnd, wills...), w.victim())
}

// transferred is a requested hand-over.
type transferred struct {
	from, to *proc
	role     int
	after    int64 // the token of from's term
}

// transfer asks p to hand over to q a role that p leads, and notes the result.
func (w *world) transfer(p, q *proc) {
	if q == nil || w.nomination != neli.NominationOpen || w.patient { // a transferred role is not shared out
		return
	}
	from := w.rnd.IntN(len(w.looked))
	for i := range w.looked {
		role := w.looked[(from+i)%len(w.looked)]
		token, ok := p.Token(role)
		if !ok {
			continue
		}
		p.heed.moves.Store(true)
		w.ending.Go(func() {
			ctx, stop := context.WithTimeout(context.Background(), time.Minute)
			defer stop()
			err := p.Transfer(ctx, role, q.self)
			w.say(p.id, "transfer of role %d to %s: %v", role, q.id, err)
			w.transferEnds(ctx, err, transferred{p, q, role, token})
		})
		return
	}
}

func (w *world) transferEnds(ctx context.Context, err error, m transferred) {
	seen := w.opts.Seen
	switch {
	case m.from.leaving.Load():
	case err == nil:
		seen.Count("transferred")
		w.mu.Lock()
		defer w.mu.Unlock()
		w.moves = append(w.moves, m)
	case errors.Is(err, neli.ErrNotDone):
		seen.Count("not transferred")
	case errors.Is(err, neli.ErrNoAnswer):
		seen.Count("no answer")
	case errors.Is(err, neli.ErrNotLeader), errors.Is(err, neli.ErrNoMember), errors.Is(err, neli.ErrLeadsAlready), errors.Is(err, neli.ErrTopicChanged),
		ctx.Err() != nil:
	default:
		w.violated("%s: Transfer returned %v", m.from.id, err)
	}
}

// awayFor returns how long a process claims nothing after it stepped down, by its own clock.
func (p *proc) awayFor() time.Duration { return max(10*time.Second, 3*p.t) }

// stepDown asks p to give up everything.
func (w *world) stepDown(p *proc) {
	from := p.clock.Now().Mono
	p.heed.moves.Store(true)
	p.mu.Lock()
	p.awayFrom, p.awayUntil = from, from.Add(p.awayFor())
	p.mu.Unlock()
	w.quietAfter(simDrain + 2*p.awayFor())
	w.ending.Go(func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		err := p.StepDown(ctx)
		w.say(p.id, "stepped down: %v", err)
		if err != nil || p.leaving.Load() || p.clock.Now().Mono >= p.until() {
			return
		}
		w.opts.Seen.Count("stepped down")
		for role := range w.roles {
			if p.IsLeaderOf(role) {
				w.violated("%s has stepped down and leads role %d", p.id, role)
			}
		}
	})
}

func (p *proc) until() clock.Mono {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.awayUntil
}

// claims asserts that a process that sends a claim may lead. It asserts nothing if sending was delayed:
// when the process decided on the claim, it may still have been allowed to lead.
func (p *proc) claims(at clock.Instant) {
	if p.clock.Now() != at {
		return
	}
	if d := p.unwellFor(); d > 0 {
		p.w.violated("%s claims, though it has been known to be unwell for %v", p.id, d)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.Mono > p.awayFrom && at.Mono < p.awayUntil {
		p.w.violated("%s claims, having stepped down %v ago", p.id, at.Mono.Sub(p.awayFrom))
	}
}

// well asserts that a leader is well, or has not been unwell for longer than giving up takes.
func (w *world) well(p *proc, role int) {
	bound := 4*time.Second + simDrain + p.t + time.Second
	if d := p.unwellFor(); d > w.stretched(bound) {
		w.violated("%s leads role %d, and has been known to be unwell for %v", p.id, role, d)
	}
}

// stretched returns d by the slowest ordinary clock, in true time.
func (w *world) stretched(d time.Duration) time.Duration {
	return time.Duration(float64(d) / (1 - w.drift) / (1 - w.slew))
}
