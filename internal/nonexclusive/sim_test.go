package nonexclusive_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/seeded"
	"github.com/goneli/neli/internal/sim"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// sharedSeeds is how many seeds TestSharedSimulation runs by default. With the race detector,
// which is slow, it is fewer.
var sharedSeeds uint64 = 300

func init() {
	if seeded.Race {
		sharedSeeds = 30
	}
}

// TestSharedSimulation checks the three promises of non-exclusive mode over random histories. The
// bounds come from S, J, B and T, which the simulation sets, and from the coordinator's view of
// the assignments, not the library's. The seed chooses one of two kinds of run:
//
// Calm: a settled group suffers one fault at a time. If the fault leaves the old leader alive
// (join, rebalance, expired session, every way of leaving, sickness, cuts of every kind, changes
// of R), every role has a leader at every check. A crash or suspension leaves a role without a
// leader for S + J + B at most, and with two groups not at all. T is as short as the promise
// allows, S + J + 2 B, or the default, 3 S.
//
// Churn: all faults at once. A healthy member that has had a partition for 2 J + B leads it. For
// T after that (or, when it leaves, for the time that Close documents) there is a leader, unless
// one has crashed.
//
// rules_test.go shows what happens without each of the rules.
func TestSharedSimulation(t *testing.T) {
	seen := sim.NewSeen()
	seeds := sim.Seeds(t, sharedSeeds, func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) { runShared(t, seed, seen) })
	})
	t.Logf("%v", seen)
	if seeds >= sharedSeeds && !t.Failed() {
		for _, f := range sharedFaults {
			require.Positive(t, seen.Of(f.name), f.name)
		}
		require.Positive(t, seen.Of("a leader though nobody was assigned it for longer than S"))
		require.Positive(t, seen.Of("no leader after a crash"))
	}
}

const (
	sharedLook = 20 * time.Millisecond // between checks
	// groupBeat is librdkafka's heartbeat.interval.ms as this library sets it: members learn of a
	// rebalance by then. groupPoll is how often a member checks whether to join or leave.
	groupBeat = 500 * time.Millisecond
	groupPoll = 100 * time.Millisecond
	delivery  = 50 * time.Millisecond // of any message, including jitter
)

// sharedWorld is one run: a broker, members, and what the oracle knows.
type sharedWorld struct {
	*testing.T
	broker     *nelitest.Broker
	rnd        *rand.Rand
	seen       *sim.Seen
	began      time.Time
	procs      []*sharedProc // alive
	old        []*sharedProc // leaving, or suspended for good
	born       int
	ending     sync.WaitGroup
	log        []string
	churn      bool
	groups     []string
	assignor   string
	partitions int
	roles      int // the number that all processes know

	every, b, j, t time.Duration // HeartbeatInterval, B, J, T
	none           []time.Duration
	covered        []time.Time // by partition: when a healthy member was last assigned it for long enough to lead
	stalled        time.Time   // until then a rebalance may wait for a member that does not answer
	excused        []bool      // by partition: a process that was assigned it, or led it, has crashed
}

// sharedProc is one process.
type sharedProc struct {
	*neli.Neli
	name, group string
	sick        atomic.Bool
	out         bool // cut off, suspended, sick, or leaving: not required to lead
	suspended   bool
	stop        func()            // ends whatever drives it
	has         map[int]time.Time // by partition: since when the coordinator has assigned it to this process, and the process has been healthy
}

func runShared(t *testing.T, seed uint64, seen *sim.Seen) {
	rnd := rand.New(rand.NewPCG(seed, 77))
	rebalance := []time.Duration{-1, 200 * time.Millisecond, 500 * time.Millisecond}[rnd.IntN(3)]
	w := &sharedWorld{T: t, rnd: rnd, seen: seen, began: time.Now(), churn: seed%3 == 2,
		broker:     nelitest.NewBroker(nelitest.Options{Seed: seed, Jitter: 3 * time.Millisecond, RebalanceTime: rebalance}),
		partitions: 1 + rnd.IntN(3), groups: []string{"g"}, assignor: []string{"cooperative-sticky", "range"}[rnd.IntN(2)]}
	if !w.churn && rnd.IntN(4) == 0 {
		w.groups = append(w.groups, "h")
	}
	w.roles = 1 + rnd.IntN(2*w.partitions)
	// Cooperative: two rounds. A member hears of each at a heartbeat, and joins at a poll.
	w.j = 2*(groupBeat+groupPoll+max(0, rebalance)) + 2*delivery
	w.t, w.every = 3*session, interval
	if rnd.IntN(2) == 0 {
		w.every = time.Duration(200+rnd.IntN(300)) * time.Millisecond
		w.t = session + w.j + 2*w.every*time.Duration(len(w.groups)) + 2*delivery
	}
	w.b = w.every * time.Duration(len(w.groups))
	w.none, w.covered, w.excused = make([]time.Duration, 4*w.partitions), make([]time.Time, w.partitions), make([]bool, w.partitions)
	w.say("T %v, B %v, J %v, M %d, R %d, %s, groups %v, churn %v", w.t, w.b, w.j, w.partitions, w.roles, w.assignor, w.groups, w.churn)
	defer w.end()
	for range 2 + rnd.IntN(2) {
		for _, g := range w.groups {
			w.start(g)
		}
	}
	if w.churn {
		w.stir()
		return
	}
	for range 3 {
		w.calm()
	}
}

