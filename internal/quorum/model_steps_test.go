package quorum

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// modelStep receives one possible step: what happens, the state that it leads to, and a fault if
// there is one.
type modelStep func(what func() string, to *modelWorld, fault string)

// Steps calls step for everything that may happen.
func (w *modelWorld) Steps(step func(what func() string, to *modelWorld, fault string)) {
	for i := range w.procs {
		w.stepsOf(i, step)
	}
	for k, o := range w.flight {
		n := w.next(-1, 0)
		n.flight = slices.Delete(slices.Clone(w.flight), k, k+1)
		l := &n.logs[o.log]
		l.records = append(slices.Clip(l.records), o.r)
		step(func() string {
			return fmt.Sprintf("log %d at %d = %s", o.log, len(l.records)-1, simText(&simEntry{fmt.Sprint(l.id), o.r}))
		}, n, "")
	}
	for log := range w.logs {
		w.restarts(log, step)
	}
	n := w.next(-1, 0)
	n.ticks++
	step(func() string { return "time passes" }, n, "")
}

// restarts calls step for the ways in which a log may restart. It comes back empty and with
// another id, by which it refuses what is in flight. If the configuration allows it, it comes
// back with a part of its records and the same id.
func (w *modelWorld) restarts(log int, step modelStep) {
	if w.forgot >= w.c.forgets {
		return
	}
	l := w.logs[log]
	if w.c.rule == imageServes {
		for size := range l.records {
			n := w.next(-1, 0)
			n.forgot++
			n.logs[log].records = l.records[:size:size]
			n.gone = slices.Concat(w.gone, l.records[size:])
			step(func() string { return fmt.Sprintf("log %d is restored from an image of %d records", log, size) }, n, "")
		}
		return
	}
	n := w.next(-1, 0)
	n.forgot++
	n.logs[log] = modelLog{id: l.id + 1}
	n.flight = slices.DeleteFunc(slices.Clone(w.flight), func(o modelOut) bool { return o.log == log })
	for i := range w.procs {
		if at := n.place(i, log); at.id == l.id {
			at.late = l.records
		}
	}
	step(func() string { return fmt.Sprintf("log %d forgets, and is %d.%d", log, log, l.id+1) }, n, "")
}

// stepsOf calls step for everything that process i may do, and that may happen to it.
func (w *modelWorld) stepsOf(i int, step modelStep) {
	q := w.procs[i]
	lapsed := false
	for log, v := range w.logs {
		at := w.place(i, log)
		if at.next < len(w.behind(i, log)) {
			n := w.next(i, log)
			fault := n.read(i, log)
			step(func() string { return fmt.Sprintf("%c reads %d of log %d.%d", 'a'+i, at.next, log, at.id) }, n, fault)
		}
		for from := 0; at.id != v.id && from <= len(v.records); from++ {
			n := w.next(i, log)
			n.begin(i, log, from)
			step(func() string { return fmt.Sprintf("%c begins log %d.%d at %d", 'a'+i, log, v.id, from) }, n, "")
		}
		lapsed = lapsed || q.Log(log).Lapsed(w.now(i))
	}
	if lapsed {
		w.act(i, allLogs, step, func(q *Lease, now clock.Instant) []Out { return q.Lapse(now) })
		return
	}
	for log := range w.logs {
		if under, _ := q.Log(log).Claiming(); under > 0 {
			n := w.next(i, log)
			n.procs[i].GiveUpClaims(log, n.now(i), n.now(i))
			step(func() string { return fmt.Sprintf("%c gives up its Claims on log %d", 'a'+i, log) }, n, "")
		}
		if w.sent < w.c.records && len(w.flight) < w.c.flight && w.place(i, log).id == w.logs[log].id {
			w.sends(i, log, step)
		}
	}
}

// sends calls step for everything that process i may send to a log. Claims and Releases on
// several logs are made one after the other.
func (w *modelWorld) sends(i, log int, step modelStep) {
	l, now := w.procs[i].Log(log), w.now(i)
	to := func(some ...lease.Record) (out []Out) {
		for _, r := range some {
			out = append(out, Out{log, r})
		}
		return out
	}
	if l.Holding() > 0 {
		w.act(i, log, step, func(q *Lease, now clock.Instant) []Out {
			r, _ := q.Beat(log, now)
			return to(r)
		})
	}
	if _, mine := l.Mine(0); mine {
		w.act(i, log, step, func(q *Lease, now clock.Instant) []Out {
			q.ForgetOn(log, []int32{0})
			return to(q.ReleaseOn(log, []int32{0}, now)...)
		})
	}
	if l.MayClaim(0, now) {
		w.act(i, log, step, func(q *Lease, now clock.Instant) []Out { return q.claim(w.only(log), now) })
	}
	if w.c.snapshots && l.Known() {
		w.act(i, log, step, func(q *Lease, now clock.Instant) []Out { return to(q.Snapshot(log, now)...) })
	}
}

