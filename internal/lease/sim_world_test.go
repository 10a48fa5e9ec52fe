package lease

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/seeded"
)

// A simulated world: one log, several processes, an adversary, and an oracle that sees
// everything. Events happen one after the other in true time, drawn from one seed.

// simEntry is a record in the log, or in flight. Processes read it through the wire form.
type simEntry struct {
	value []byte
	err   error   // the error of Decode in version 1
	r     *Record // as both versions decode it; nil: of another group or an unknown version
	newer bool    // of version 2
	epoch int     // of the leader that appended it
	gap   bool    // an offset that no reader sees: a control record, or one that compaction removed
	at    time.Duration
	old   *State // a Snapshot of version 2 has the fold of version 1, too

	wonOld, wonOwn []int32 // roles that it won in the true folds
}

// simPoint is the hashes of the true folds at one offset.
type simPoint struct{ old, own uint64 }

type simWorld struct {
	seeded.World
	pr    simProfile
	codec Codec

	log   []*simEntry
	truth newerFolds
	hist  []simPoint
	low   int64 // offsets below it were deleted
	epoch int   // of the leader now

	incarnation int  // how often the log has lost records
	lossy       bool // the log has lost records

	procs []*simProc

	sentinels []*simSentinel
	dead      map[string]bool // ids of dead processes
	lie       lie             // how the sentinels' proofs of death are wrong

	oracle simOracle
	count  simCount
	tracer *tracer // nil: no trace is written
}

// simCount counts what a simulation has seen.
type simCount struct {
	records, terms, takeovers, mixed                           int
	claims, fresh, bySnapshot, byFresh, byParts, byOrigin      int
	newer, ledOver, bounded, jumps, lapses, skips, gaps, boots int
	deaths, buried, late                                       int
}

func (c *simCount) add(d simCount) {
	c.records, c.terms = c.records+d.records, c.terms+d.terms
	c.takeovers, c.mixed, c.claims, c.fresh = c.takeovers+d.takeovers, c.mixed+d.mixed, c.claims+d.claims, c.fresh+d.fresh
	c.bySnapshot, c.byFresh, c.byParts = c.bySnapshot+d.bySnapshot, c.byFresh+d.byFresh, c.byParts+d.byParts
	c.newer, c.ledOver, c.bounded = c.newer+d.newer, c.ledOver+d.ledOver, c.bounded+d.bounded
	c.jumps, c.lapses, c.skips, c.gaps, c.boots = c.jumps+d.jumps, c.lapses+d.lapses, c.skips+d.skips, c.gaps+d.gaps, c.boots+d.boots
	c.byOrigin += d.byOrigin
	c.deaths, c.buried, c.late = c.deaths+d.deaths, c.buried+d.buried, c.late+d.late
}

func (c simCount) String() string {
	return fmt.Sprintf("%d records, %d terms, %d takeovers (%d of another T), %d claims valid, %d of them fresh; known by Snapshot %d (in parts %d), "+
		"by a fresh Claim %d, by the log's origin %d; bounds taken from longest %d; newer records read %d, led on over them %d; jumps %d, lapses %d, skipped %d, gaps %d, boots %d",
		c.records, c.terms, c.takeovers, c.mixed, c.claims, c.fresh, c.bySnapshot, c.byParts, c.byFresh, c.byOrigin, c.bounded, c.newer, c.ledOver,
		c.jumps, c.lapses, c.skips, c.gaps, c.boots)
}

func newSimWorld(seed uint64, profile func(*rand.Rand) simProfile) *simWorld {
	w := &simWorld{codec: Codec{Group: "g", Log: "log"}, truth: newNewerFolds(), dead: map[string]bool{}}
	w.Begin(seed, 0x1ea5e)
	w.pr = profile(w.R)
	w.T, w.Heavy, w.Limit = w.pr.unit, w.pr.Heavy, w.pr.limit
	w.truth.alone = w.pr.newer == 0
	w.oracle.watch(w)
	for i := range w.pr.procs {
		p := &simProc{w: w, i: i}
		w.procs = append(w.procs, p)
		w.After(w.Span(w.pr.unit/2), p.boot)
		p.faults()
	}
	w.Every(w.pr.remove, func() {
		if n := int64(len(w.log)); n > 0 {
			w.low = max(w.low, w.R.Int64N(n+1))
		}
	})
	w.Every(w.pr.noise, w.disturb)
	w.losses()
	w.startSentinels()
	return w
}

