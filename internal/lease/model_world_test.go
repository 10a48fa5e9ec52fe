package lease

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goneli/neli/internal/clock"
)

// The model is the Lease that ships, in a small world: a few processes, roles and records, and a
// clock that ticks. Everything may happen at any time, and the search visits all of it
// (internal/explore).
//
// A tick is half of what a claimant waits for the longest lease. A lease of Tmax is led for up to
// one tick and may be claimed after two. A short one is led within its tick and may be claimed
// after one.

const (
	modelTick  = (clock.Tmax + time.Millisecond) / 2
	modelLong  = clock.Tmax
	modelShort = modelTick - 2*time.Millisecond
)

// modelConfig bounds a world.
type modelConfig struct {
	name      string
	ts        []time.Duration // one for each process
	roles     int
	records   int // how many are made
	flight    int // how many are in flight at a time
	begins    int // how often a process jumps to some offset
	doubles   int // how many records are appended twice
	newer     int // how many records of newer versions appear
	snapshots bool
	origin    bool // processes that read from offset 0 know that it is the log's origin, and say Hello
	held      bool // process 0 holds role 0; the others begin after its Claim, without knowing the fold
}

// modelRecord is a record in the log. r is nil for a record of a newer version.
type modelRecord struct{ r *Record }

// modelWorld is one state. What its pointers refer to is shared with other states and never
// written to: a process is copied before it does anything.
type modelWorld struct {
	c      *modelConfig
	procs  []*Lease
	ticks  int
	log    []modelRecord
	truth  *fold
	hist   []uint64
	flight []*Record

	sent, begins, doubles, newers int
	led                           []int64 // by process and role: the token it leads by
	ended                         []int64 // by role: the largest token whose term has ended
}

func newModelWorld(c *modelConfig) *modelWorld {
	truth := newFold()
	w := &modelWorld{c: c, truth: &truth, led: slices.Repeat([]int64{none}, len(c.ts)*c.roles), ended: slices.Repeat([]int64{none}, c.roles)}
	for i, t := range c.ts {
		l := New(Rules{Process: string(rune('a' + i)), T: t, History: 1})
		l.Begin(0, true, w.now())
		w.procs = append(w.procs, l)
	}
	w.ticks = 2
	if c.held {
		r, _ := w.procs[0].Claim([]int32{0}, w.now())
		w.append(&r)
		w.read(0)
		for _, l := range w.procs[1:] {
			l.Begin(1, false, w.now())
		}
	}
	return w
}

func (w *modelWorld) now() clock.Instant {
	return clock.Alike(time.Hour + time.Duration(w.ticks)*modelTick)
}

// next returns a copy of w in which process i may be written to; no process if i < 0.
func (w *modelWorld) next(i int) *modelWorld {
	n := *w
	n.led, n.ended = slices.Clone(w.led), slices.Clone(w.ended)
	n.log, n.hist, n.flight = slices.Clip(w.log), slices.Clip(w.hist), slices.Clip(w.flight)
	if i >= 0 {
		n.procs = slices.Clone(w.procs)
		n.procs[i] = cloneLease(w.procs[i])
	}
	return &n
}

// cloneLease copies a Lease except its trail, which no rule depends on.
func cloneLease(l *Lease) *Lease {
	c := *l
	c.fold = cloneFold(&l.fold)
	c.trail = trail{knownAt: 1 << 62}
	c.changed = nil
	c.own.sent, c.own.claims = slices.Clone(l.own.sent), slices.Clone(l.own.claims)
	c.own.claiming, c.own.forgotten = slices.Clone(l.own.claiming), maps.Clone(l.own.forgotten)
	if l.join != nil {
		j := *l.join
		j.kept = slices.Clip(j.kept)
		c.join = &j
	}
	return &c
}

// append adds a record to the log, and folds it into the truth. w must be a copy of its own.
func (w *modelWorld) append(r *Record) {
	o := int64(len(w.log))
	f := cloneFold(w.truth)
	if r == nil {
		f.setNewer(o)
	} else {
		f.apply(r, o, clock.Instant{}, nil)
	}
	f.ended = nil
	w.truth = &f
	w.log, w.hist = append(w.log, modelRecord{r}), append(w.hist, f.hash)
}

