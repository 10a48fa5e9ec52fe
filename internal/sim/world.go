package sim

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goneli/neli/internal/sentinel"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

// world is a cluster of whole processes in a bubble, with everything that the adversary and the oracle know.
type world struct {
	plan
	journal
	opts      *Options
	rnd       *rand.Rand // used only by the scheduling goroutine
	broker    *nelitest.Broker
	born      int
	quiet     time.Time // when the last fault that cannot be undone will have ended
	undo      []func()  // used only by the scheduling goroutine
	ending    sync.WaitGroup
	looked    []int // the watched roles: all, or some of many
	asking    asking
	preparing preparing
	weighing  bool // members have Config.Weight
	distances distances

	mu        sync.Mutex // guards the fields below
	procs     []*proc    // those alive, and those that are closing
	buried    []*proc
	called    map[string]string // by the random id of a process: its name in the transcript
	logID     string
	truths    []*truth
	led       map[int]*proc  // role → the process that last acquired it
	tokens    map[int]int64  // role → the largest token with which it was led
	owners    map[term]*proc // term → the process that led it
	terms     int
	restarted time.Time // when the broker last started
	down      bool      // the broker is down
	breach    time.Time // until then an assumption of the promise is violated
	broken    bool      // an assumption was violated
	unsure    bool      // some process may have to wait for W(60 s)
	sent      map[placed]*sending
	moves     []transferred

	witness *witness
	posts   *posts // sentinels, in runs that have any
}

type term struct {
	role  int
	token int64
}

// inWorld runs the world of a seed in a bubble of its own.
func inWorld(t *testing.T, opts *Options, run func(*world)) {
	var w *world
	inBubble(t, func() string { return w.transcript() }, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(opts.Seed, 29))
		w = &world{journal: journal{T: t, began: time.Now()}, opts: opts, plan: draw(rnd), rnd: rnd, called: map[string]string{},
			led: map[int]*proc{}, tokens: map[int]int64{}, owners: map[term]*proc{}, sent: map[placed]*sending{}}
		if opts.tracer != nil {
			w.traceable(rnd)
		}
		w.broker = nelitest.NewBroker(nelitest.Options{Seed: opts.Seed, RebalanceTime: w.rebalance, Jitter: w.jitter})
		w.asking = drawAsking(opts.Seed, w.plan)
		w.preparing, w.weighing = drawPreparing(opts.Seed, w.plan), drawWeighing(opts.Seed, w.plan)
		w.distances = drawDistances(opts.Seed, w.timeouts[0], 10*time.Millisecond+2*w.jitter, w.drift)
		w.posts = newPosts(&w.journal, opts, sentinel.Registration{Topic: simTopic, Group: simGroup, T: w.longest(), Rho: w.drift},
			network{func(id string) kafka.Provider { return w.broker.Provider(id) }, w.broker.Kill})
		for p := range w.partitions {
			w.truths = append(w.truths, newTruth(p))
		}
		for role := 0; role < w.roles; role += max(1, w.roles/24) {
			w.looked = append(w.looked, role)
		}
		w.say("", "seed %d: %v", opts.Seed, w.plan)
		defer func() {
			if t.Failed() {
				t.Log(w.transcript())
			}
		}()
		defer w.broker.Close()
		defer w.end()
		run(w)
		w.proveLogs()
	})
}

// end closes all processes.
func (w *world) end() {
	for _, p := range w.living() {
		w.broker.Restore(p.id, nelitest.LinkAll)
		p.wake()
	}
	for _, p := range w.living() {
		w.leave(p)
	}
	w.ending.Wait()
	w.posts.close()
	w.mu.Lock()
	v := w.witness
	w.witness = nil
	w.mu.Unlock()
	if v != nil {
		v.close()
	}
}

// transcript returns the journal and the logs.
func (w *world) transcript() string {
	b := w.journal.transcript()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.truths {
		b += f.text(func(process string) string { return w.called[process] })
	}
	return b
}

// upTo draws a duration.
func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.rnd.Int64N(int64(d))) }

func (w *world) chance(p float64) bool { return w.rnd.Float64() < p }

// until lets time pass until ok, at most d. It returns the last value of ok.
func (w *world) until(d time.Duration, ok func() bool) bool {
	for end := time.Now().Add(d); !ok(); {
		left := time.Until(end)
		if left <= 0 {
			return false
		}
		time.Sleep(min(left, 20*time.Millisecond))
	}
	return true
}

// living returns the processes that were neither closed nor killed.
func (w *world) living() []*proc {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.procs), func(p *proc) bool { return p.leaving.Load() })
}

// quietAfter notes a fault that ends by itself.
func (w *world) quietAfter(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if end := time.Now().Add(d); end.After(w.quiet) {
		w.quiet = end
	}
}

// later undoes a fault after a while, or when everything heals.
func (w *world) later(d time.Duration, undo func()) {
	once := sync.OnceFunc(undo)
	w.undo = append(w.undo, once)
	time.AfterFunc(d, once)
}

// learn passes a record that some process has read or sent to the truth.
func (w *world) learn(partition int, offset int64, value []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken {
		return // the offsets belong to other records now
	}
	f := w.truths[partition]
	if offset > int64(len(f.entries)) {
		w.catchUp(f)
	}
	switch n := int64(len(f.entries)); {
	case offset == n:
		w.judge(f.index, f.step(value, simGroup, w.logID))
	case offset > n:
		w.violated("offset %d of partition %d was read, and %d is not in the log", offset, partition, n)
	case f.entries[offset].value != string(value):
		w.violated("offset %d of partition %d has two records", offset, partition)
	}
}

// catchUp passes all records of a log to the truth. It needs the lock.
func (w *world) catchUp(f *truth) {
	if w.broken {
		return
	}
	for _, r := range w.broker.Records(simTopic, f.index) {
		f.pass(r.Offset)
		if r.Offset == int64(len(f.entries)) {
			w.judge(f.index, f.step(r.Value, simGroup, w.logID))
		}
	}
}
