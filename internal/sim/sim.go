package sim

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/sentinel"
	"github.com/goneli/neli/nelitest"
)

// Machine is what a process gets from its machine.
type Machine struct {
	Clock  clock.Clock
	Random func(time.Duration) time.Duration // returns a random duration in [0, d); 0 for d ≤ 0
	ID     string                            // the random id of the process
}

// Options are the input of a simulation.
type Options struct {
	// Seed decides everything, except the order in which the runtime runs goroutines that become
	// ready at the same instant.
	Seed uint64
	// New makes a process on a machine of its own.
	New func(Machine, neli.Config, neli.Barrier) (*neli.Neli, error)
	// Hub makes a sentinel on a machine of its own; nil: there are no sentinels.
	Hub func(context.Context, Machine, neli.Config) *sentinel.Hub
	// Seen counts what happens. Default: nothing is counted.
	Seen *Seen
	// Transcript receives a description of what happened. Default: it is logged if the run fails.
	Transcript func(string)
	// Logs adds the processes' logs to the transcript.
	Logs bool

	run    func(*testing.T, Options) // nil: Run
	tracer *tracer                   // nil: no trace is written
}

// Run runs one seed, and reports the first violation of a promise with a transcript.
func Run(t *testing.T, opts Options) {
	if opts.Seen == nil {
		opts.Seen = NewSeen()
	}
	inWorld(t, &opts, func(w *world) {
		stop := make(chan struct{})
		var sampler sync.WaitGroup
		sampler.Go(func() { w.sample(stop) })
		defer sampler.Wait()
		defer close(stop)
		w.testify()
		for range 2 + w.rnd.IntN(3) {
			w.start("")
		}
		if w.profile == calm {
			w.nothing()
		} else {
			w.storm()
		}
		w.end()
		w.truthful()
		if opts.Transcript != nil {
			opts.Transcript(w.transcript())
		}
	})
}

// Suite runs seeds, as Seeds chooses them, and reports what happened in them.
func Suite(t *testing.T, seeds uint64, opts Options) {
	opts.Seen = NewSeen()
	kafka := opts.run == nil
	if kafka {
		opts.run = Run
	}
	if os.Getenv("NELI_SEED") != "" {
		opts.Transcript, opts.Logs = func(s string) { t.Log(s) }, true
	}
	began := time.Now()
	seeds = Seeds(t, seeds, func(t *testing.T, seed uint64) {
		opts := opts
		opts.Seed = seed
		opts.run(t, opts)
	})
	t.Logf("%d seeds in %v; what happened:\n%v", seeds, time.Since(began).Round(time.Millisecond), opts.Seen)
	if t.Failed() || os.Getenv("NELI_SOAK") != "" {
		return
	}
	if opts.Hub != nil && seeds >= 100 {
		watchedOver(t, opts.Seen, kafka)
	}
	if kafka && opts.Hub == nil && seeds >= 1000 {
		everything(t, opts.Seen)
	}
}

// Seeds runs the seed of NELI_SEED, or new seeds for the time of NELI_SOAK, or the first NELI_SEEDS seeds. The
// default is the first n. It returns how many it ran.
func Seeds(t *testing.T, n uint64, run func(*testing.T, uint64)) (ran uint64) {
	if seed, err := strconv.ParseUint(os.Getenv("NELI_SEED"), 10, 64); err == nil {
		run(t, seed)
		return 1
	}
	if d, err := time.ParseDuration(os.Getenv("NELI_SOAK")); err == nil {
		const batch = 200
		began := time.Now()
		from := uint64(began.UnixMilli()) * 1000
		t.Logf("from seed %d", from)
		for ; time.Since(began) < d && !t.Failed(); ran += batch {
			some(t, from+ran, batch, run)
		}
		return ran
	}
	if more, err := strconv.ParseUint(os.Getenv("NELI_SEEDS"), 10, 64); err == nil {
		n = more
	}
	some(t, 1, n, run)
	return n
}

// some runs seeds in parallel, and starts no more after a failure.
func some(t *testing.T, from, n uint64, run func(*testing.T, uint64)) {
	var failed atomic.Bool
	t.Run("seeds", func(t *testing.T) {
		for seed := from; seed < from+n; seed++ {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				if failed.Load() {
					return
				}
				defer func() { // a bubble that fails ends its test
					if t.Failed() {
						failed.Store(true)
						name, _, _ := strings.Cut(t.Name(), "/")
						t.Logf("rerun: NELI_SEED=%d go test -run '%s$'", seed, name)
					}
				}()
				run(t, seed)
			})
		}
	})
}

// nothing is a run without faults, in which no process loses anything.
func (w *world) nothing() {
	w.until(20*time.Second+w.upTo(10*w.longest()), func() bool {
		if w.chance(0.001) {
			w.victim().clock.slewTo(w.anySlew())
		}
		return w.over()
	})
	w.recovers()
}

