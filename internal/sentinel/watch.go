package sentinel

import (
	"errors"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/lease"
)

const (
	// history is K of package elector, about the largest number of records between two Snapshots.
	history = elector.History
	// warmEvery is how often a Hello keeps the producer warm.
	warmEvery = time.Minute
	// lookEvery bounds the time between two calls of Tick.
	lookEvery = 10 * time.Second
	// minAsk is the first pause between two Hellos that ask for a Snapshot. It doubles up to warmEvery.
	minAsk = time.Second
)

// Rules configure a Watch.
type Rules struct {
	Process string // the sentinel's own process id, random; it never holds a role
	Name    string // for people
	Group   string
	Small   bool          // small logs: all members of the group have the same T and Rho
	T       time.Duration // T of the member that registered first; on small logs, of all members
	Rho     float64
	Random  func(time.Duration) time.Duration // in [0, d)
}

// Watch decides what a sentinel appends to the logs of one group. It does no I/O: records, deaths and
// times go in, and records to append come out (Ready). It is not safe for concurrent use.
type Watch struct {
	rules Rules
	codec lease.Codec
	logs  []*channel
	dead  map[string]*death
	order []string // of dead, oldest first
	seen  int64    // the largest ballot read so far
	ready Ready
}

// death is a remembered death.
type death struct {
	Death
	at clock.Mono // when it was noted
}

// channel is the state of a Watch for one log.
type channel struct {
	index int
	id    string // the incarnation of a small log
	lease *lease.Lease
	begun bool
	end   int64 // the end of the log when reading began

	helloAt    clock.Mono           // when the next own Hello is due
	pause      time.Duration        // from that Hello to the one after it
	sent       map[int64]clock.Mono // by token: when its Release was last sent
	lookAt     clock.Mono           // when to look for roles of the dead again
	parting    []string             // dead processes whose goodbye is still to be sent
	releasing  int                  // Releases that were neither acknowledged nor reported as failed
	snapshotAt clock.Mono           // when a Snapshot is due; 0: none is
	unclaimed  clock.Mono           // when a role was last released and not claimed since; 0: no such role
	patience   time.Duration        // T/20 of the dead process that had held that role
}

// Ready tells the caller of a Watch what to do.
type Ready struct {
	Append []elector.Append
	Noted  []Noted
	Verify bool          // check whether the log was replaced by another one
	WakeIn time.Duration // call Tick after that, unless something happens before
}

// Noted is a line for the logger: the number of a dead process's roles that were released.
type Noted struct {
	Death
	Partition int
	Roles     int
}

// NewWatch returns an empty Watch. Open must be called before Read.
func NewWatch(rules Rules) *Watch { return &Watch{rules: rules, dead: map[string]*death{}} }

// Open tells the Watch how many logs there are, and their identity.
func (w *Watch) Open(logs int, id string, now clock.Instant) {
	w.codec = lease.Codec{Group: w.rules.Group, Log: id}
	rules := lease.Rules{Process: w.rules.Process, Name: w.rules.Name, T: w.rules.T, Rho: w.rules.Rho, History: history}
	if w.rules.Small {
		rules.Longest, rules.Dense = w.rules.T, true
	}
	for i := range logs {
		c := &channel{index: i, lease: lease.New(rules), sent: map[int64]clock.Mono{}, lookAt: clock.Never}
		c.lease.Begin(0, false, now) // until the first reset says where the log begins
		c.parting = slices.Clone(w.order)
		w.logs = append(w.logs, c)
	}
}

// Codec returns the codec for records of the group in the incarnation id of a small log. An empty id
// stands for the logs that Open was told of.
func (w *Watch) Codec(id string) lease.Codec {
	return w.codec.Of(id)
}

// Died notes a death. The caller has proof of it. Noting the same death twice has no effect.
func (w *Watch) Died(d Death, now clock.Instant) {
	if w.dead[d.Process] != nil {
		return
	}
	if len(w.order) >= MaxMembers {
		w.forget(w.order[0])
	}
	w.dead[d.Process] = &death{Death: d, at: now.Mono}
	w.order = append(w.order, d.Process)
	for _, c := range w.logs {
		c.parting = append(c.parting, d.Process)
		c.lookAt = now.Mono
	}
	w.Tick(now)
}

func (w *Watch) forget(process string) {
	delete(w.dead, process)
	w.order = slices.DeleteFunc(w.order, func(id string) bool { return id == process })
}

