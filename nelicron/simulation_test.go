package nelicron_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/seeded"
	"github.com/goneli/neli/nelicron"
	"github.com/goneli/neli/nelitest"
)

const (
	simRoles = 16
	simJobs  = 50
	every    = 5 * time.Second // the jobs' schedule
	longest  = 8 * time.Second // the longest run; the DrainTimeout is 10 s
)

// ledger sees every action of every run on all instances.
type ledger struct {
	mu       sync.Mutex
	newest   map[string]int // by job: the run that began last
	working  map[string]int // by job: the present run; 0: none
	lost     map[int]bool   // runs whose lease was lost; another run may begin before they end
	next     int
	runs     map[string]map[string]int // by job, then by instance
	overlaps []string
}

func newLedger() *ledger {
	return &ledger{newest: map[string]int{}, working: map[string]int{}, lost: map[int]bool{}, runs: map[string]map[string]int{}}
}

func (g *ledger) begin(job, instance string) (id int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next++
	if w := g.working[job]; w != 0 && !g.lost[w] {
		g.overlaps = append(g.overlaps, fmt.Sprintf("%s begins on %s while run %d is at work", job, instance, w))
	}
	g.newest[job], g.working[job] = g.next, g.next
	if g.runs[job] == nil {
		g.runs[job] = map[string]int{}
	}
	g.runs[job][instance]++
	return g.next
}

func (g *ledger) act(job string, id int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.newest[job] != id {
		g.overlaps = append(g.overlaps, fmt.Sprintf("run %d of %s does something after run %d has begun", id, job, g.newest[job]))
	}
}

func (g *ledger) end(job string, id int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.working[job] == id {
		g.working[job] = 0
	}
}

// lose notes that a run has found its lease lost. Another run may then begin before its function has returned.
func (g *ledger) lose(id int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lost[id] = true
}

// instance is a process with a scheduler.
type instance struct {
	name  string
	n     *neli.Neli
	s     gocron.Scheduler
	stop  context.CancelFunc
	ended chan error
}

// work returns a correct job: it checks the lease before each thing that it does.
func work(g *ledger, job, name string, length time.Duration) func(context.Context, neli.Leadership) error {
	return func(ctx context.Context, l neli.Leadership) error {
		id := g.begin(job, name)
		defer g.end(job, id)
		for until := time.Now().Add(length); time.Now().Before(until); {
			time.Sleep(200 * time.Millisecond)
			if !l.Valid() {
				g.lose(id)
				return context.Cause(ctx)
			}
			g.act(job, id)
		}
		return nil
	}
}

// way is how a scheduler is tied to a Neli.
type way func(*testing.T, *nelicron.Jobs) gocron.SchedulerOption

func spread(t *testing.T, jobs *nelicron.Jobs) gocron.SchedulerOption {
	t.Helper()
	l, err := jobs.Locker()
	require.NoError(t, err)
	return gocron.WithDistributedLocker(l)
}

func together(t *testing.T, jobs *nelicron.Jobs) gocron.SchedulerOption {
	t.Helper()
	e, err := jobs.Elector(0)
	require.NoError(t, err)
	return gocron.WithDistributedElector(e)
}

// launch starts an instance with the jobs that add adds.
func launch(t *testing.T, b *nelitest.Broker, name string, how way, add func(gocron.Scheduler, *nelicron.Jobs)) *instance {
	t.Helper()
	n, err := neli.New(neli.Config{LeaderGroupID: "jobs", Name: name, Provider: b.Provider(name), Roles: simRoles})
	require.NoError(t, err)
	jobs, err := nelicron.New(n)
	require.NoError(t, err)
	s, err := gocron.NewScheduler(how(t, jobs), gocron.WithLocation(time.UTC))
	require.NoError(t, err)
	add(s, jobs)
	s.Start()
	ctx, stop := context.WithCancel(context.Background())
	in := &instance{name: name, n: n, s: s, stop: stop, ended: make(chan error, 1)}
	go func() { in.ended <- jobs.Run(ctx) }()
	return in
}

