package elector

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/request"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/placement"
	"github.com/goneli/neli/internal/term"
)

// world is some Nodes and their logs, with a clock of its own: a record is in its log a
// millisecond after it was appended, and is read by all a millisecond later. Nothing is
// random, so that a transcript is the same each time.
type world struct {
	priority  int // of the next member
	weights   *placement.Weights
	now       time.Duration
	queue     []event
	order     int
	logs      [][]lease.Record
	small     bool           // these are small logs: each has all roles
	nominated bool           // a nominator says which processes may claim
	lost      map[int]int    // how often a small log has lost its records
	origins   bool           // processes that read from offset 0 know that it is the log's origin
	began     map[int]string // why logs are not read from their origin all the same
	head      int64          // records before it were deleted: processes that start read from here
	actors    []*actor
	lines     []string
	quiet     map[string]int // Beats and Hellos since the last line
	lag       time.Duration  // how much longer appends take
	drop      func(*lease.Record) bool
	mute      bool                // no lines are kept: with a million roles they would cost more than the Nodes
	step      func(func())        // carries out a step of a Node
	stepped   func(*actor, Ready) // is called after each step of a Node; may be nil
}

type event struct {
	at    time.Duration
	order int
	do    func()
}

// actor is a process of a world.
type actor struct {
	*Node
	w       *world
	table   *term.Table
	set     *Settings
	desired Desired
	dead    bool
	cut     bool            // its records do not arrive
	cutFrom map[int]bool    // logs in which its records do not arrive
	caught  *[]lease.Record // Claims that were not let through
	said    []said          // what it has appended, let through or not
	notes   []Note
	deaf    bool          // nothing is read
	misread *lease.Record // the next record of this kind and name is taken for one that plays no part
	older   bool          // it is of a version that knows no requests, no caps and no offers
	work    time.Duration // how long its application takes to finish
	unasked bool          // its application collects no changes
	tick    int           // the number of the newest wake-up; earlier ones do nothing
	alive   bool
	ends    []request.Outcome
	last    Ready
	backs   int // how often it asked for reading to begin farther back
}

// newer is the kind of a record that only a newer version understands.
const newer = lease.Kind("newer")

// foreign is the kind of a record that names another topic.
const foreign = lease.Kind("foreign")

type said struct {
	at time.Duration
	lease.Record
}

func newWorld(partitions int) *world {
	return &world{logs: make([][]lease.Record, partitions), lost: map[int]int{}, quiet: map[string]int{}, step: func(do func()) { do() }}
}

func (w *world) instant() clock.Instant {
	return clock.Alike(time.Hour + w.now)
}

func (w *world) after(d time.Duration, do func()) {
	w.order++
	w.queue = append(w.queue, event{w.now + d, w.order, do})
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	for end := w.now + d; ; {
		if len(w.queue) == 0 {
			w.now = end
			return
		}
		next := slices.MinFunc(w.queue, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order)) })
		if next.at > end {
			w.now = end
			return
		}
		w.queue = slices.DeleteFunc(w.queue, func(e event) bool { return e.order == next.order })
		w.now = next.at
		next.do()
	}
}

// start adds a process that wants to lead.
func (w *world) start(name string, roles int, change func(*Settings)) *actor {
	set := &Settings{Process: name, Name: name, Group: "g", T: 5 * time.Second, Rho: 0.0005, HeartbeatInterval: time.Second,
		DrainTimeout: 10 * time.Second, SuccessorWait: time.Second, RejoinWait: 2 * time.Second, Rebalance: true,
		Random: func(time.Duration) time.Duration { return 0 }}
	a := &actor{w: w, set: set, alive: true}
	set.Alive = func(clock.Instant) bool { return a.alive }
	if change != nil {
		change(set)
	}
	young := func(now, v clock.Instant) bool { return lease.Young(now, v, set.T) }
	a.table = term.New(young, w.instant)
	a.Node = New(set, a.table)
	w.actors = append(w.actors, a)
	a.desired = Desired{Roles: roles, Weights: w.weights, Priority: w.priority, Contend: true}
	a.Set(a.desired, w.instant())
	a.do(func(now clock.Instant) { a.Open(len(w.logs), "log", now) })
	for p := range w.logs {
		a.begin(p)
	}
	a.do(a.Tick)
	if w.small {
		a.reach()
	}
	return a
}

