package neli

import (
	"fmt"
	"hash/maphash"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

// The search is breadth first, so a counterexample is as short as it can be. A
// state is remembered by 64 bits of a hash whose seed is another in every
// process: n states collide at odds of n²/2⁶⁵, 1 in 400,000 for ten million, and
// what one run might miss the next one sees.

// modelLimit is a safety net: more states than that take more than 4 GB, and are
// a fault of the configuration.
const modelLimit = 80e6

// modelSet holds the hash of every state seen, and of the state it came from.
type modelSet struct {
	shards [256]struct {
		sync.Mutex
		slots []modelSlot
		n     int
	}
}

type modelSlot struct{ hash, parent uint64 }

// add reports whether hash is new.
func (s *modelSet) add(hash, parent uint64) bool {
	sh := &s.shards[hash>>56]
	sh.Lock()
	defer sh.Unlock()
	if sh.n*3 >= len(sh.slots)*2 {
		old := sh.slots
		sh.slots = make([]modelSlot, max(64, len(old)*2))
		for _, e := range old {
			if e.hash != 0 {
				*modelFind(sh.slots, e.hash) = e
			}
		}
	}
	e := modelFind(sh.slots, hash)
	if e.hash != 0 {
		return false
	}
	*e = modelSlot{hash, parent}
	sh.n++
	return true
}

func (s *modelSet) parent(hash uint64) uint64 {
	return modelFind(s.shards[hash>>56].slots, hash).parent
}

func modelFind(slots []modelSlot, hash uint64) *modelSlot {
	mask := uint64(len(slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		if slots[i].hash == 0 || slots[i].hash == hash {
			return &slots[i]
		}
	}
}

// modelSearch is one exhaustive exploration.
type modelSearch struct {
	cfg    *modelConfig
	seed   maphash.Seed
	seen   modelSet
	states atomic.Int64
	moves  atomic.Int64
	depth  int
	full   atomic.Bool // the safety net caught it

	mu    sync.Mutex
	next  [][]byte // the frontier: batches of states, each with its length before it
	fault string
	state uint64 // where it went wrong
	from  uint64
	act   modelAction
	feats [modelFeats]atomic.Int64
}

// modelWorker explores states; there is one for each core.
type modelWorker struct {
	*modelSearch
	coder     modelCoder
	decoder   modelDecoder
	at, trial *modelWorld
	fair      *modelFair
	list      []modelAction
	batch     []byte
}

func (s *modelSearch) worker() *modelWorker {
	k := &modelWorker{modelSearch: s, at: newModelWorld(s.cfg, modelNewID), trial: newModelWorld(s.cfg, modelNewID)}
	if s.cfg.progress {
		k.fair = newModelFair(s.cfg)
	}
	return k
}

// modelRun explores everything that c allows, until something is wrong.
func modelRun(c *modelConfig) *modelSearch {
	s := &modelSearch{cfg: c, seed: maphash.MakeSeed()}
	workers := make([]*modelWorker, runtime.GOMAXPROCS(0))
	for i := range workers {
		workers[i] = s.worker()
	}
	k := workers[0]
	k.found(newModelWorld(c, modelNewID), 0, modelAction{}, "")
	k.flush()
	for s.fault == "" && !s.full.Load() && len(s.next) > 0 {
		now := s.next
		s.next = nil
		var taken atomic.Int64
		var wg sync.WaitGroup
		for _, k := range workers {
			wg.Go(func() {
				for {
					n := int(taken.Add(1)) - 1
					if n >= len(now) || s.full.Load() {
						break
					}
					k.expand(now[n])
					now[n] = nil
				}
				k.flush()
			})
		}
		wg.Wait()
		s.depth++
	}
	return s
}

// hash is never 0.
func (s *modelSearch) hash(state []byte) uint64 { return max(1, maphash.Bytes(s.seed, state)) }

func (k *modelWorker) flush() {
	if len(k.batch) > 0 {
		k.mu.Lock()
		k.next = append(k.next, k.batch)
		k.mu.Unlock()
		k.batch = nil
	}
}

func (k *modelWorker) expand(batch []byte) {
	moves := int64(0)
	for len(batch) > 0 {
		n := int(batch[0])
		state := batch[1 : 1+n]
		batch = batch[1+n:]
		h := k.hash(state)
		k.decoder.decode(k.at, state)
		k.list = k.at.actions(k.list[:0])
		for _, a := range k.list {
			k.trial.set(k.at)
			fault, did := k.trial.do(a)
			if !did {
				continue
			}
			moves++
			k.found(k.trial, h, a, fault)
		}
	}
	k.moves.Add(moves)
}

// found takes note of a state.
func (k *modelWorker) found(w *modelWorld, from uint64, a modelAction, fault string) {
	state := k.coder.encode(w)
	if len(state) > 255 {
		panic("neli: a state of the model is too large")
	}
	h := k.hash(state)
	if fault != "" {
		k.report(fault, from, h, a)
		return
	}
	if !k.seen.add(h, from) {
		return
	}
	k.states.Add(1)
	w.features(&k.feats)
	if k.fair != nil {
		if fault := k.fair.check(w); fault != "" {
			k.report(fault, from, h, a)
		}
	}
	k.batch = append(append(k.batch, byte(len(state))), state...)
	if len(k.batch) > 1<<14 {
		k.flush()
		if k.states.Load() > modelLimit {
			k.full.Store(true)
		}
	}
}

func (k *modelWorker) report(fault string, from, state uint64, a modelAction) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fault == "" {
		k.fault, k.from, k.state, k.act = fault, from, state, a
	}
}

// transcript replays the way to the fault in a world that keeps its names and
// offsets: it does not rest on the canonical form, but for finding the way.
func (s *modelSearch) transcript() (lines []string, ok bool) {
	path := []uint64{s.state}
	for h := s.from; h != 0; h = s.seen.parent(h) {
		path = append([]uint64{h}, path...)
	}
	newID := modelRealID()
	w, trial := newModelWorld(s.cfg, newID), newModelWorld(s.cfg, newID)
	var coder modelCoder
	lines = append(lines, w.views())
	for _, h := range path[1:] {
		found := false
		for _, a := range w.actions(nil) {
			trial.set(w)
			fault, did := trial.do(a)
			if !did || s.hash(coder.encode(trial)) != h || (h == s.state && s.faultOf(fault) != s.fault) {
				continue
			}
			lines = append(lines, w.describe(a, trial), trial.views())
			w, trial = trial, w
			found = true
			break
		}
		if !found {
			return append(lines, "no action leads from here to the next state"), false
		}
	}
	return append(lines, "FAULT: "+s.fault), true
}

// modelRealID makes ids that are never used again.
func modelRealID() func(i int) func() string {
	n := 0
	return func(i int) func() string {
		return func() string { n++; return fmt.Sprintf("p%d#%d", i, n) }
	}
}

// faultOf is the fault of an action that was taken, or, when the fault lies in
// what follows a state, that fault.
func (s *modelSearch) faultOf(fault string) string {
	if fault == "" && strings.HasPrefix(s.fault, faultStuck) {
		return s.fault
	}
	return fault
}