// disturb appends a record that has no effect, or is opaque.
func (w *simWorld) disturb() {
	beat := Record{Kind: Beat, Session: Session{"stranger", 1}, Read: int64(len(w.log)) - 1, Seq: 1, T: time.Second}
	e := &simEntry{}
	switch n := w.R.IntN(6); {
	case n == 0:
		e.value = Codec{"other", "log"}.Encode(&beat)
	case n == 1:
		e.value = Codec{"g", "copy"}.Encode(&beat)
	case n == 2:
		e.value = []byte(`{"neli":1,"group":"g","log":"log","kind":"beat"}`)
	case n == 3:
		e.value = []byte("noise")
	case w.pr.opaque && n == 4:
		e.value, e.newer = []byte(`{"neli":7,"group":"g","log":[],"kind":8}`), true
	case w.pr.opaque:
		e.value, e.newer = []byte(`{"neli":1,"group":"g","log":"log","kind":"vote"}`), true
	default:
		e.gap, e.err = true, errGap
		w.count.gaps++
	}
	w.append(e)
}

var errGap = errors.New("nothing: a gap")

// append puts an entry into the log.
func (w *simWorld) append(e *simEntry) {
	o := int64(len(w.log))
	if e.err == nil && e.r == nil || e.value != nil {
		e = w.decoded(e)
	}
	e.epoch, e.at = w.epoch, w.Now
	before := w.holding()
	w.truth.stepTrue(w, e, o)
	w.buried(e, before)
	w.log = append(w.log, e)
	w.tracer.arrives(e)
	w.hist = append(w.hist, simPoint{w.truth.old.hash, w.truth.own.hash})
	if e.r != nil {
		w.Trace("   log %d = %s", o, simText(e))
	} else {
		w.Trace("   log %d: %v", o, e.err)
	}
	for _, p := range w.procs {
		if p.alive && p.reading {
			inc := p.inc
			w.After(w.Latency(w.pr.Lag), func() { p.poll(inc, o) })
		}
	}
}

// decoded is the entry as its readers see it: they only have its bytes.
func (w *simWorld) decoded(e *simEntry) *simEntry {
	d := &simEntry{value: e.value, old: e.old, newer: e.newer}
	d.r, d.err = w.codec.Decode(d.value)
	if e.newer != errors.Is(d.err, ErrNewer) {
		w.Note("%s decodes as %v", d.value, d.err)
	}
	if e.newer && e.r != nil { // version 2 is version 1 with another number
		v1 := append([]byte(nil), d.value...)
		v1[len(`{"neli":`)] = '1'
		var err error
		if d.r, err = w.codec.Decode(v1); err != nil {
			w.Note("%s decodes as %v", v1, err)
		}
	}
	return d
}

// encode puts a record into its wire form, and checks that nothing is lost.
func (w *simWorld) encode(r *Record, newer bool) *simEntry {
	e := &simEntry{value: w.codec.Encode(r), newer: newer, r: r}
	if len(e.value) > MaxRecord {
		w.Note("a record of %d bytes: %.200s", len(e.value), e.value)
	}
	got, err := w.codec.Decode(e.value)
	want := *r
	if r.Kind == Beat || r.Kind == Release {
		want.Name = "" // readers know it from the Claim
	}
	if err != nil || !reflect.DeepEqual(got, &want) {
		w.Note("record changed by its encoding (%v):\n%+v\n%+v", err, r, got)
	}
	if newer {
		e.value[len(`{"neli":`)] = '2'
	}
	return e
}

// simText describes a record.
func simText(e *simEntry) string {
	r := e.r
	if r == nil {
		return fmt.Sprintf("%s (%v)", e.value, e.err)
	}
	s := fmt.Sprintf("%s of %s/%d #%d read %d", r.Kind, r.Session.Process, r.Session.N, r.Seq, r.Read)
	if e.newer {
		s = "v2 " + s
	}
	if r.Longest != Unsaid {
		s += fmt.Sprintf(" longest %v", r.Longest)
	}
	if r.T != 0 {
		s += fmt.Sprintf(" T %v", r.T)
	}
	if r.Fresh {
		s += " fresh"
	}
	if len(r.Roles) > 0 {
		s += " roles " + packRoles(r.Roles)
	}
	for _, g := range r.Ended {
		s += fmt.Sprintf(" ends %s of token %d", packRoles(g.Roles), g.Token)
	}
	if r.State != nil {
		s += fmt.Sprintf(" %s", stateText(r.State))
	}
	return s
}

func stateText(s *State) string {
	out := fmt.Sprintf("part %d of %d hash %x newer %d:", s.Part, s.Parts, s.Hash, s.Newer)
	for i, h := range s.Holders {
		out += fmt.Sprintf(" %s/%d %q T %v last %d:", h.Session.Process, h.Session.N, h.Name, h.T, h.Last)
		for _, g := range s.Grants {
			if int(g.Holder) == i {
				out += fmt.Sprintf(" %s of token %d", packRoles(g.Roles), g.Token)
			}
		}
	}
	return out
}

// longAgo is a missing stamp.
var longAgo = clock.Instant{}