func (w *sharedWorld) end() {
	for _, p := range append(w.procs, w.old...) {
		w.broker.Resume(p.name)
		w.broker.Restore(p.name, nelitest.LinkAll)
		p.sick.Store(false)
		w.ending.Go(func() { _ = p.Close(); p.stop() })
	}
	w.ending.Wait()
	w.broker.Close()
	if w.Failed() {
		w.Log("transcript:\n" + strings.Join(w.log, "\n"))
	}
}

func (w *sharedWorld) say(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%10v  ", time.Since(w.began))+fmt.Sprintf(format, args...))
}

func (w *sharedWorld) upTo(d time.Duration) time.Duration {
	return time.Duration(w.rnd.Int64N(int64(d)))
}

// start starts a process, driven in one of three ways.
func (w *sharedWorld) start(group string) *sharedProc {
	w.born++
	p := &sharedProc{name: fmt.Sprintf("%c%d", 'a'+rune(w.rnd.IntN(26)), w.born), group: group, has: map[int]time.Time{}}
	cfg := neli.Config{LeaderGroupID: group, LeaderTopic: "t", Name: p.name, Mode: neli.NonExclusive, Roles: w.roles,
		Partitions: w.partitions, HeartbeatTimeout: w.t, HeartbeatInterval: w.every, GroupsOnTopic: len(w.groups),
		Provider: w.broker.Provider(p.name), KafkaConfig: neli.KafkaConfigMap{"partition.assignment.strategy": w.assignor}}
	if w.rnd.IntN(2) == 0 {
		cfg.Healthy = func() error {
			if p.sick.Load() {
				return errors.New("sick")
			}
			return nil
		}
	}
	n, err := neli.New(cfg)
	require.NoError(w, err)
	p.Neli = n
	how := w.rnd.IntN(3)
	switch how {
	case 0:
		pulser, err := p.Background(func() { time.Sleep(50 * time.Millisecond) })
		require.NoError(w, err)
		p.stop = func() { _ = pulser.Close() }
	case 1:
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = p.Lead(ctx, func(ctx context.Context, _ neli.Leadership) error { <-ctx.Done(); return nil })
		}()
		p.stop = func() { cancel(); <-ended }
	case 2:
		w.ending.Go(func() {
			for {
				if _, err := n.Pulse(time.Second); err != nil {
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
		})
		p.stop = func() {}
	}
	w.say("%s starts in %s, driven in way %d, checked %v", p.name, group, how, cfg.Healthy != nil)
	w.procs = append(w.procs, p)
	return p
}

// leave ends a process as programs do: by Close, by first ending what drives it, or by both at once.
func (w *sharedWorld) leave(p *sharedProc) {
	how := w.rnd.IntN(3)
	w.say("%s leaves in way %d", p.name, how)
	p.out = true
	w.procs = slices.DeleteFunc(w.procs, func(q *sharedProc) bool { return q == p })
	w.old = append(w.old, p)
	w.ending.Go(func() {
		switch how {
		case 1:
			p.stop()
		case 2:
			go p.stop()
		}
		_ = p.Close()
		p.stop()
	})
}

// lose notes that a process is dead as far as others can tell.
func (w *sharedWorld) lose(p *sharedProc) {
	has := w.broker.Assigned(p.name)
	for i := range w.excused {
		if slices.Contains(has, i) || p.IsLeaderOf(i) {
			w.excused[i] = true
		}
	}
	p.out, p.suspended = true, true
	w.silent()
}

// silent notes that the group will have to wait for a member's session to expire.
func (w *sharedWorld) silent() { w.stalled = time.Now().Add(session) }

func (w *sharedWorld) crash(p *sharedProc) {
	w.say("%s crashes", p.name)
	w.lose(p)
	w.procs = slices.DeleteFunc(w.procs, func(q *sharedProc) bool { return q == p })
	w.broker.Kill(p.name)
	w.ending.Go(func() { _ = p.Close(); p.stop() })
}

// pass lets time pass, and checks the leaders every now and then.
func (w *sharedWorld) pass(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end) && !w.Failed(); {
		time.Sleep(sharedLook)
		w.look()
	}
}

