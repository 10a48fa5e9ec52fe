package quorum

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// The model is the Lease that ships, with two processes and one role on one or three logs, and a
// clock that ticks. Everything may happen at any time, and the search visits all of it
// (internal/explore). The policy plays no part: a process that may claim claims, or does not.
//
// A tick is half of what a claimant waits: a lease is led for up to one tick after its newest
// evidence was sent, and may be claimed after two.

const modelT = time.Second

var modelTick = (clock.Wait(modelT, 0) + 1) / 2

// modelStart is the state in which a world begins.
type modelStart int

const (
	cold   modelStart = iota // nobody knows any log, and everybody has waited long enough to claim
	held                     // a leads on all logs; b has read everything
	joined                   // a leads on all logs; b began to read after its Claims
)

// modelRule is the rule by which a Claim counts.
type modelRule int

const (
	theRule     modelRule = iota
	exceeds               // a Claim that is not fresh must exceed all ballots in the log; none is raised at read-back
	exceedsToo            // a fresh Claim must exceed those that its reader has read, too
	imageServes           // theRule; but a log may come back with an old part of its records and the same id
)

// modelConfig bounds a world.
type modelConfig struct {
	name      string
	logs      int
	start     modelStart
	records   int // how many are made
	flight    int // how many are in flight at a time
	forgets   int // how often a log restarts empty
	snapshots bool
	tops      bool             // logs report the largest ballot appended to them
	walls     [2]time.Duration // how far each process's wall clock is ahead
	leaders   bool             // only leaders are checked, not tokens: the wall clocks are too far apart for these

	rule modelRule
}

// modelLog is a log, in its present incarnation.
type modelLog struct {
	id      int
	records []*lease.Record
}

// modelPlace is a process's position in a log.
type modelPlace struct {
	id         int             // the incarnation's
	from, next int             // where reading began, and the next offset
	late       []*lease.Record // all records of an incarnation that is gone: answers with them may be in flight
}

type modelOut struct {
	log int
	r   *lease.Record
}

// modelWorld is one state. What its pointers refer to is shared with other states and never
// written to: a process is copied before it does anything.
type modelWorld struct {
	c      *modelConfig
	procs  []*Lease
	ticks  int
	logs   []modelLog
	at     []modelPlace // by process, then log
	flight []modelOut
	gone   []*lease.Record // records that an image lacks

	sent, forgot  int
	led           []int64 // by process: the token it leads by
	newest, ended int64   // the largest token led; the largest whose term is over
	last          int     // the process that led last
}

func newModelWorld(c *modelConfig) *modelWorld {
	w := &modelWorld{c: c, logs: make([]modelLog, c.logs), at: make([]modelPlace, 2*c.logs), led: make([]int64, 2), last: -1}
	for i := range 2 {
		q := New(Rules{Logs: c.logs, Process: string(rune('a' + i)), T: modelT, History: 1,
			Random: func(time.Duration) time.Duration { return 0 }})
		q.Want(1, func(int32) bool { return true })
		w.procs = append(w.procs, q)
		for log := range c.logs {
			w.begin(i, log, 0)
		}
	}
	w.ticks = 2
	if c.start == cold {
		return w
	}
	for log := range c.logs {
		for _, o := range w.procs[0].claim(w.only(log), w.now(0)) {
			w.logs[log].records = append(w.logs[log].records, &o.Record)
		}
		w.read(0, log)
		if c.start == joined {
			w.begin(1, log, 1)
		} else {
			w.read(1, log)
		}
	}
	return w
}

// now returns the clock readings of a process. All clocks run at the true rate.
func (w *modelWorld) now(i int) clock.Instant {
	now := clock.Alike(time.Hour + time.Duration(w.ticks)*modelTick)
	now.Wall = now.Wall.Add(w.c.walls[i])
	return now
}

func (w *modelWorld) place(i, log int) *modelPlace { return &w.at[i*w.c.logs+log] }

// only returns the role as the one to claim on one log.
func (w *modelWorld) only(log int) [][]int32 {
	lists := make([][]int32, w.c.logs)
	lists[log] = []int32{0}
	return lists
}

const allLogs = -1

// next returns a copy of w in which process i may do something with one log, or all of them; no
// process if i < 0.
func (w *modelWorld) next(i, log int) *modelWorld {
	n := *w
	n.logs, n.at, n.led = slices.Clone(w.logs), slices.Clone(w.at), slices.Clone(w.led)
	n.flight = slices.Clip(w.flight)
	if i >= 0 {
		n.procs = slices.Clone(w.procs)
		n.procs[i] = copyOf(w.procs[i], log)
	}
	return &n
}

// copyOf copies a Lease and the lease of one log, or of all. It leaves out what only the policy
// looks at.
func copyOf(q *Lease, log int) *Lease {
	c := *q
	c.logs = slices.Clone(q.logs)
	for i, v := range q.logs {
		view := *v
		view.over = nil
		if log == allLogs || i == log {
			view.lease = copyLease(v.lease)
		}
		c.logs[i] = &view
	}
	c.units = slices.Clone(q.units)
	c.policy = policy{trip: q.policy.trip}
	c.groups, c.byKind = nil, map[kind]*group{}
	for role := range c.units {
		u := &c.units[role]
		u.looked = false
		if u.mine != 0 {
			u.place = 0 // there is one role, alone in its group
			g := &group{kind: u.kind(), roles: []int32{int32(role)}}
			c.groups, c.byKind[g.kind] = append(c.groups, g), g
		}
	}
	return &c
}