// storm is a run with faults for a while, after which everything heals.
func (w *world) storm() {
	of := w.menu(w.rnd)
	breach := w.rnd.IntN(20) == 0
	length := 20*time.Second + w.upTo(max(40*time.Second, 10*w.longest()))
	for began := time.Now(); time.Since(began) < length && !w.over(); {
		if breach && time.Since(began) > length/2 {
			breach = false
			w.strike(oneOf(w.rnd, breaches...), w.victim())
		}
		w.until(w.upTo(max(4*time.Second, 2*w.timeouts[0])), w.over)
		w.supervise()
		w.strike(oneOf(w.rnd, of...), w.victim())
		w.wish()
		w.beg()
	}
	w.hears(false)
	if w.heals() {
		w.recovers()
		w.shares()
		w.heeded()
	}
}

// heals ends all faults at once, except those that must end by themselves: hung applications, and
// appends delayed in the network.
func (w *world) heals() bool {
	w.say("", "everything heals")
	for _, undo := range w.undo {
		undo()
	}
	for !w.over() {
		w.mu.Lock()
		d := time.Until(w.quiet)
		w.mu.Unlock()
		if d < 0 {
			break
		}
		w.until(d+time.Millisecond, w.over)
		w.supervise()
	}
	for _, p := range w.living() {
		p.mu.Lock()
		delayed := len(p.delayed) > 0
		p.mu.Unlock()
		if delayed { // the delay cannot be undone
			w.crash(p)
			w.start("")
			continue
		}
		w.broker.Restore(p.id, nelitest.LinkAll)
		if w.sameR {
			p.setRoles(w.roles)
		}
	}
	w.broker.Start()
	w.broker.Rebalance() // it ends forced assignments
	w.say("", "all is well")
	return !w.over()
}

// recovers asserts that every role that all members contend for is led within the bound, and that
// the witness soon knows it.
func (w *world) recovers() {
	w.until(2*time.Second, w.over) // a process whose log was deleted unread notices by then
	bound, healed := w.bound(), time.Now()
	if !w.until(bound, func() bool { w.supervise(); return w.allLed() || w.over() }) {
		w.violated("not all roles are led %v after the last fault: %s", bound, w.leaders())
	}
	w.opts.Seen.longest(fmt.Sprintf("all led again, %v, T %v, unknown %v", w.nomination, w.longest(), w.unsure), time.Since(healed))
	w.knows(bound)
}

// leaders describes who leads which watched role, and how many roles each process contends for.
func (w *world) leaders() string {
	var b strings.Builder
	for _, role := range w.looked {
		id := "nobody"
		if p := w.leaderOf(role); p != nil {
			id = p.id
		}
		fmt.Fprintf(&b, "%d: %s; ", role, id)
	}
	for _, p := range w.living() {
		fmt.Fprintf(&b, "%s has R %d; ", p.id, p.r())
	}
	return b.String()
}

// allLed reports whether every role that all members contend for has a leader.
func (w *world) allLed() bool {
	roles := w.roles
	for _, p := range w.living() {
		roles = min(roles, p.r())
	}
	for role := range roles {
		if w.leaderOf(role) == nil {
			return false
		}
	}
	return true
}

// patience returns W(T) of the largest T by the slowest raw clock, in true time, with ρ as in the design.
func (w *world) patience() time.Duration { return w.wait(w.longest()) }

func (w *world) wait(t time.Duration) time.Duration {
	return time.Duration(float64(t)*(1+w.drift)/(1-w.drift)/(1-w.drift)) + time.Millisecond
}

// bound returns how long it may take, once everything is well, until every role is led. By the
// design that is W of the largest T (of 60 s where no process knows the log), another T for the
// members' restraint, and 2 s. Added to it is what takes time in the simulation itself: barriers
// in progress, and in a group the session of a dead member and two rounds of assignment.
func (w *world) bound() time.Duration {
	const tail = 2 * time.Second
	const barriers = 2 * simDrain * 4 / 3
	w.mu.Lock()
	unsure := w.unsure || w.broken
	w.mu.Unlock()
	d := w.patience() + w.stretched(w.longest()) + barriers + tail
	if unsure || !w.somebodyKnows() {
		w.unsureNow()
		d += w.wait(time.Minute) - w.patience()
	}
	if w.nomination == neli.NominationAssigned {
		d += simSession + 2*w.rebalance
	}
	return d
}

// somebodyKnows reports whether for each log some process reports that it knows the fold.
func (w *world) somebodyKnows() bool {
	for partition := range w.partitions {
		if !slices.ContainsFunc(w.living(), func(p *proc) bool { return p.knows(partition) }) {
			return false
		}
	}
	return true
}

