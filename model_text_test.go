package neli

import (
	"fmt"
	"strings"
)

// A counterexample in words. The log's first offset is 0; p1#3 is the third
// incarnation of all, and process 1's.

func (r *record) modelString() string {
	switch r.kind {
	case kindHello:
		return "noise"
	case kindClaim:
		return fmt.Sprintf("claim by %s, read %d", r.member, r.read-modelFirst)
	}
	return fmt.Sprintf("%s by %s, token %d, read %d", r.kind, r.member, r.token-modelFirst, r.read-modelFirst)
}

// views shows what every process believes. The first offset of the log is 0.
func (w *modelWorld) views() string {
	offset := func(o int64) string {
		switch o {
		case tokenNone:
			return "none"
		case tokenUnknown:
			return "unknown"
		}
		return fmt.Sprint(o - modelFirst)
	}
	var b strings.Builder
	for i := range w.procs {
		p := &w.procs[i]
		l := &p.lease
		fmt.Fprintf(&b, "        %s: token %s, last %d, read %d, mine %s, quiet for %v", l.me, offset(l.token),
			l.last-modelFirst, l.read-modelFirst, offset(l.mine), p.at.age(l.quiet))
		if l.claiming != 0 {
			b.WriteString(", claiming")
		}
		if l.mine != noToken {
			fmt.Fprintf(&b, ", V is %v old", p.at.ageAtMost(l.v))
		}
		if l.holds(p.at) {
			b.WriteString(", LEADS")
		}
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// describe tells what action a did to w and made of it after.
func (w *modelWorld) describe(a modelAction, after *modelWorld) string {
	me := w.procs[a.p].lease.me
	p, q := &w.procs[a.p], &after.procs[a.p]
	switch a.op {
	case opRead:
		r := &w.log[p.next-w.first]
		return fmt.Sprintf("%s reads %d: %s", me, p.next-modelFirst, r.modelString())
	case opKeep, opDrop:
		r := after.flight[len(after.flight)-1]
		return fmt.Sprintf("%s sends %s", me, r.modelString())
	case opLose, opForget:
		return me + " sends a record that is lost"
	case opFail:
		return me + " is told that its claim failed"
	case opCrash:
		return fmt.Sprintf("%s crashes, restarts as %s and reads on at %d", me, q.lease.me, q.next-modelFirst)
	case opJump:
		return fmt.Sprintf("%s's reads jump to %d; it is now %s", me, q.next-modelFirst, q.lease.me)
	case opSlip:
		return me + "'s reader begins again"
	case opAppend:
		return fmt.Sprintf("log %d = %s", w.end()-modelFirst, w.flight[a.x].modelString())
	case opDouble:
		return fmt.Sprintf("log %d = %s, which may come again", w.end()-modelFirst, w.flight[a.x].modelString())
	case opSet:
		return me + "'s wall clock is set forward"
	case opNoise:
		return fmt.Sprintf("log %d = noise", w.end()-modelFirst)
	case opNew:
		return "the log is recreated, empty"
	}
	s := "time passes; clocks move by"
	for i := range w.procs {
		d := after.procs[i].at.mono - w.procs[i].at.mono
		s += fmt.Sprintf(" %v", d)
		if e := after.procs[i].at.wall - w.procs[i].at.wall; e != d {
			s += fmt.Sprintf(" (wall clock %v)", e)
		}
	}
	return s
}