// Idle reports whether no dead process is remembered.
func (w *Watch) Idle() bool { return len(w.dead) == 0 }

// Read takes an entry of a log: a reset, or a record that the caller has decoded. bad is the error if
// that failed. The caller reads now after it has received the entry.
func (w *Watch) Read(e elector.Entry, r *lease.Record, bad error, now clock.Instant) {
	c := w.logs[e.Partition]
	switch {
	case e.Reset:
		c.id = e.ID
		w.seen = max(w.seen, min(e.Top, lease.MaxBallot))
		c.lease.Begin(e.Offset, e.Whole && !w.rules.Small, now)
		c.reset(e.End, now)
	case e.ID != c.id || e.Alive:
		return // a late entry of a former incarnation, or only a sign that the log is alive
	default:
		w.consume(c, e, r, bad, now)
	}
	w.step(c, now)
}

// reset forgets all conclusions from a log whose reading begins again.
func (c *channel) reset(end int64, now clock.Instant) {
	*c = channel{index: c.index, id: c.id, lease: c.lease, begun: true, end: end, helloAt: now.Mono, pause: minAsk,
		sent: map[int64]clock.Mono{}, lookAt: clock.Never, parting: c.parting, releasing: c.releasing}
}

// consume folds a record and reacts to it.
func (w *Watch) consume(c *channel, e elector.Entry, r *lease.Record, bad error, now clock.Instant) {
	var ev lease.Event
	switch {
	case bad == nil:
		w.seen = max(w.seen, r.Ballot)
		ev = c.lease.Read(e.Offset, r, now)
	case errors.Is(bad, lease.ErrNewer):
		if r != nil {
			w.seen = max(w.seen, r.Ballot)
		}
		ev = c.lease.ReadNewer(e.Offset, now)
	default:
		ev = c.lease.Skip(e.Offset, now)
	}
	if ev.Rewound {
		w.ready.Verify = true
		c.reset(e.Offset+1, now)
		return
	}
	if ev.Known || len(ev.Changed) > 0 {
		c.lookAt = now.Mono
	}
	if bad == nil {
		w.listen(c, e.Offset, r, ev, now)
	}
}

// listen decides by a record when a Snapshot is due. Records without effect on the lease count, too.
func (w *Watch) listen(c *channel, o int64, r *lease.Record, ev lease.Event, now clock.Instant) {
	switch r.Kind {
	case lease.Snapshot:
		c.snapshotAt = 0
		c.unclaimed = 0
	case lease.Hello:
		if o >= c.end && r.Longest == lease.Unsaid && r.Session.Process != w.rules.Process && c.lease.Known() && c.snapshotAt == 0 {
			c.snapshotAt = now.Mono.Add(1 + w.rules.Random(w.rules.T/20+1))
		}
	case lease.Claim:
		c.unclaimed = 0
	case lease.Release:
		if d := w.dead[r.Session.Process]; d != nil && len(ev.Changed) > 0 {
			c.unclaimed, c.patience = now.Mono, d.T/20
		}
	case lease.Beat, lease.Ping, lease.Pong:
	}
}

// Acked takes the outcome of an append. With an error the record may or may not be in the log.
func (w *Watch) Acked(a elector.Append, err error, now clock.Instant) {
	c, r := w.logs[a.Partition], &a.Record
	switch {
	case r.Kind == lease.Release:
		c.releasing--
	case r.Kind == lease.Hello && err != nil:
		if d := w.dead[r.Session.Process]; d != nil { // the others may still count the dead process as a member
			c.parting = append(c.parting, d.Process)
			c.lookAt = min(c.lookAt, now.Mono.Add(d.T/4))
		}
	}
	w.step(c, now)
}

// Tick does what is due by now.
func (w *Watch) Tick(now clock.Instant) {
	for len(w.order) > 0 {
		if d := w.dead[w.order[0]]; now.Mono.Sub(d.at) < remember(d.T) {
			break
		}
		w.forget(w.order[0])
	}
	for _, c := range w.logs {
		w.step(c, now)
	}
}

// step does what is due in one log.
func (w *Watch) step(c *channel, now clock.Instant) {
	if !c.begun {
		return
	}
	w.hello(c, now)
	if c.lease.Known() && now.Mono >= c.lookAt {
		c.lookAt = clock.Never
		w.part(c, now)
		w.release(c, now)
	}
	w.snapshot(c, now)
}