// act lets process i do something. What it sends is then in flight, or lost if there is no room,
// or if it is for an incarnation that is gone.
func (w *modelWorld) act(i, log int, step modelStep, do func(*Lease, clock.Instant) []Out) {
	n := w.next(i, log)
	out := do(n.procs[i], n.now(i))
	var said []string
	for k := range out {
		o := &out[k]
		lost := n.sent >= w.c.records || len(n.flight) >= w.c.flight || w.place(i, o.Log).id != w.logs[o.Log].id
		said = append(said, simText(&simEntry{fmt.Sprintf("log %d, lost %v", o.Log, lost), &o.Record}))
		if !lost {
			n.flight = append(n.flight, modelOut{o.Log, &o.Record})
			n.sent++
		}
	}
	step(func() string { return fmt.Sprintf("%c sends %s", 'a'+i, strings.Join(said, " and ")) }, n, "")
}

// encode writes w. The result is valid until the next call.
func (k *modelCoder) encode(w *modelWorld) []byte {
	if k.ids == nil {
		k.ids, k.seqs = map[lease.Session]byte{}, map[modelSeq]byte{}
	}
	k.out, k.snapshots = k.out[:0], w.c.snapshots
	k.gather(w)
	k.now = w.now(0).Mono
	k.sorted(func(next func()) { // the numbers of the logs do not matter
		for log := range w.logs {
			clear(k.ids)
			clear(k.seqs)
			k.log(w, log)
			next()
		}
	})
	for i, q := range w.procs {
		k.ballot(q.bal)
		k.ballot(q.seen)
		k.ballot(w.led[i])
		k.ballot(micros(w.now(i)))
		token, _, _ := q.Term(0)
		k.ballot(token)
	}
	k.ballot(w.newest)
	k.ballot(w.ended)
	k.out = append(k.out, byte(w.last+1), byte(w.sent), byte(w.forgot))
	return k.out
}

// gather collects all ballots of a state, and those that the wall clocks would give.
func (k *modelCoder) gather(w *modelWorld) {
	k.ballots = append(k.ballots[:0], 0, w.newest, w.ended)
	for i, q := range w.procs {
		token, _, _ := q.Term(0)
		k.ballots = append(k.ballots, q.bal, q.seen, token, w.led[i], micros(w.now(i)))
		for log, v := range q.logs {
			k.ballots = append(k.ballots, v.back, v.lease.Back())
			for _, r := range w.behind(i, log) { // a record already read may still be among those kept
				k.ballots = append(k.ballots, r.Ballot)
			}
		}
	}
	for _, l := range w.logs {
		for _, r := range l.records {
			k.ballots = append(k.ballots, r.Ballot)
		}
	}
	for _, o := range w.flight {
		k.ballots = append(k.ballots, o.r.Ballot)
	}
	for _, r := range w.gone {
		k.ballots = append(k.ballots, r.Ballot)
	}
	k.rank()
}

// log writes the state of one log: what can still be read, what is in flight to it, and what each
// process has made of it.
func (k *modelCoder) log(w *modelWorld, log int) {
	l, low := w.logs[log], len(w.logs[log].records)
	for i, q := range w.procs {
		at, v := w.place(i, log), q.logs[log]
		k.who = q.rules.Process
		k.lease(v.lease)
		k.ballot(v.back)
		u := q.unit(0)
		k.flag(u != nil && u.mine.has(log))
		k.flag(u != nil && u.counts.has(log))
		k.number(int64(at.next))
		if k.flag(at.id == l.id); at.id == l.id {
			low = min(low, at.next)
		} else {
			low = 0
			k.number(int64(len(at.late) - at.next))
			for _, r := range at.late[at.next:] {
				k.record(r)
			}
		}
		if w.c.rule == exceedsToo {
			k.ballot(largest(w.behind(i, log)[min(at.from, len(w.behind(i, log))):]))
		}
	}
	if w.c.rule == exceeds {
		k.ballot(largest(l.records))
	}
	if w.c.rule == imageServes {
		low = 0
	}
	k.number(int64(len(l.records)))
	for _, r := range l.records[low:] {
		k.record(r)
	}
	k.sorted(func(next func()) {
		for _, o := range w.flight {
			if o.log == log {
				k.record(o.r)
				next()
			}
		}
	})
}