func (w *sharedWorld) look() {
	now := time.Now()
	for _, p := range w.procs {
		var has []int
		if !p.out {
			has = w.broker.Assigned(p.name)
		}
		for i := range w.partitions {
			if !slices.Contains(has, i) {
				delete(p.has, i)
			} else if p.has[i].IsZero() || w.churn && now.Before(w.stalled) {
				p.has[i] = now // nobody reads during a rebalance that waits
			}
		}
	}
	for i := range w.partitions {
		for _, p := range w.procs {
			if since, ok := p.has[i]; ok && now.Sub(since) >= 2*w.j+w.b+delivery {
				w.covered[i], w.excused[i] = now, false
			}
		}
	}
	for role := range w.roles {
		if w.led(role) {
			if c := w.covered[role%w.partitions]; !c.IsZero() && now.Sub(c) > session {
				w.seen.Count("a leader though nobody was assigned it for longer than S")
			}
			continue
		}
		w.none[role] += sharedLook
		if w.churn {
			w.judge(role, now)
		}
	}
}

func (w *sharedWorld) led(role int) bool {
	leads := func(p *sharedProc) bool { return !p.suspended && p.IsLeaderOf(role) }
	return slices.ContainsFunc(w.procs, leads) || slices.ContainsFunc(w.old, leads)
}

// judge checks, during churn, whether a role may have no leader.
func (w *sharedWorld) judge(role int, now time.Time) {
	i := role % w.partitions
	leaves := session + 3*time.Second + 2*groupBeat + 2*w.b // the time that Close documents
	allowed := min(leaves, w.t) - w.j - w.b - delivery
	if c := w.covered[i]; !c.IsZero() && !w.excused[i] && now.Sub(c) < allowed {
		w.fail("role %d has no leader, and a healthy member was assigned partition %d until %v ago", role, i, now.Sub(c))
	}
	if w.excused[i] {
		w.seen.Count("no leader after a crash")
	}
}

func (w *sharedWorld) fail(format string, args ...any) {
	w.say("VIOLATION: "+format, args...)
	w.Errorf("after %v: "+format, append([]any{time.Since(w.began)}, args...)...)
}

// sharedFault is one thing that happens to a process of a settled group.
type sharedFault struct {
	name   string
	dead   bool // the process has stopped, so it cannot lead on
	strike func(w *sharedWorld, p *sharedProc) (undo func())
}

func isCut(links nelitest.Link) func(*sharedWorld, *sharedProc) func() {
	return func(w *sharedWorld, p *sharedProc) func() {
		p.out = true
		if links&nelitest.LinkGroup != 0 {
			w.silent()
		}
		w.broker.CutOff(p.name, links)
		return func() {
			w.broker.Restore(p.name, links)
			p.out = false
		}
	}
}