// begin lets process i begin to read the present incarnation of a log.
func (w *modelWorld) begin(i, log, from int) {
	l, top := w.logs[log], int64(0)
	if w.c.tops {
		top = largest(l.records)
	}
	w.procs[i].Begin(log, int64(from), int64(len(l.records)), top, w.now(i))
	*w.place(i, log) = modelPlace{id: l.id, from: from, next: from}
}

func largest(records []*lease.Record) int64 {
	b := int64(0)
	for _, r := range records {
		b = max(b, r.Ballot)
	}
	return b
}

// behind returns the records that process i reads of an incarnation, from its start position to
// the end.
func (w *modelWorld) behind(i, log int) []*lease.Record {
	if at := w.place(i, log); at.id != w.logs[log].id {
		return at.late
	}
	return w.logs[log].records
}

// read lets process i read its next record of a log.
func (w *modelWorld) read(i, log int) (fault string) {
	q, at, all := w.procs[i], w.place(i, log), w.behind(i, log)
	o := at.next
	at.next++
	r := all[o]
	before := *q
	term, _, _ := q.Term(0)
	ev := q.Read(log, int64(o), w.judged(r, all[:o], at.from), w.now(i))
	if (ev.Rewound || ev.Differs) && w.c.rule != imageServes && w.c.rule != exceedsToo { // under those rules, folds that differ show up here
		return fmt.Sprintf("alarm in a sound log: %v at offset %d of log %d", q.Log(log).Session(), o, log)
	}
	if ev.Won && (w.c.rule == exceeds || w.c.rule == exceedsToo) {
		if q.bal = before.bal; term != 0 { // unless it was raised because the term has ended
			if now, _, _ := q.Term(0); now != term {
				q.lift(term + 1)
			}
		}
		q.settle(w.now(i))
	}
	return ""
}

// judged returns a record as a reader takes it who judges Claims by another rule. A Claim that
// does not count is still evidence.
func (w *modelWorld) judged(r *lease.Record, before []*lease.Record, from int) *lease.Record {
	must := int64(0)
	switch {
	case r.Kind != lease.Claim:
	case w.c.rule == exceeds && !r.Fresh:
		must = largest(before)
	case w.c.rule == exceedsToo:
		must = largest(before[min(from, len(before)):])
	}
	if must == 0 || r.Ballot > must {
		return r
	}
	void := *r
	void.Roles, void.Fresh = nil, false
	return &void
}

// Look checks that the present leaders may lead.
func (w *modelWorld) Look() (fault string) {
	leader := -1
	for i, q := range w.procs {
		token, leads := q.Leads(0, w.now(i))
		if !leads {
			token = 0
		}
		was := w.led[i]
		w.led[i] = token
		if was != 0 && was != token {
			w.ended = max(w.ended, was)
		}
		_, line, term := q.Term(0)
		if young := term && lease.Young(w.now(i), q.V(line), modelT); young != leads {
			return fmt.Sprintf("the bound is not the rule: %c leads %v, and its bound is young: %v", 'a'+i, leads, young)
		}
		if !leads {
			continue
		}
		if leader >= 0 {
			return fmt.Sprintf("two leaders: with token %d and with token %d", w.led[leader], token)
		}
		leader = i
		if fault := w.token(i, token, was != token); fault != "" && !w.c.leaders {
			return fault
		}
	}
	for log := range w.logs {
		_, a := w.procs[0].Log(log).Leads(0, w.now(0))
		if _, b := w.procs[1].Log(log).Leads(0, w.now(1)); a && b {
			return fmt.Sprintf("two holders of log %d", log)
		}
	}
	return ""
}

// token checks the token by which process i leads.
func (w *modelWorld) token(i int, token int64, begun bool) (fault string) {
	switch {
	case begun && token == w.newest && token <= w.ended && w.last == i:
		fault = fmt.Sprintf("token led again: %c leads with token %d, whose term had ended", 'a'+i, token)
	case token < w.newest || begun && token == w.newest:
		fault = fmt.Sprintf("token went back: %c leads with token %d after %d", 'a'+i, token, w.newest)
	}
	w.newest, w.last = max(w.newest, token), i
	return fault
}

// Views describes what each process believes.
func (w *modelWorld) Views() string {
	var b strings.Builder
	for i, q := range w.procs {
		fmt.Fprintf(&b, "        %c has ballot %d, has seen %d", 'a'+i, q.bal, q.seen)
		for log := range w.logs {
			at, l := w.place(i, log), q.Log(log)
			fmt.Fprintf(&b, "; log %d.%d up to %d, known %v", log, at.id, at.next, l.Known())
			if h, held := l.HolderOf(0); held {
				fmt.Fprintf(&b, ", %v's (back %d)", h.Session, q.logs[log].back)
			}
		}
		if token, leads := q.Leads(0, w.now(i)); leads {
			fmt.Fprintf(&b, " LEADS with %d", token)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