// hello sends the sentinel's own Hello when it is due: to ask for a Snapshot while the fold is unknown,
// and afterwards to keep the producer warm.
func (w *Watch) hello(c *channel, now clock.Instant) {
	if now.Mono < c.helloAt {
		return
	}
	if c.lease.Known() {
		c.pause = warmEvery
	}
	c.helloAt = now.Mono.Add(c.pause)
	c.pause = min(2*c.pause, warmEvery)
	r := c.lease.Word(lease.Hello, now)
	r.Hello = &lease.Announcement{Wants: []int{}, Leaving: true} // so that nobody counts the sentinel as a member
	w.append(c, r)
}

// part says goodbye in one log for dead processes: the others then leave no roles to them.
func (w *Watch) part(c *channel, now clock.Instant) {
	parting := c.parting
	c.parting = nil
	for _, process := range parting {
		if d := w.dead[process]; d != nil {
			w.append(c, c.lease.Farewell(d.Process, d.Name, now))
		}
	}
}

// release releases the roles that dead processes hold by the fold, and sets when to look again. It
// repeats no Release while others are under way: they would pile up in a log that stands still.
func (w *Watch) release(c *channel, now clock.Instant) {
	sent := map[int64]clock.Mono{} // c.sent without the tokens that the fold no longer shows
	for h := range c.lease.Holders() {
		d := w.dead[h.Session.Process]
		if d == nil {
			continue
		}
		var due []int32
		for _, role := range c.lease.RolesOf(h.Session) {
			g, ok := c.lease.Holder(role)
			if !ok {
				continue
			}
			at := g.Since.Mono.Add(d.T) // not before the term is T old
			was, again := c.sent[g.Token]
			if again {
				sent[g.Token] = was
				at = max(at, was.Add(d.T/4))
			}
			switch {
			case now.Mono < at:
				c.lookAt = min(c.lookAt, at)
			case again && c.releasing > 0:
				c.lookAt = min(c.lookAt, now.Mono.Add(d.T/4))
			default:
				due = append(due, role)
			}
		}
		if len(due) > 0 {
			w.giveBack(c, d, h.Session, due, sent, now)
		}
	}
	c.sent = sent
}

// giveBack appends the Releases of roles that a session of a dead process holds.
func (w *Watch) giveBack(c *channel, d *death, id lease.Session, roles []int32, sent map[int64]clock.Mono, now clock.Instant) {
	records := c.lease.ReleaseOf(id, roles, now)
	for _, r := range records {
		for _, g := range r.Ended {
			sent[g.Token] = now.Mono
		}
	}
	c.releasing += len(records)
	c.lookAt = min(c.lookAt, now.Mono.Add(d.T/4))
	w.append(c, records...)
	w.ready.Noted = append(w.ready.Noted, Noted{d.Death, c.index, len(roles)})
}

// snapshot appends a Snapshot when one is due: for a process that has asked, or for the next one to
// start where nobody has claimed a released role.
func (w *Watch) snapshot(c *channel, now clock.Instant) {
	if c.unclaimed != 0 && now.Mono >= c.unclaimed.Add(c.patience) {
		c.unclaimed = 0
		c.snapshotAt = now.Mono
	}
	if c.snapshotAt == 0 || now.Mono < c.snapshotAt {
		return
	}
	c.snapshotAt = 0
	w.append(c, c.lease.Snapshot(now)...)
}

// append adds records to Ready. On small logs they carry the largest ballot read so far, because a
// Snapshot must teach it to its readers.
func (w *Watch) append(c *channel, records ...lease.Record) {
	for _, r := range records {
		if w.rules.Small {
			r.Ballot = w.seen
		}
		w.ready.Append = append(w.ready.Append, elector.Append{Partition: c.index, ID: c.id, Record: r})
	}
}

// Ready returns what to do, and forgets it.
func (w *Watch) Ready(now clock.Instant) Ready {
	r := w.ready
	w.ready = Ready{}
	next := now.Mono.Add(lookEvery)
	for _, c := range w.logs {
		if !c.begun {
			continue
		}
		next = min(next, c.helloAt)
		if c.lease.Known() {
			next = min(next, c.lookAt)
		}
		if c.snapshotAt != 0 {
			next = min(next, c.snapshotAt)
		}
		if c.unclaimed != 0 {
			next = min(next, c.unclaimed.Add(c.patience))
		}
	}
	r.WakeIn = max(100*time.Microsecond, next.Sub(now.Mono))
	return r
}
