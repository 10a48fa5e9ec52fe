package neli_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// What people want of an election, in the simulator: priorities and preferences,
// honest and lying; applications that are not well; leadership handed to somebody
// who lives, or does not. All of it is drawn from a source of its own, so that a
// seed without any means what it meant before there was any.

// leaning is what the members' preferences are like.
type leaning int

const (
	leaningNone     leaning = iota
	leaningPriority         // each has a priority
	leaningFunction         // all use the same function
	leaningLies             // each uses another
	leanings
)

// will is what a seed decides of it, for all members.
type will struct {
	willed  bool
	leaning leaning
	levels  neli.Rebalance
	calm    bool // no jitter at all
	patient bool // nothing is transferred, and in the end all are to have their share
}

func drawWill(rnd *rand.Rand) will {
	return will{
		willed:  rnd.IntN(2) == 0,
		leaning: leaning(rnd.IntN(int(leanings))),
		levels:  neli.Rebalance(rnd.IntN(4) / 3),
		calm:    rnd.IntN(3) == 0,
		patient: rnd.IntN(3) == 0,
	}
}

func (w will) String() string {
	return fmt.Sprintf("leaning %d, rebalance %v, calm %v", w.leaning, w.levels, w.calm)
}

// inclined completes a member's configuration.
func (w *world) inclined(p *proc, cfg *neli.Config) {
	if !w.willed {
		return
	}
	cfg.Healthy, cfg.Rebalance = p.healthy, w.levels
	switch w.leaning {
	case leaningNone, leanings:
	case leaningPriority:
		p.priority = w.wills.IntN(2)
		cfg.Priority = p.priority
	case leaningFunction:
		cfg.Preference = func(m neli.Member, partition int) int { return opinion("", m, partition) }
	case leaningLies:
		cfg.Preference = func(m neli.Member, partition int) int { return opinion(p.id, m, partition) }
	}
}

// opinion is how much somebody wants a member on a partition.
func opinion(of string, m neli.Member, partition int) int {
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, of, m.ID, partition)
	return int(h.Sum32() >> 30)
}

var errUnwell = errors.New("unwell")

// healthy is the application's own check. It is suspended with its process.
func (p *proc) healthy() error {
	p.mu.Lock()
	stopped, until := p.stopped, p.checkHangs
	p.mu.Unlock()
	if stopped != nil {
		<-stopped
	}
	time.Sleep(time.Until(until))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unwell.IsZero() {
		return nil
	}
	return errUnwell
}

// ails sets whether the application is well.
func (p *proc) ails(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unwell = time.Time{}
	if yes {
		p.unwell = time.Now()
	}
}

const (
	// noticed is how long it may take until a change of health is known.
	noticed     = 1100 * time.Millisecond
	noticedHung = 5*time.Second + noticed
)

// unwellFor is for how long the library must have known that the application is
// not well, or does not say.
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
	case p.stopped != nil:
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

// stalls makes the check of health hang for d.
func (p *proc) stalls(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Until(p.checkHangs) <= 0 {
		p.checkHung, p.checkHangs = time.Now(), time.Now().Add(d)
	}
}

// wills are what is done to processes by way of what people want.
var wills = []fault{
	{"unwell", func(w *world, p *proc) {
		p.ails(true)
		w.later(w.longish(), func() { p.ails(false) })
	}},
	{"health flaps", func(w *world, p *proc) {
		at := time.Duration(0)
		for i := range 10 {
			time.AfterFunc(at, func() { p.ails(i%2 == 0) })
			at += 500*time.Millisecond + time.Duration(w.wills.IntN(2000))*time.Millisecond
		}
		w.quietAfter(at)
	}},
	{"health check hangs", func(w *world, p *proc) {
		d := time.Duration(w.wills.Int64N(int64(20 * time.Second)))
		p.stalls(d)
		w.quietAfter(d)
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
		w.start("", p.group)
	}},
	{"transfer to somebody who is cut off", func(w *world, p *proc) {
		if q := w.another(p); q != nil {
			w.broker.CutOff(q.id, nelitest.All)
			w.transfer(p, q)
			w.later(w.longish(), func() { w.broker.Restore(q.id, nelitest.All) })
		}
	}},
	{"transfer, and cut off", func(w *world, p *proc) {
		w.transfer(p, w.another(p))
		w.broker.CutOff(p.id, oneOf(w.wills, nelitest.All, nelitest.Appends, nelitest.Reads, nelitest.Acks))
		w.later(w.longish(), func() { w.broker.Restore(p.id, nelitest.All) })
	}},
	{"transfer to several at once", func(w *world, p *proc) {
		for range 3 {
			w.transfer(p, w.another(p))
		}
	}},
}

func (w *world) longish() time.Duration {
	return time.Duration(w.wills.Int64N(int64(oneOf(w.wills, w.timeout, 2*w.timeout, 20*time.Second))))
}

// another draws a process other than p, or nil.
func (w *world) another(p *proc) *proc {
	ps := slices.DeleteFunc(w.living(), func(q *proc) bool { return q == p })
	if len(ps) == 0 {
		return nil
	}
	return ps[w.wills.IntN(len(ps))]
}

// wish lets people have their will now and then.
func (w *world) wish() {
	if !w.willed || w.wills.IntN(3) > 0 {
		return
	}
	p := w.leaderOf(w.wills.IntN(w.roles))
	if ps := w.living(); p == nil || p.leaving.Load() || w.wills.IntN(4) == 0 {
		p = ps[w.wills.IntN(len(ps))]
	}
	w.strike(oneOf(w.wills, wills...), p)
}

// transferred is what Transfer said.
type transferred struct {
	from, to  *proc
	partition int
	after     int64 // the token that was given up
	at        time.Time
}

