package lease

import (
	"time"

	"github.com/goneli/neli/internal/clock"
)

// A simulated process does anything that the Lease allows, sensible or not. In a calm world it is a simple elector.

// tick does everything that is due, and sometimes something that is not.
func (p *simProc) tick() {
	w := p.w
	if !p.alive || p.paused || !p.reading || w.Fault != "" {
		return
	}
	w.oracle.look(p)
	now := p.now()
	id := p.l.Session()
	out := p.l.Lapse(now)
	w.tracer.renews(p, "lapse", id)
	p.sendAll(out)
	p.giveUp(now)
	if p.l.Session() != id {
		w.count.lapses++
	}
	p.letGo(now)
	p.beat(now)
	p.claim(now)
	p.snapshots(now)
	p.words(now)
	w.oracle.look(p)
}

// retry returns how long a Claim or a Release may stay without an answer.
func (p *simProc) retry() time.Duration {
	if p.w.Calm {
		return min(p.w.pr.retry, p.t/4)
	}
	return p.w.pr.retry
}

func (p *simProc) giveUp(now clock.Instant) {
	n, oldest := p.l.Claiming()
	if n > 0 && now.Mono.Sub(oldest.Mono) >= p.retry() && (!p.l.Known() || p.w.R.IntN(3) == 0) {
		id := p.l.Session()
		p.l.GiveUpClaims(now.Add(-p.retry()))
		p.w.tracer.renews(p, "renew", id)
	}
}

// letGo forgets and releases what is no longer wanted. Sometimes it asks for Releases of roles
// that were not forgotten: none may be made.
func (p *simProc) letGo(now clock.Instant) {
	w := p.w
	if w.Maybe(w.pr.hasty) {
		p.sendAll(p.l.Release(p.held(), now))
	}
	var gone []int32
	for _, role := range p.held() {
		if !p.want[role] {
			gone = append(gone, role)
		}
	}
	if len(gone) > 0 {
		p.forget(gone)
		if w.Calm || w.R.IntN(8) > 0 {
			p.sendAll(p.l.Release(gone, now))
			p.released = now
		}
	}
	since := now.Mono.Sub(p.released.Mono)
	if p.l.Owing() && (since >= p.retry() || !w.Calm && w.R.IntN(20) == 0) {
		p.sendAll(p.l.Unreleased(now))
		p.released = now
	}
}

func (p *simProc) beat(now clock.Instant) {
	w := p.w
	interval := time.Duration(float64(p.t) * w.pr.beat)
	if now.Mono.Sub(p.beaten.Mono) < interval && (w.Calm || w.R.IntN(30) > 0) {
		return
	}
	if r, ok := p.l.Beat(now); ok {
		p.beaten = now
		p.send(r, p.newer != nil, nil)
	} else if !w.Calm && w.Maybe(w.pr.chatter) {
		p.beaten = now
		p.send(p.hello(Hello, now), p.newer != nil && !w.Maybe(w.pr.olden), nil)
	}
}

// claim claims the wanted roles, or some of them, once its own delay is over too.
func (p *simProc) claim(now clock.Instant) {
	w := p.w
	if !w.Calm && !w.Maybe(w.pr.eager) {
		return
	}
	late := now
	late.Raw = late.Raw.Add(-p.delay)
	var roles []int32
	for role, want := range p.want {
		if want && p.l.MayClaim(int32(role), late) {
			roles = append(roles, int32(role))
		}
	}
	if !w.Calm && w.R.IntN(4) == 0 {
		roles = w.some(roles)
	}
	if !w.Calm && w.R.IntN(4) == 0 && len(roles) > 1 { // several Claims in flight
		half := len(roles) / 2
		p.claimThese(roles[:half], now)
		roles = roles[half:]
	}
	p.claimThese(roles, now)
}

func (p *simProc) claimThese(roles []int32, now clock.Instant) {
	if r, ok := p.l.Claim(roles, now); ok {
		p.send(r, p.newer != nil && !r.Fresh, nil)
	}
}

// snapshots sends a Snapshot at any time, or when another process asks. It may use more parts than needed.
func (p *simProc) snapshots(now clock.Instant) {
	w := p.w
	asked := p.answer != longAgo && now.Mono >= p.answer.Mono
	if !p.l.Known() || !(w.Maybe(w.pr.snapshot) || asked && (w.Calm || w.R.IntN(2) == 0)) {
		return
	}
	p.answer = longAgo
	if p.newer != nil {
		newer := !w.Maybe(w.pr.olden)
		if r, old, ok := p.newer.snapshot(now, newer); ok {
			w.oracle.truthful(p, []*State{r.State}, r.Read, !newer)
			p.send(r, newer, old)
		}
		return
	}
	parts := p.l.Snapshot(now)
	if n := len(parts[0].State.Grants); w.tracer == nil && len(parts) == 1 && n > 1 && w.R.IntN(3) == 0 {
		parts = split(parts[0], 1+w.R.IntN(n))
	}
	var states []*State
	for _, r := range parts {
		states = append(states, r.State)
	}
	w.oracle.truthful(p, states, parts[0].Read, true)
	p.sendAll(parts)
}

// split divides a Snapshot into several records.
func split(r Record, n int) []Record {
	out := make([]Record, n)
	for i := range out {
		s := *r.State
		s.Part, s.Parts, s.Grants, s.Holders = i, n, nil, nil
		for k, g := range r.State.Grants {
			if k%n == i {
				s.Holders = append(s.Holders, r.State.Holders[g.Holder])
				g.Holder = int32(len(s.Holders)) - 1
				s.Grants = append(s.Grants, g)
			}
		}
		out[i] = r
		out[i].State = &s
		out[i].Seq += uint64(i) << 32 // no stamp is kept for these numbers
	}
	return out
}

// words sends records that the rules ignore.
func (p *simProc) words(now clock.Instant) {
	w := p.w
	if w.Calm {
		if !p.l.Known() && now.Mono.Sub(p.asked.Mono) > p.t/4 {
			p.asked = now
			p.send(p.hello(Hello, now), false, nil)
		}
		return
	}
	if !w.Maybe(w.pr.chatter / 20) {
		return
	}
	kind := []Kind{Hello, Ping, Pong}[w.R.IntN(3)]
	if kind == Pong && p.l.Offset() < 0 {
		kind = Ping
	}
	p.send(p.hello(kind, now), p.newer != nil && !w.Maybe(w.pr.olden), nil)
}

func (p *simProc) hello(kind Kind, now clock.Instant) Record {
	r := p.l.Word(kind, now)
	if kind != Ping {
		r.Hello = &Announcement{Roles: p.w.pr.roles, Priority: -1, Wants: []int{}, Period: time.Second}
	}
	if kind != Hello {
		r.To = "b.1"
	}
	if kind == Pong {
		r.Ping = p.l.Offset()
	}
	return r
}