func start(t *testing.T, b *nelitest.Broker, g *ledger, name string, how way, draw *rand.Rand) *instance {
	t.Helper()
	return launch(t, b, name, how, func(s gocron.Scheduler, jobs *nelicron.Jobs) {
		for i := range simJobs {
			job := fmt.Sprintf("job-%d", i)
			length := time.Duration(draw.Int64N(int64(longest)))
			_, err := s.NewJob(gocron.CronJob("*/5 * * * * *", true), jobs.Task(job, work(g, job, name, length)), gocron.WithName(job))
			require.NoError(t, err)
		}
	})
}

// quit ends an instance as a program should.
func (in *instance) quit(t *testing.T) {
	t.Helper()
	in.stop()
	<-in.ended // even after a fault
	synctest.Wait()
	require.NoError(t, in.s.Shutdown())
	if err := in.n.Close(); err != nil {
		require.ErrorIs(t, err, in.n.Await())
	}
}

// TestSimulation runs three schedulers with fifty jobs through minutes of faults. No two runs of a job overlap,
// all instances take part, and every job continues.
func TestSimulation(t *testing.T) {
	seeds := 10
	if seeded.Race {
		seeds = 2
	}
	if s := os.Getenv("NELI_SEEDS"); s != "" {
		var err error
		seeds, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	for name, how := range map[string]way{"Locker": spread, "Elector": together} {
		t.Run(name, func(t *testing.T) {
			took := map[string]bool{}
			for seed := range seeds {
				synctest.Test(t, func(t *testing.T) { simulate(t, uint64(seed), how, took) })
			}
			if seeds > 5 {
				require.Len(t, took, 3, "who ran jobs")
			}
		})
	}
}

func simulate(t *testing.T, seed uint64, how way, took map[string]bool) {
	draw := rand.New(rand.NewPCG(seed, 0))
	b, g := nelitest.NewBroker(nelitest.Options{Seed: seed}), newLedger()
	defer b.Close()
	names := []string{"alice", "bob", "clara"}
	all := map[string]*instance{}
	for _, name := range names {
		all[name] = start(t, b, g, name, how, draw)
	}
	time.Sleep(30 * time.Second)
	for range 12 {
		name := names[draw.IntN(len(names))]
		disturb(t, b, all, name, draw, func() *instance { return start(t, b, g, name, how, draw) })
		time.Sleep(time.Duration(draw.Int64N(int64(20 * time.Second))))
	}
	time.Sleep(30 * time.Second)
	for _, in := range all {
		in.quit(t)
	}
	require.Empty(t, g.overlaps, "runs of a job overlap, seed %d", seed)
	for i := range simJobs {
		job, sum := fmt.Sprintf("job-%d", i), 0
		for name, runs := range g.runs[job] {
			sum += runs
			took[name] = true
		}
		require.Greater(t, sum, 15, "runs of %s, seed %d", job, seed)
	}
}

// disturb causes a fault for an instance. Afterwards the instance or its successor is alive.
func disturb(t *testing.T, b *nelitest.Broker, all map[string]*instance, name string, draw *rand.Rand, again func() *instance) {
	t.Helper()
	in := all[name]
	pause := time.Duration(draw.Int64N(int64(20 * time.Second)))
	switch draw.IntN(6) {
	case 0:
		b.Kill(name)
		in.quit(t)
		time.Sleep(pause)
		all[name] = again()
	case 1:
		in.quit(t)
		time.Sleep(pause)
		all[name] = again()
	case 2:
		for role := range in.n.Led() {
			to := []string{"alice", "bob", "clara"}[draw.IntN(3)]
			err := in.n.Transfer(context.Background(), role, to)
			if err != nil && !expected(err) {
				require.NoError(t, err)
			}
			return
		}
	case 3:
		require.NoError(t, in.n.StepDown(context.Background()))
	case 4:
		b.Freeze(name)
		time.Sleep(pause)
		b.Resume(name)
	case 5:
		b.CutOff(name, nelitest.LinkAll)
		time.Sleep(pause)
		b.Restore(name, nelitest.LinkAll)
	}
}

func expected(err error) bool {
	for _, is := range []error{neli.ErrNotLeader, neli.ErrLeadsAlready, neli.ErrNoMember, neli.ErrNoAnswer, neli.ErrNotDone} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}
