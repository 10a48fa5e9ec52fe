package neli

import (
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A model of the lease, checked exhaustively: every state that a few processes
// and the adversary can reach within the bound of a configuration, with the
// processes' part played by lease.go itself. Time is never bounded, and where
// records has no number, neither is the length of the log nor the number of
// terms: the search ends because it has seen every state there is. What is
// bounded is how many records are under way, how far behind a reader may be, and
// how far back it may start.
//
//	drift     clocks that run at any rates within ρ = 1/3, so the fast at twice the slow
//	faults    appends that happen twice, late, never, or after a reported failure; restarts
//	jump      readers that start and jump anywhere in what is kept of the log; restarts
//	suspend   machines suspended, wall clocks set forward
//	progress  from each state a leader follows, beside members that are deaf or mute
//	recreate  the same after the log was deleted and began anew. Safety is not
//	          checked there: it is excluded, and the topic's identity is what tells
//
// T is two clock units, T′ two, or four with drift; beats fall once a unit at most.
//
// Not in the model: preference delays (a claim may come at any later time), the
// wall clock set back, the reader, the producer and the arbiter around the lease,
// more than three processes.

// What can go wrong.
const (
	faultTwo   = "two leaders"
	faultBack  = "token went back"
	faultAgain = "a token was led again"
	faultAlarm = "alarm in a log that never went back"
	faultStuck = "no leader ever:"
)

// check is the oracle. It sees all clocks at once.
func (w *modelWorld) check() string {
	leaders, fault := 0, ""
	for i := range w.procs {
		l := &w.procs[i].lease
		if !l.holds(w.procs[i].at) {
			continue
		}
		leaders++
		switch {
		case l.mine < w.newest:
			fault = faultBack
		case l.mine == w.newest && w.owner != i:
			fault = faultAgain
		}
		if l.mine > w.newest {
			w.newest, w.owner, w.spent = l.mine, i, false
		}
	}
	switch {
	case w.recreated: // excluded by the design: tokens start again
		return ""
	case leaders > 1:
		return faultTwo
	}
	return fault
}

// released notes that a Release of token k was sent: nobody leads by it any more.
func (w *modelWorld) released(k int64) {
	if k >= w.newest {
		w.newest, w.owner, w.spent = k, -1, true
	}
}

// What must have happened in an exploration, or green means nothing.
var modelFeatures = [...]struct {
	name string
	in   func(w *modelWorld) bool
}{
	{"led", func(w *modelWorld) bool { return w.leader() >= 0 }},
	{"led while another claims", func(w *modelWorld) bool {
		i := w.leader()
		return i >= 0 && slices.ContainsFunc(w.flight, func(r record) bool {
			return r.kind == kindClaim && r.member != w.procs[i].lease.me
		})
	}},
	{"released", func(w *modelWorld) bool { return w.spent }},
	{"lapsed and unaware", func(w *modelWorld) bool {
		return slices.ContainsFunc(w.procs, func(p modelProc) bool { return p.lease.mine != noToken && !p.lease.holds(p.at) })
	}},
	{"led while another believes in an older term", func(w *modelWorld) bool {
		i := w.leader()
		return i >= 0 && slices.ContainsFunc(w.procs, func(p modelProc) bool {
			return p.lease.mine != noToken && p.lease.mine < w.procs[i].lease.mine
		})
	}},
}

const modelFeats = 5

func (w *modelWorld) features(seen *[modelFeats]atomic.Int64) {
	for i, f := range modelFeatures {
		if f.in(w) {
			seen[i].Add(1)
		}
	}
}

func (w *modelWorld) leader() int {
	for i := range w.procs {
		if w.procs[i].lease.holds(w.procs[i].at) {
			return i
		}
	}
	return -1
}

// The configurations. A digit after the name is the number of processes.
var modelConfigs = []modelConfig{
	{name: "drift3", level: levelRace, procs: 3, term: 2, drift: 1.0 / 3, rates: []int{1, 2}, lag: 1, flight: 1},
	{name: "lag3", level: levelCI, procs: 3, term: 2, drift: 1.0 / 3, rates: []int{1, 2}, lag: 2, flight: 1},
	{name: "drift2", level: levelCI, procs: 2, term: 2, drift: 1.0 / 3, rates: []int{1, 2}, lag: 2, flight: 2},
	{name: "clean3", level: levelCI, procs: 3, term: 2, rates: []int{1}, lag: 2, flight: 1},
	{name: "flight3", level: levelCI, procs: 3, term: 2, drift: 1.0 / 3, rates: []int{1, 2}, lag: 1, flight: 2},
	{name: "faults3", level: levelCI, procs: 3, term: 2, rates: []int{1}, lag: 1, flight: 1, fail: true, double: true},
	{name: "faults2", level: levelCI, procs: 2, term: 2, drift: 1.0 / 3, rates: []int{1, 2}, lag: 1, flight: 1, fail: true, double: true, crash: true},
	{name: "jump3", level: levelCI, procs: 3, term: 2, rates: []int{1}, lag: 1, flight: 1, history: 1, crash: true, jump: true},
	{name: "start2", level: levelRace, procs: 2, term: 2, rates: []int{1}, lag: 1, flight: 1, history: 1, crash: true, jump: true},
	{name: "jump2", level: levelCI, procs: 2, term: 2, rates: []int{1}, lag: 2, flight: 1, history: 2, crash: true, jump: true},
	{name: "suspend2", level: levelRace, procs: 2, term: 2, rates: []int{1, 0}, lag: 1, flight: 1, suspend: true},
	{name: "suspend3", level: levelCI, procs: 3, term: 2, rates: []int{1, 0}, lag: 1, flight: 1, suspend: true},
	{name: "progress3", level: levelCI, procs: 3, term: 2, rates: []int{1}, lag: 1, flight: 1, progress: true},
	{name: "progress2", level: levelCI, procs: 2, term: 2, rates: []int{1}, lag: 1, flight: 1, history: 1, fail: true, double: true, jump: true, progress: true},
	{name: "recreate2", level: levelRace, procs: 2, term: 2, rates: []int{1}, records: 1, history: 1, flight: 1, recreate: true, progress: true},

	{name: "deep flight3", level: levelDeep, procs: 3, term: 2, rates: []int{1}, lag: 2, flight: 2},
	{name: "deep faults2", level: levelDeep, procs: 2, term: 2, rates: []int{1}, lag: 2, flight: 1, fail: true, double: true, crash: true},
	{name: "deep jump2", level: levelDeep, procs: 2, term: 2, rates: []int{1}, lag: 2, flight: 2, history: 2, crash: true, jump: true},
	{name: "deep term3", level: levelDeep, procs: 3, term: 3, rates: []int{1}, lag: 2, flight: 1},
	{name: "deep recreate2", level: levelDeep, procs: 2, term: 2, rates: []int{1}, records: 2, history: 2, flight: 1, fail: true, recreate: true, progress: true},
}

const (
	levelRace = iota // with the race detector too
	levelCI
	levelDeep // NELI_MODEL=deep
)

func modelLevel() int {
	switch {
	case os.Getenv("NELI_MODEL") == "deep":
		return levelDeep
	case modelRace:
		return levelRace
	}
	return levelCI
}

func TestModel(t *testing.T) {
	var seen [modelFeats]int64
	all := true
	for _, c := range modelConfigs {
		if c.level > modelLevel() {
			continue
		}
		all = t.Run(c.name, func(t *testing.T) {
			began := time.Now()
			s := modelRun(&c)
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			t.Logf("%d states, %d transitions, depth %d, %.1fs, %d MB", s.states.Load(), s.moves.Load(), s.depth, time.Since(began).Seconds(), m.Sys>>20)
			if s.fault != "" {
				lines, ok := s.transcript()
				require.True(t, ok, "the canonical form merges states that differ:\n%s", strings.Join(lines, "\n"))
				t.Fatalf("%s, after %d actions:\n%s", s.fault, s.depth, strings.Join(lines, "\n"))
			}
			require.False(t, s.full.Load(), "more than %d states", modelLimit)
			for i := range seen {
				seen[i] += s.feats[i].Load()
			}
		}) && all
	}
	if !all || os.Getenv("NELI_MUTANT") != "" {
		return
	}
	for i, f := range modelFeatures {
		t.Logf("%s: %d states", f.name, seen[i])
		require.Greater(t, seen[i], int64(100), "%q hardly ever happened", f.name)
	}
}

// TestCanonicalFormOfModel walks at random through a world with real names and
// offsets. In each of its states exactly the same must be able to happen as in
// the one rebuilt from its canonical form.
func TestCanonicalFormOfModel(t *testing.T) {
	if os.Getenv("NELI_MUTANT") != "" {
		return
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, c := range modelConfigs {
		s := &modelSearch{cfg: &c}
		k := s.worker()
		for range 8 {
			w := newModelWorld(&c, modelRealID())
			for range 60 {
				k.decoder.decode(k.at, slices.Clone(k.coder.encode(w)))
				next := k.successors(w)
				require.Equal(t, modelForms(next), modelForms(k.successors(k.at)), c.name)
				w = next[rnd.IntN(len(next))]
			}
		}
	}
}

func (k *modelWorker) successors(w *modelWorld) (list []*modelWorld) {
	for _, a := range w.actions(nil) {
		n := newModelWorld(k.cfg, modelNewID)
		n.set(w)
		if _, did := n.do(a); did {
			list = append(list, n)
		}
	}
	return list
}

func modelForms(list []*modelWorld) (forms []string) {
	var m modelCoder
	for _, w := range list {
		forms = append(forms, string(m.encode(w)))
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}
