package neli

import "time"

// modelDecoder rebuilds a world from the canonical form of a state.
type modelDecoder struct {
	in []byte
	c  *modelConfig
}

var (
	modelIDs   = [modelProcs]string{"p0", "p1", "p2"} // of the incarnations in a decoded world
	modelFresh = [modelProcs]string{"q0", "q1", "q2"} // of those that the next action starts
)

func modelNewID(i int) func() string { return func() string { return modelFresh[i] } }

func (d *modelDecoder) byte() byte {
	b := d.in[0]
	d.in = d.in[1:]
	return b
}

func (d *modelDecoder) token() int64 {
	switch b := d.byte(); b {
	case codeNone:
		return tokenNone
	case codeUnknown:
		return tokenUnknown
	default:
		return int64(b)
	}
}

func (d *modelDecoder) record() record {
	k, t, o := modelKinds[d.byte()], d.token(), int64(d.byte())
	if k == kindHello {
		o = -1
	}
	return record{kind: k, group: "g", member: "gone", token: t, read: o}
}

func (d *modelDecoder) age(now instant) instant {
	mono := time.Duration(d.byte()) * modelUnit
	wall := mono
	if d.c.suspend {
		wall = time.Duration(d.byte()) * modelUnit
	}
	return instant{mono: now.mono - mono, wall: now.wall - wall}
}

// decode sets w, which came from newModelWorld, to the state whose canonical form is in.
func (d *modelDecoder) decode(w *modelWorld, in []byte) {
	d.in, d.c = in, w.cfg
	w.first, w.log, w.flight = modelFirst, w.log[:0], w.flight[:0]
	w.owner = -1
	w.newest = d.token()
	spent := d.byte()
	w.spent, w.recreated = spent&1 != 0, spent&2 != 0
	w.count = int(d.byte())
	for range d.byte() {
		w.log = append(w.log, d.record())
	}
	for range d.byte() {
		w.flight = append(w.flight, d.record())
	}
	for i := range w.procs {
		d.proc(w, i)
	}
}

func (d *modelDecoder) proc(w *modelWorld, i int) {
	p := &w.procs[i]
	p.at = instant{mono: 1000 * modelUnit, wall: 1000 * modelUnit}
	l := &p.lease
	*l = lease{leaseRules: l.leaseRules, sent: l.sent[:0], me: modelIDs[i]}
	l.token, l.last, l.read, l.mine = d.token(), int64(d.byte()), int64(d.byte()), d.token()
	flags := d.byte()
	l.claiming = uint64(d.byte())
	p.next = l.read + 1
	if d.c.recreate {
		p.next = int64(d.byte())
	}
	p.stray = flags&flagStray != 0
	if flags&flagOwner != 0 {
		w.owner = i
	}
	l.beat = p.at
	if flags&flagBeaten == 0 {
		l.beat = p.at.add(-10 * modelUnit)
	}
	if flags&flagPaused != 0 {
		l.pause = p.at.mono + modelUnit
	}
	l.quiet = d.age(p.at)
	if l.mine != noToken {
		l.v = d.age(p.at)
	}
	l.seq = l.claiming
	for range d.byte() {
		s := uint64(d.byte())
		l.sent = append(l.sent, sent{seq: s, stamp: d.age(p.at)})
	}
	for range d.byte() {
		r := &w.log[d.byte()]
		r.member, r.seq = l.me, uint64(d.byte())
		l.seq = max(l.seq, r.seq)
	}
	for range d.byte() {
		r := d.record()
		r.member, r.seq = l.me, uint64(d.byte())
		l.seq = max(l.seq, r.seq)
		w.flight = append(w.flight, r)
	}
}