// reach lets the small logs show a process every T/8 that it can reach them.
func (a *actor) reach() {
	if a.dead {
		return
	}
	for p := range a.w.logs {
		if !a.deaf {
			a.do(func(now clock.Instant) { a.Read(Entry{Partition: p, ID: a.w.id(p), Alive: true}, nil, nil, now) })
		}
	}
	a.w.after(a.set.T/8, a.reach)
}

// begin gives a process a new reader of a log. It reads all records that are there.
func (a *actor) begin(p int) {
	w := a.w
	end := int64(len(w.logs[p]))
	a.do(func(now clock.Instant) {
		a.Read(Entry{Partition: p, ID: w.id(p), Reset: true, Offset: w.head, End: end, Whole: w.head == 0, Origin: w.origin(p), Why: w.began[p]}, nil, nil, now)
	})
	for o := w.head; o < end; o++ {
		a.read(p, o)
	}
}

// origin reports whether a log is read from its origin.
func (w *world) origin(p int) bool { return w.origins && w.head == 0 && w.began[p] == "" }

// id returns the id of a log's incarnation. It is empty until the log has lost its records.
func (w *world) id(p int) string {
	if n := w.lost[p]; n > 0 {
		return fmt.Sprint(n)
	}
	return ""
}

// lose makes a small log lose its records: it gets another id, and all processes read it anew.
func (w *world) lose(p int) {
	w.logs[p] = nil
	w.lost[p]++
	for _, a := range w.actors {
		a.begin(p)
	}
}

// want calls Set.
func (a *actor) want(d Desired) {
	a.desired = d
	a.do(func(now clock.Instant) { a.Set(d, now) })
}

func withoutCaps(h *lease.Announcement) *lease.Announcement {
	if h == nil {
		return nil
	}
	without := *h
	without.Caps, without.MaxRoles, without.Prepares = false, 0, nil
	return &without
}

func (a *actor) read(p int, o int64) {
	if a.dead || a.deaf {
		return
	}
	r := a.w.logs[p][o]
	if a.older {
		r.Request, r.Answer, r.Offer, r.Prepared = nil, nil, nil, nil
		r.Hello = withoutCaps(r.Hello)
	}
	e := Entry{Partition: p, ID: a.w.id(p), Offset: o, Origin: a.w.origin(p), Why: a.w.began[p]}
	if r.Kind == foreign {
		a.do(func(now clock.Instant) { a.Read(e, nil, lease.ErrOtherLog, now) })
		return
	}
	if r.Kind == newer {
		a.do(func(now clock.Instant) { a.Read(e, &lease.Record{}, lease.ErrNewer, now) })
		return
	}
	if m := a.misread; m != nil && m.Kind == r.Kind && m.Name == r.Name {
		a.misread = nil
		a.do(func(now clock.Instant) { a.Read(e, nil, lease.ErrForeign, now) })
		return
	}
	a.do(func(now clock.Instant) { a.Read(e, &r, nil, now) })
}

// do gives the Node an input, and does what it says.
func (a *actor) do(input func(now clock.Instant)) {
	if a.dead {
		return
	}
	w, now := a.w, a.w.instant()
	var r Ready
	w.step(func() {
		input(now)
		r = a.Ready(now)
	})
	a.last = r
	if w.stepped != nil {
		w.stepped(a, r)
	}
	a.backs += len(r.Back)
	a.ends = append(a.ends, r.Outcomes...)
	a.notes = append(a.notes, r.Notes...)
	for _, x := range r.Append {
		w.append(a, x)
	}
	a.tell(now)
	if r.Finished {
		w.say("%s has finished", a.set.Name)
		a.dead = true
		return
	}
	a.tick++
	tick := a.tick
	w.after(r.WakeIn, func() {
		if tick == a.tick {
			a.do(a.Tick)
		}
	})
}

func (w *world) append(a *actor, x Append) {
	p, r := x.Partition, x.Record
	if a.older {
		r.Hello = withoutCaps(r.Hello)
	}
	a.said = append(a.said, said{w.now, r})
	switch {
	case w.mute:
	case r.Kind == lease.Beat || r.Kind == lease.Hello && !r.Hello.Leaving:
		w.quiet[a.set.Name+" "+string(r.Kind)]++
	default:
		w.say("%s: %s", a.set.Name, w.describe(p, &r))
	}
	if a.caught != nil && r.Kind == lease.Claim {
		*a.caught = append(*a.caught, r)
		return
	}
	if a.cut || a.cutFrom[p] {
		return
	}
	if w.drop != nil && w.drop(&r) {
		return
	}
	w.after(time.Millisecond+w.lag, func() {
		if x.ID != w.id(p) {
			a.do(func(now clock.Instant) { a.Acked(x, errors.New("not for this incarnation"), now) })
			return
		}
		o := int64(len(w.logs[p]))
		w.logs[p] = append(w.logs[p], r)
		for _, to := range w.actors {
			w.after(time.Millisecond, func() {
				if x.ID == w.id(p) {
					to.read(p, o)
				}
			})
		}
		w.after(2*time.Millisecond, func() { a.do(func(now clock.Instant) { a.Acked(x, nil, now) }) })
	})
}