func (p *proc) self() string {
	for _, m := range p.Members() {
		if m.Self {
			return m.ID
		}
	}
	return ""
}

// transfer asks p to hand what it leads to q, and takes note of what it says.
func (w *world) transfer(p, q *proc) {
	if q == nil || w.nomination != neli.Open || w.patient { // what was transferred is not shared out
		return
	}
	for role := range w.partitions {
		token, ok := p.Token(role)
		if !ok {
			continue
		}
		w.ending.Go(func() {
			ctx, stop := context.WithTimeout(context.Background(), time.Minute)
			defer stop()
			err := p.Transfer(ctx, role, q.self())
			w.say(p.id, "transfer of %d to %s: %v", role, q.id, err)
			switch {
			case p.leaving.Load():
			case err == nil:
				w.seen.count("transferred")
				w.mu.Lock()
				defer w.mu.Unlock()
				w.moves = append(w.moves, transferred{p, q, role, token, time.Now()})
			case errors.Is(err, neli.ErrNotTransferred):
				w.seen.count("not transferred")
			case errors.Is(err, neli.ErrNoAnswer):
				w.seen.count("no answer")
			case errors.Is(err, neli.ErrNotLeader), errors.Is(err, neli.ErrNoMember), errors.Is(err, neli.ErrTopicReplaced),
				errors.Is(err, neli.ErrPartitionsChanged), ctx.Err() != nil:
			default:
				w.violated("%s: Transfer returned %v", p.id, err)
			}
		})
		return
	}
}

// stepDown asks p to give everything up.
func (w *world) stepDown(p *proc) {
	from := p.read().mono
	p.mu.Lock()
	p.awayFrom, p.awayUntil = from, from+max(10*time.Second, 3*w.timeout)
	p.mu.Unlock()
	w.ending.Go(func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		err := p.StepDown(ctx)
		w.say(p.id, "stepped down: %v", err)
		if err != nil || p.leaving.Load() || p.read().mono >= p.awayUntil {
			return
		}
		w.seen.count("stepped down")
		for role := range w.roles {
			if p.IsLeaderOf(role) {
				w.violated("%s has stepped down and leads role %d", p.id, role)
			}
		}
	})
}

// claims asserts that a process which sends a claim is willing. What is sent late,
// after something else, may have been decided before.
func (p *proc) claims(at stamp) {
	if p.read() != at {
		return
	}
	if d := p.unwellFor(); d > 0 {
		p.w.violated("%s claims, though it has been known to be unwell for %v", p.id, d)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.mono > p.awayFrom && at.mono < p.awayUntil {
		p.w.violated("%s claims, having stepped down %v ago", p.id, at.mono-p.awayFrom)
	}
}

// well asserts that whoever leads is well, or has not been unwell for longer than it
// takes to give up. It needs the world's lock.
func (w *world) well(p *proc, role int) {
	bound := 4*time.Second + simDrain + w.timeout + time.Second
	if d := p.unwellFor(); d > time.Duration(float64(bound)/(1-w.drift)) {
		w.violatedLocked("%s leads role %d, and has been known to be unwell for %v", p.id, role, d)
	}
}

// satisfied asserts that in the end everybody has a share: all well, steady, and
// nothing pinned. With preferences that contradict each other it asserts that no
// partition goes to and fro without end.
func (w *world) satisfied() {
	if !w.willed || !w.patient || w.broken || w.mode != neli.Exclusive || w.nomination != neli.Open || w.levels != neli.RebalanceOn {
		return
	}
	stretch := func(d time.Duration) time.Duration { return time.Duration(float64(d) / (1 - w.drift)) }
	switch {
	case w.leaning == leaningLies || w.leaning == leaningFunction:
		w.seen.count("watched for partitions that go to and fro")
		before := w.termsSoFar()
		const watch = 2 * time.Minute
		w.until(watch, w.over)
		if n, most := w.termsSoFar()-before, w.partitions*int(2+stretch(watch)/(30*time.Second)); n > most {
			w.violated("%d terms in %v, %d should be the most", n, watch, most)
		}
	default:
		w.seen.count("watched until everybody has a share")
		bound := stretch(time.Minute + 15*time.Second + 30*time.Second + time.Duration(w.partitions)*10*time.Second)
		if !w.until(bound, func() bool { return w.shared() || w.over() }) {
			w.violated("not everybody has a share %v after the last fault", bound)
		}
	}
}

func (w *world) termsSoFar() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.owners)
}

// shared reports whether those with the highest priority lead everything, none of
// them more than one partition more than another.
func (w *world) shared() bool {
	best := 0
	for _, p := range w.living() {
		best = max(best, p.priority)
	}
	most, least := 0, w.partitions
	for _, p := range w.living() {
		n := 0
		for partition := range w.partitions {
			if p.IsLeaderOf(partition) {
				n++
			}
		}
		if p.priority < best {
			if n > 0 {
				return false
			}
			continue
		}
		most, least = max(most, n), min(least, n)
	}
	return most-least <= 1
}

// truthful asserts that what Transfer said to have happened did: a claim of whom it
// was meant for came after the term that was given up. It needs the lock.
func (w *world) truthful(claims map[term]*proc, since map[int]int64) {
	for _, m := range w.moves {
		from, known := since[m.partition]
		if !known || m.after < from {
			continue
		}
		led := false
		for of, by := range claims {
			led = led || of.partition == m.partition && of.token > m.after && by == m.to
		}
		if !led {
			w.violatedLocked("%s said that %s leads partition %d after token %d, and it does not", m.from.id, m.to.id, m.partition, m.after)
		}
	}
}
