package neli_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

const (
	simGroup    = "app"
	simTopic    = simGroup + ".neli"
	simMaxPulse = 10 * time.Second
	simDrain    = 3 * time.Second
	simSession  = 6 * time.Second // the library's default
)

// plan is what a seed decides once, for all members.
type plan struct {
	mode       neli.Mode
	nomination neli.Nomination
	assignor   string
	timeout    time.Duration // T
	drift      float64
	partitions int
	roles      int // the most that any member contends for
	groups     int
	rebalance  time.Duration
	jitter     time.Duration
}

func (p plan) String() string {
	return fmt.Sprintf("mode %d, %v, %s, T %v, ρ %v, %d partitions, %d roles, %d groups, J %v, jitter %v", p.mode, p.nomination,
		p.assignor, p.timeout, p.drift, p.partitions, p.roles, p.groups, p.rebalance, p.jitter)
}

// world is a cluster of whole curators in a bubble, with its adversary's
// knowledge of everything.
type world struct {
	plan
	*testing.T
	will
	rnd    *rand.Rand // of the goroutine that schedules, nobody else's
	wills  *rand.Rand // likewise
	broker *nelitest.Broker
	began  time.Time
	seen   *situations
	born   int
	quiet  time.Time // when the last fault that nobody can undo will have ended
	undo   []func()  // of the goroutine that schedules
	ending sync.WaitGroup

	mu        sync.Mutex // guards what follows
	procs     []*proc    // all that live, and those that are closing
	buried    []*proc
	led       map[int]*proc  // partition → who acquired it last
	tokens    map[int]int64  // partition → with which token
	owners    map[term]*proc // who had it
	restarted time.Time      // when the broker came back
	down      bool           // the broker is
	breach    time.Time      // until then what the promise rests on is broken
	broken    bool           // it was
	sent      map[string]*sending
	moves     []transferred
	lines     []line
	failed    bool

	witness   *witness
	testimony map[term]*proc // who held it, as the witness said

	presence sync.Mutex // guards what follows
	absent   []time.Duration
	gap      time.Duration
}

type term struct {
	partition int
	token     int64
}

// line is a line of the transcript, written out only when it is wanted.
type line struct {
	at     time.Duration
	who    string
	format string
	args   []any
}

// inWorld runs a seed's world in a bubble of its own.
func inWorld(t *testing.T, seed uint64, seen *situations, draw func(*rand.Rand) plan, run func(*world)) {
	var w *world
	defer func() {
		// The end of a bubble panics if a goroutine is left that waits for ever.
		if left := recover(); left != nil {
			t.Errorf("%v\n%s", left, w.transcript())
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(seed, 29))
		p := draw(rnd)
		wills := rand.New(rand.NewPCG(seed, 37))
		w = &world{T: t, plan: p, will: drawWill(wills), rnd: rnd, wills: wills, seen: seen, began: time.Now(), led: map[int]*proc{}, tokens: map[int]int64{},
			owners: map[term]*proc{}, testimony: map[term]*proc{}, sent: map[string]*sending{}, absent: make([]time.Duration, p.roles),
			broker: nelitest.NewBroker(nelitest.Options{Seed: seed, RebalanceTime: p.rebalance, Jitter: p.jitter})}
		w.say("", "seed %d: %v", seed, p)
		if w.willed {
			w.say("", "%v", w.will)
		}
		defer func() {
			if t.Failed() {
				t.Log(w.transcript())
			}
		}()
		defer w.broker.Close()
		defer w.end()
		run(w)
	})
}

func (w *world) say(who, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.failed { // what comes after the first violation says nothing
		w.lines = append(w.lines, line{time.Since(w.began), who, format, args})
	}
}

// violated reports a breach of a promise: the first of a run, as the rest follows
// from it.
func (w *world) violated(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violatedLocked(format, args...)
}

func (w *world) violatedLocked(format string, args ...any) {
	if w.failed {
		return
	}
	w.failed = true
	what := fmt.Sprintf(format, args...)
	w.lines = append(w.lines, line{time.Since(w.began), "", "VIOLATION: %s", []any{what}})
	w.Errorf("at %v: %s", time.Since(w.began), what)
}

func (w *world) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

// transcript is what happened, one line an event, and the logs.
func (w *world) transcript() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	b.WriteString("transcript, times in seconds:\n")
	for _, l := range w.lines {
		fmt.Fprintf(&b, "%12.6f  %-6s %s\n", l.at.Seconds(), l.who, fmt.Sprintf(l.format, l.args...))
	}
	b.WriteString(w.logs())
	return b.String()
}