// tell delivers what the application is to be told. The application finishes after work.
func (a *actor) tell(now clock.Instant) {
	if a.unasked {
		return
	}
	for _, c := range a.table.Collect(now) {
		if !a.w.mute {
			a.w.say("%s is told: %s %s (%s)", a.set.Name, map[term.Kind]string{term.Acquired: "leads", term.Revoked: "is to give up",
				term.Lost: "has lost", term.Gone: "leads no more"}[c.Kind], list(c.Units), c.Reason)
		}
		switch c.Kind {
		case term.Lost, term.Gone:
			a.Delivered(c.Units)
		case term.Revoked:
			a.w.after(a.work, func() { a.do(func(now clock.Instant) { a.Drained(c.Units, c.ID, now) }) })
		case term.Acquired:
		}
	}
}

// describe says what is in a record, with roles as everybody numbers them.
func (w *world) describe(p int, r *lease.Record) string {
	global := func(local []int32) string {
		var roles []int
		for _, u := range local {
			if w.small {
				roles = append(roles, int(u))
			} else {
				roles = append(roles, p+len(w.logs)*int(u))
			}
		}
		return list(roles)
	}
	s := string(r.Kind)
	switch {
	case r.Kind == lease.Claim && r.Fresh:
		s += " " + global(r.Roles) + ", knowing nothing"
	case r.Kind == lease.Claim:
		s += " " + global(r.Roles)
	case r.Kind == lease.Release:
		for _, g := range r.Ended {
			s += fmt.Sprintf(" %s of token %d", global(g.Roles), g.Token)
		}
	case r.Kind == lease.Snapshot:
		s += fmt.Sprintf(" of %d holders", len(r.State.Holders))
	case r.Kind == lease.Hello:
		s = "bye"
	}
	if r.To != "" {
		s += " for " + r.To
	}
	if len(w.logs) > 1 {
		s += fmt.Sprintf(" in log %d", p)
	}
	return s
}

// list writes ascending numbers as ranges.
func list(ns []int) string {
	var out []string
	for i := 0; i < len(ns); {
		k := i + 1
		for k < len(ns) && ns[k] == ns[k-1]+1 {
			k++
		}
		if k-i > 1 {
			out = append(out, fmt.Sprintf("%d-%d", ns[i], ns[k-1]))
		} else {
			out = append(out, fmt.Sprint(ns[i]))
		}
		i = k
	}
	return strings.Join(out, ",")
}

func (w *world) say(format string, args ...any) {
	w.flush()
	w.lines = append(w.lines, fmt.Sprintf("%7.3f ", w.now.Seconds())+fmt.Sprintf(format, args...))
}

// flush writes how many Beats and Hellos there were.
func (w *world) flush() {
	if len(w.quiet) == 0 {
		return
	}
	var words []string
	for _, who := range slices.Sorted(maps.Keys(w.quiet)) {
		words = append(words, fmt.Sprintf("%d × %s", w.quiet[who], who))
	}
	w.lines = append(w.lines, "        "+strings.Join(words, ", "))
	clear(w.quiet)
}

// take returns the lines so far.
func (w *world) take() string {
	w.flush()
	s := strings.Join(w.lines, "\n")
	w.lines = nil
	if s == "" {
		return ""
	}
	return s + "\n"
}

func (w *world) actor(name string) *actor {
	for _, a := range slices.Backward(w.actors) {
		if a.set.Name == name {
			return a
		}
	}
	panic("no such process: " + name)
}

// leads returns the roles that a process leads, as its application knows.
func (a *actor) leads(roles int) (out []int) {
	for role := range roles {
		if _, _, _, ok := a.table.Leads(role); ok && !a.dead {
			out = append(out, role)
		}
	}
	return out
}

// sent returns the records of a kind that a process has in a log.
func (w *world) sent(p int, process string, k lease.Kind) (out []lease.Record) {
	for _, r := range w.logs[p] {
		if r.Session.Process == process && r.Kind == k {
			out = append(out, r)
		}
	}
	return out
}