func (p *proc) knows(partition int) bool {
	p.reading.mu.Lock()
	defer p.reading.mu.Unlock()
	for _, role := range p.w.lookedOn(partition) {
		if s, ok := p.reading.told[role]; ok && s.status != neli.StatusUnknown {
			return true
		}
	}
	return false
}

// shares asserts that in the end every member has its share, if all are well and steady and
// nothing is pinned. If preferences contradict each other, it asserts instead that no role moves
// to and fro without end.
func (w *world) shares() {
	if !w.willed || !w.patient || w.broken || w.newer || !w.sameR || w.nomination != neli.NominationOpen || w.stays || w.over() {
		return
	}
	switch w.leaning {
	case leaningFunction, leaningLies:
		w.opts.Seen.Count("watched for roles that go to and fro")
		const watch = 2 * time.Minute
		before := w.termsSoFar()
		w.until(watch, w.over)
		if n, most := w.termsSoFar()-before, w.roles*int(2+w.stretched(watch)/(30*time.Second)); n > most {
			w.violated("%d terms in %v, %d should be the most", n, watch, most)
		}
	default:
		w.opts.Seen.Count("watched until everybody has a share")
		bound := w.stretched(time.Minute + 15*time.Second + 30*time.Second + time.Duration(w.partitions)*10*time.Second)
		if !w.until(bound, func() bool { return w.shared() || w.over() }) {
			w.violated("not everybody has a share %v after the last fault", bound)
		}
	}
}

func (w *world) termsSoFar() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.owners)
}

// capped reports whether no member leads more than its cap. If the caps do not suffice for all roles, it reports
// whether every member leads at least its cap.
func (w *world) capped() bool {
	sum, above, below := 0, false, false
	for _, p := range w.living() {
		n := 0
		for range p.Led() {
			n++
		}
		sum, above, below = sum+p.most, above || n > p.most, below || n < p.most
	}
	if sum >= w.roles {
		return !above
	}
	return !below
}

// shared reports whether the members with the highest priority lead everything, none of them much more than another.
func (w *world) shared() bool {
	if w.leaning == leaningCaps {
		return w.capped()
	}
	best := -1
	for _, p := range w.living() {
		best = max(best, p.rank())
	}
	if w.weighing {
		return w.levelByWeight(best)
	}
	most, least := 0, w.roles
	for _, p := range w.living() {
		n := 0
		for range p.Led() {
			n++
		}
		if p.rank() < best {
			if n > 0 {
				return false
			}
			continue
		}
		most, least = max(most, n), min(least, n)
	}
	return most-least <= max(1, most/8)
}

// rank is what orders members, if it does not depend on the role.
func (p *proc) rank() int { return 2*p.zone + p.priority }

// everything asserts that all cases of the adversary have occurred.
func everything(t *testing.T, seen *Seen) {
	for _, f := range slices.Concat(faults, breaches, wills, []fault{newerFault, pauseFault}) {
		if seen.Of("fault: "+f.name) == 0 {
			t.Errorf("never: fault: %s", f.name)
		}
	}
	for _, what := range []string{
		"claim valid: fresh", "claim valid: after silence", "claim valid: after own silence", "claim valid: of what was free",
		"claim valid: after silence of a holder with another T", "claim valid: in part",
		"claim valid: delayed beyond T", "claim valid: reported as failed",
		"claim invalid: race lost", "claim invalid: delayed beyond T",
		"the same record twice: claim", "the same record twice: beat", "the same record twice: release", "the same record twice: snapshot",
		"record of a newer version", "told who holds a role", "told by the witness", "several roles by one claim",
		"a new term after a lapse", "succeeded while suspended", "leads beside a living namesake",
		"a fast clock follows a slow one", "a member with another T follows", "a far member follows a near one", "a near member follows a far one", "two leaders, told apart by their tokens",
		"released while the work went on: lapsed", "released while the work went on: overdue",
		"ended: closing", "ended: lapsed", "ended: superseded", "ended: not_pulsed", "ended: overdue", "ended: roles_changed",
		"ended: unassigned", "ended: log_reset", "ended: fatal",
		"failed: the topic was replaced",
		"ended: unhealthy", "ended: stepped_down", "ended: transferred", "ended: rebalanced",
		"transferred", "not transferred", "no answer", "stepped down",
		"watched for roles that go to and fro", "watched until everybody has a share", "shared out by weight",
		"request: accepted", "request: refused by the application", "request: forged",
		"asked: stepped down", "asked: transferred", "asked: refused", "asked: in vain",
		"prepare: hangs", "prepare: ignores its context", "prepare: fails", "prepare: led", "prepare: not led",
		"asked in quiet times: transferred", "asked in quiet times: refused",
	} {
		if seen.Of(what) == 0 {
			t.Errorf("never: %s", what)
		}
	}
}