var sharedFaults = []sharedFault{
	{"join", false, func(w *sharedWorld, p *sharedProc) func() {
		q := w.start(p.group)
		return func() { w.leave(q) }
	}},
	{"rebalance", false, func(w *sharedWorld, _ *sharedProc) func() { w.broker.Rebalance(); return func() {} }},
	{"session expires", false, func(w *sharedWorld, p *sharedProc) func() { w.broker.Expire(p.name); return func() {} }},
	{"leave", false, func(w *sharedWorld, p *sharedProc) func() {
		w.leave(p)
		return func() { w.start(p.group) }
	}},
	{"rolling restart", false, func(w *sharedWorld, _ *sharedProc) func() {
		for _, p := range slices.Clone(w.procs) {
			w.start(p.group)
			w.pass(w.upTo(w.j))
			w.leave(p)
			w.pass(w.t)
		}
		return func() {}
	}},
	{"sick", false, func(w *sharedWorld, p *sharedProc) func() {
		p.sick.Store(true)
		p.out = true
		return func() { p.sick.Store(false); p.out = false }
	}},
	{"roles", false, func(w *sharedWorld, p *sharedProc) func() {
		fewer, more := w.roles, w.roles+1+w.rnd.IntN(w.partitions)
		for _, q := range w.procs { // one after the other
			w.pass(w.upTo(time.Second))
			require.NoError(w, q.SetRoles(more))
		}
		w.pass(3 * delivery / 2) // a task may be running
		w.roles = more
		return func() {
			w.roles = fewer
			for _, q := range w.procs {
				require.NoError(w, q.SetRoles(fewer))
				w.pass(w.upTo(time.Second))
			}
		}
	}},
	{"cut off", false, isCut(nelitest.LinkAll)},
	{"cut off from the log", false, isCut(nelitest.LinkAppends | nelitest.LinkAcks | nelitest.LinkReads)},
	{"cannot read", false, isCut(nelitest.LinkReads)},
	{"cannot write", false, isCut(nelitest.LinkAppends)},
	{"cut off from the group", false, isCut(nelitest.LinkGroup)},
	{"crash", true, func(w *sharedWorld, p *sharedProc) func() {
		w.crash(p)
		return func() { w.start(p.group) }
	}},
	{"suspended", true, func(w *sharedWorld, p *sharedProc) func() {
		w.lose(p)
		w.broker.Suspend(p.name)
		return func() {
			w.broker.Resume(p.name)
			p.out, p.suspended = false, false
		}
	}},
}

// settle waits until every partition of every group has a healthy member that has led it for
// longer than any earlier fault has effects.
func (w *sharedWorld) settle() {
	for calm, end := time.Now(), time.Now().Add(5*time.Minute); time.Since(calm) < w.t+w.j; {
		w.pass(sharedLook)
		for _, g := range w.groups {
			for i := range w.partitions {
				if !slices.ContainsFunc(w.procs, func(p *sharedProc) bool {
					return p.group == g && !p.has[i].IsZero() && (i >= w.roles || p.IsLeaderOf(i))
				}) {
					calm = time.Now()
				}
			}
		}
		if w.Failed() {
			return
		}
		if time.Now().After(end) {
			w.fail("not everything is led after five minutes without a fault")
			return
		}
	}
	clear(w.none)
}

// calm lets a settled group suffer one fault.
func (w *sharedWorld) calm() {
	w.settle()
	if w.Failed() {
		return
	}
	f := sharedFaults[w.rnd.IntN(len(sharedFaults))]
	p := w.procs[w.rnd.IntN(len(w.procs))]
	for _, q := range w.procs { // prefer a process that leads
		if w.rnd.IntN(2) == 0 && len(q.has) > 0 {
			p = q
		}
	}
	w.pass(w.upTo(w.b))
	w.say("%s: %s", p.name, f.name)
	w.seen.Count(f.name)
	undo := f.strike(w, p)
	w.pass(w.upTo(2*w.t) + w.j)
	w.say("%s: undone", f.name)
	undo()
	w.pass(w.t)
	bound := time.Duration(0)
	if f.dead && len(w.groups) == 1 {
		bound = session + w.j + w.b + sharedLook
	}
	for role := range w.roles {
		if w.none[role] > bound {
			w.fail("%s: role %d had no leader for %v, %v is the bound", f.name, role, w.none[role], bound)
		}
		if w.none[role] > 0 {
			w.seen.Count("no leader after a crash")
		}
	}
}

// stir lets everything happen at once.
func (w *sharedWorld) stir() {
	w.settle()
	undo := map[*sharedProc]func(){}
	for range 40 {
		if w.Failed() {
			return
		}
		p := w.procs[w.rnd.IntN(len(w.procs))]
		f := sharedFaults[w.rnd.IntN(len(sharedFaults))]
		switch {
		case undo[p] != nil:
			w.say("%s: undone", p.name)
			undo[p]()
			delete(undo, p)
		case len(w.procs) > 4:
			w.leave(p)
		case slices.Contains([]string{"leave", "crash"}, f.name):
			w.seen.Count(f.name)
			f.strike(w, p)
			w.start("g")
		case f.name == "join":
			w.start("g")
		case f.name == "rolling restart", f.name == "roles":
		default:
			w.say("%s: %s", p.name, f.name)
			w.seen.Count(f.name)
			undo[p] = f.strike(w, p)
		}
		w.pass(w.upTo([]time.Duration{w.j, w.t}[w.rnd.IntN(2)]))
	}
	for _, f := range undo {
		f()
	}
	w.pass(session + 3*w.t)
	w.settle()
}