// read lets process i read its next record, and compares its fold with the truth.
func (w *modelWorld) read(i int) (fault string) {
	l := w.procs[i]
	o := l.Offset() + 1
	var e Event
	l.Origin(w.c.origin)
	if r := w.log[o].r; r != nil {
		e = l.Read(o, r, w.now())
	} else {
		e = l.ReadNewer(o, w.now())
	}
	switch {
	case e.Rewound || e.Differs:
		return fmt.Sprintf("alarm in a sound log: %v at offset %d", l.Session(), o)
	case l.Known() && l.fold.hash != w.hist[o]:
		return fmt.Sprintf("folds differ at offset %d: %v has %s, the truth is %s", o, l.Session(), foldText(&l.fold), foldText(w.truth))
	}
	return ""
}

// Look checks that the present leaders may lead.
func (w *modelWorld) Look() (fault string) {
	now := w.now()
	for role := range w.c.roles {
		leader := -1
		for i, l := range w.procs {
			token, leads := l.Leads(int32(role), now)
			if !leads {
				token = none
			}
			led := &w.led[i*w.c.roles+role]
			if *led != none && *led != token {
				w.ended[role] = max(w.ended[role], *led)
			}
			*led = token
			if !leads {
				continue
			}
			if leader >= 0 {
				return fmt.Sprintf("two leaders of role %d: %v and %v", role, w.procs[leader].Session(), l.Session())
			}
			leader = i
			if r := w.log[token].r; r == nil || r.Kind != Claim || r.Session != l.Session() {
				return fmt.Sprintf("no valid claim: %v leads role %d with token %d", l.Session(), role, token)
			}
		}
		if leader >= 0 && w.led[leader*w.c.roles+role] <= w.ended[role] {
			return fmt.Sprintf("token led again: %v leads role %d with token %d", w.procs[leader].Session(), role, w.led[leader*w.c.roles+role])
		}
	}
	return ""
}

// modelStep receives one possible step: what happens, the state that it leads to, and a fault if
// there is one.
type modelStep func(what func() string, to *modelWorld, fault string)

// Steps calls step for everything that may happen.
func (w *modelWorld) Steps(step func(what func() string, to *modelWorld, fault string)) {
	for i := range w.procs {
		w.stepsOf(i, step)
	}
	for k, r := range w.flight {
		for double := range min(2, 1+w.c.doubles-w.doubles) {
			n := w.next(-1)
			n.append(r)
			if n.doubles += double; double == 0 {
				n.flight = slices.Delete(slices.Clone(w.flight), k, k+1)
			}
			step(func() string { return fmt.Sprintf("log %d = %s", len(w.log), simText(&simEntry{r: r})) }, n, "")
		}
	}
	if w.newers < w.c.newer {
		n := w.next(-1)
		n.newers++
		n.append(nil)
		step(func() string { return fmt.Sprintf("log %d = a record of a newer version", len(w.log)) }, n, "")
	}
	n := w.next(-1)
	n.ticks++
	step(func() string { return "time passes" }, n, "")
}

// stepsOf calls step for everything that process i may do, and that may happen to it.
func (w *modelWorld) stepsOf(i int, step modelStep) {
	l := w.procs[i]
	name := func(what string) func() string {
		return func() string { return fmt.Sprintf("%v %s", l.Session(), what) }
	}
	if o := l.Offset() + 1; o < int64(len(w.log)) {
		n := w.next(i)
		fault := n.read(i)
		step(name(fmt.Sprintf("reads %d", o)), n, fault)
	}
	act := func(do func(*Lease, clock.Instant) []Record) { w.act(i, step, do) }
	switch room := w.sent < w.c.records && len(w.flight) < w.c.flight; {
	case l.Lapsed(w.now()):
		act(func(l *Lease, now clock.Instant) []Record { return l.Lapse(now) })
	case room:
		w.sends(l, act)
	}
	if len(l.own.claims) > 0 {
		n := w.next(i)
		n.procs[i].GiveUpClaims(n.now())
		step(name("gives up its Claims"), n, "")
	}
	for off := 0; w.begins < w.c.begins && off <= len(w.log); off++ {
		n := w.next(i)
		n.begins++
		n.procs[i].Begin(int64(off), len(w.log) == 0, n.now())
		step(name(fmt.Sprintf("begins at %d", off)), n, "")
	}
}