// upTo draws a duration.
func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.rnd.Int64N(int64(d))) }

func (w *world) chance(p float64) bool { return w.rnd.Float64() < p }

// oneOf draws one of several.
func oneOf[T any](rnd *rand.Rand, of ...T) T { return of[rnd.IntN(len(of))] }

// until passes time, at most d, and ends early when ok.
func (w *world) until(d time.Duration, ok func() bool) bool {
	for end := time.Now().Add(d); !ok(); {
		if !time.Now().Before(end) {
			return false
		}
		time.Sleep(10 * time.Millisecond)
	}
	return true
}

// living returns the processes that are not closing.
func (w *world) living() []*proc {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.procs), func(p *proc) bool { return p.leaving.Load() })
}

// end stops everything, also after a violation: nothing may be left in a bubble.
func (w *world) end() {
	w.mu.Lock()
	procs := slices.Clone(w.procs)
	w.mu.Unlock()
	w.broker.Start()
	for _, p := range procs {
		p.wake()
		w.broker.Restore(p.id, nelitest.All)
		w.leave(p)
	}
	w.ending.Wait()
	if w.witness != nil {
		_ = w.witness.Close()
	}
}

// sample looks at everything now and then: what changes between two events is
// found then.
func (w *world) sample(stop chan struct{}) {
	period := 47 * time.Millisecond
	if w.mode == neli.NonExclusive {
		period = 10 * time.Millisecond
	}
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		if w.mode == neli.NonExclusive {
			w.watchPresence(period)
			continue
		}
		for p := range w.partitions {
			w.look(p)
		}
		w.hear(period)
	}
}

// simClock is the clock of one process: it runs at a rate of its own, its machine
// may be suspended, and its wall clock set.
type simClock struct {
	began  time.Time
	rate   float64
	frozen atomic.Int64 // true time at which the machine was suspended, 0 if it was not
	slept  atomic.Int64 // by how much the monotonic clock is behind therefore
	set    atomic.Int64 // by how much the wall clock was set

	setBack, resumed atomic.Int64 // when that was last done, in true time
}

func (c *simClock) now() (mono, wall time.Duration) {
	t := time.Since(c.began)
	wall = time.Duration(float64(t) * c.rate)
	if at := c.frozen.Load(); at > 0 {
		t = time.Duration(at)
	}
	mono = time.Duration(float64(t)*c.rate) - time.Duration(c.slept.Load())
	return 1000*time.Hour + mono, 2000*time.Hour + wall + time.Duration(c.set.Load())
}

// suspend stops the machine, unless its wall clock was set back within a lease: a
// stamp from before both would be taken for younger than it is. That is excluded by
// assumption.
func (c *simClock) suspend(lease time.Duration) {
	t := int64(time.Since(c.began))
	if back := c.setBack.Load(); back == 0 || t-back > int64(lease) {
		c.frozen.CompareAndSwap(0, t)
	}
}

func (c *simClock) resume() {
	if at := c.frozen.Swap(0); at > 0 {
		t := int64(time.Since(c.began))
		c.slept.Add(int64(float64(t-at) * c.rate))
		c.resumed.Store(t)
	}
}

// adjust sets the wall clock; forward only, if the machine was suspended within a
// lease, for the same reason.
func (c *simClock) adjust(d, lease time.Duration) {
	t := int64(time.Since(c.began))
	if d < 0 && (c.frozen.Load() > 0 || c.resumed.Load() > 0 && t-c.resumed.Load() <= int64(lease)) {
		d = -d
	}
	if d < 0 {
		c.setBack.Store(t)
	}
	c.set.Add(int64(d))
}

// situations counts what has happened, so that green means something.
type situations struct {
	mu sync.Mutex
	n  map[string]int
	d  map[string]time.Duration // longest of a kind
}

func newSituations() *situations {
	return &situations{n: map[string]int{}, d: map[string]time.Duration{}}
}

func (s *situations) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n[what]++
}

func (s *situations) longest(what string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n[what]++
	s.d[what] = max(s.d[what], d)
}

func (s *situations) of(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n[what]
}

func (s *situations) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(s.n)) {
		fmt.Fprintf(&b, "%8d  %s", s.n[what], what)
		if d, ok := s.d[what]; ok {
			fmt.Fprintf(&b, " (longest %v)", d.Round(time.Millisecond))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