// sends calls act for everything that a process may send.
func (w *modelWorld) sends(l *Lease, act func(func(*Lease, clock.Instant) []Record)) {
	one := func(r Record, ok bool) []Record {
		if !ok {
			return nil
		}
		return []Record{r}
	}
	act(func(l *Lease, now clock.Instant) []Record { return one(l.Beat(now)) })
	if w.c.origin && !l.Known() {
		act(func(l *Lease, now clock.Instant) []Record { return []Record{l.Word(Hello, now)} })
	}
	for role := range int32(w.c.roles) {
		if _, mine := l.Mine(role); mine {
			act(func(l *Lease, now clock.Instant) []Record {
				l.Forget([]int32{role})
				return l.Release([]int32{role}, now)
			})
		}
	}
	if l.Owing() {
		act(func(l *Lease, now clock.Instant) []Record { return l.Unreleased(now) })
	}
	if w.c.snapshots {
		act(func(l *Lease, now clock.Instant) []Record { return l.Snapshot(now) })
	}
	for set := 1; set < 1<<w.c.roles; set++ {
		var roles []int32
		for role := range int32(w.c.roles) {
			if set>>role&1 != 0 {
				roles = append(roles, role)
			}
		}
		act(func(l *Lease, now clock.Instant) []Record {
			for _, role := range roles {
				if !l.MayClaim(role, now) {
					return nil
				}
			}
			return one(l.Claim(roles, now))
		})
	}
}

// act lets process i do something. What it sends is then in flight, or lost if there is no room.
func (w *modelWorld) act(i int, step modelStep, do func(*Lease, clock.Instant) []Record) {
	n := w.next(i)
	id := n.procs[i].Session()
	out := do(n.procs[i], n.now())
	if len(out) == 0 && n.procs[i].Session() == id {
		return
	}
	fault, room := "", n.sent+len(out) <= w.c.records && len(n.flight)+len(out) <= w.c.flight
	for k := range out {
		r := &out[k]
		if r.State != nil {
			want := uint64(0)
			if r.Read >= 0 {
				want = w.hist[r.Read]
			}
			if f, ok := r.State.fold(n.now()); !ok || f.hash != want {
				fault = fmt.Sprintf("Snapshot lies: %v at read %d", id, r.Read)
			}
		}
		if room {
			n.flight = append(n.flight, r)
			n.sent++
		}
	}
	step(func() string {
		var s []string
		for k := range out {
			s = append(s, simText(&simEntry{r: &out[k]}))
		}
		lost := ""
		if !room {
			lost = ", which is lost"
		}
		return fmt.Sprintf("%v sends %s%s", id, strings.Join(s, " and "), lost)
	}, n, fault)
}

// Views describes what each process believes.
func (w *modelWorld) Views() string {
	var b strings.Builder
	for _, l := range w.procs {
		fmt.Fprintf(&b, "        %v has read %d", l.Session(), l.Offset())
		if !l.Known() {
			fmt.Fprintf(&b, ", unknown since %d, busy %d", l.join.from, l.join.busy)
		}
		for role := range int32(w.c.roles) {
			if h := l.fold.holderOf(role); h != nil {
				fmt.Fprintf(&b, ", role %d is %v's by token %d (last %d)", role, h.Session, l.fold.tokens[role], h.Last)
			}
			if _, leads := l.Leads(role, w.now()); leads {
				fmt.Fprintf(&b, " LEADS %d", role)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
