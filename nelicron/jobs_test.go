package nelicron_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelicron"
	"github.com/goneli/neli/nelitest"
)

// noon is when the job under test is due: two minutes after the start of a bubble's clock.
const noon = "0 2 0 * * *"

// run is one run of the job under test.
type run struct {
	who        string
	begin, end time.Time
	token      int64
}

// diary records who ran the job, when, and what was refused.
type diary struct {
	mu      sync.Mutex
	written []run
	refused error
}

func (d *diary) add(r run) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.written = append(d.written, r)
}

func (d *diary) runs() []run {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.written)
}

func (d *diary) errors() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refused
}

// listen returns an option that records a job's errors in the diary.
func (d *diary) listen() gocron.JobOption {
	note := func(_ uuid.UUID, _ string, err error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.refused = errors.Join(d.refused, err)
	}
	return gocron.WithEventListeners(gocron.AfterLockError(note), gocron.AfterJobRunsWithError(note))
}

// pair starts alice, who leads every role, and then bob, each with one job.
func pair(t *testing.T, b *nelitest.Broker, how way, d *diary, length time.Duration, aliceAt, bobAt string, opts ...gocron.JobOption) (alice, bob *instance) {
	t.Helper()
	member := func(name, at string) *instance {
		return launch(t, b, name, how, func(s gocron.Scheduler, jobs *nelicron.Jobs) {
			task := jobs.Task("report", func(ctx context.Context, l neli.Leadership) error {
				r := run{who: name, begin: time.Now(), token: l.Token}
				for i := length; i > 0 && l.Valid(); i -= time.Second {
					time.Sleep(time.Second)
				}
				r.end = time.Now()
				d.add(r)
				return ctx.Err()
			})
			_, err := s.NewJob(gocron.CronJob(at, true), task, append(opts, gocron.WithName("report"))...)
			require.NoError(t, err)
		})
	}
	alice = member("alice", aliceAt)
	time.Sleep(10 * time.Second)
	bob = member("bob", bobAt)
	time.Sleep(30 * time.Second) // until roles are balanced
	return alice, bob
}

// until sleeps until a time before or after noon.
func until(d time.Duration) {
	time.Sleep(time.Until(time.Date(2000, 1, 1, 0, 2, 0, 0, time.UTC).Add(d)))
}

// Close, StepDown and Transfer wait for the present run. Then the other instance runs the job.
func TestHandOverWaitsForTheRun(t *testing.T) {
	for _, kind := range []struct {
		name string
		how  way
	}{{"Locker", spread}, {"Elector", together}} {
		for name, handOver := range map[string]func(*instance) error{
			"Close":    func(in *instance) error { return in.n.Close() },
			"StepDown": func(in *instance) error { return in.n.StepDown(context.Background()) },
			"Transfer": func(in *instance) error {
				role := 0
				if kind.name == "Locker" {
					role = neli.Slot("report", simRoles)
				}
				return in.n.Transfer(context.Background(), role, "bob")
			},
		} {
			t.Run(kind.name+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b, d := nelitest.NewBroker(nelitest.Options{}), &diary{}
					defer b.Close()
					alice, bob := pair(t, b, kind.how, d, 8*time.Second, noon, "0,20,25,30 2 0 * * *")
					leads := neli.Slot("report", simRoles)
					if kind.name == "Elector" {
						leads = 0
					}
					// The balance may have given the role to bob, but the test needs alice to lead it.
					if bob.n.IsLeaderOf(leads) {
						require.NoError(t, bob.n.Transfer(context.Background(), leads, "alice"))
					}
					until(time.Second) // alice's run has begun
					require.Empty(t, d.runs(), "only alice leads the job")
					require.NoError(t, handOver(alice))
					require.Len(t, d.runs(), 1, "the hand-over waits for the run")
					until(time.Minute)
					require.Equal(t, "alice", d.runs()[0].who)
					require.Equal(t, 8*time.Second, d.runs()[0].end.Sub(d.runs()[0].begin), "the run was not cut off")
					require.Greater(t, len(d.runs()), 1, "bob goes on")
					for i, r := range d.runs()[1:] {
						require.Equal(t, "bob", r.who)
						require.False(t, r.begin.Before(d.runs()[i].end), "runs overlap: %v", d.runs())
						require.Greater(t, r.token, d.runs()[0].token)
					}
					alice.quit(t)
					bob.quit(t)
				})
			})
		}
	}
}

// This test checks what the package comment says about ticks across a hand-over, with clocks that differ.
func TestTicksAcrossAHandOver(t *testing.T) {
	for name, c := range map[string]struct {
		bobAt string        // noon by his clock
		leave time.Duration // when alice leaves, by hers
		how   func(*nelitest.Broker, *instance)
		want  []string
	}{
		"clocks that agree": {noon, time.Second, nil, []string{"alice"}},
		"before it is due":  {noon, -time.Second, nil, []string{"bob"}},
		"twice: the next one's clock is two seconds behind":    {"2 2 0 * * *", time.Second, nil, []string{"alice", "bob"}},
		"missed: the next one's clock is two seconds ahead":    {"58 1 0 * * *", -time.Second, nil, nil},
		"missed: the leader has crashed two seconds before it": {noon, -2 * time.Second, func(b *nelitest.Broker, _ *instance) { b.Kill("alice") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, d := nelitest.NewBroker(nelitest.Options{}), &diary{}
				defer b.Close()
				alice, bob := pair(t, b, together, d, 0, noon, c.bobAt)
				if bob.n.IsLeaderOf(0) {
					require.NoError(t, bob.n.Transfer(context.Background(), 0, "alice"))
				}
				until(c.leave)
				if c.how != nil {
					c.how(b, alice)
				}
				alice.quit(t)
				until(time.Minute)
				var got []string
				for _, r := range d.runs() {
					got = append(got, r.who)
				}
				require.Equal(t, c.want, got, "who ran the tick of noon")
				bob.quit(t)
			})
		})
	}
}

// gocron leaves out the ticks of an hour that does not exist, and repeats those of an hour that comes twice. The package
// comment says so.
func TestTicksInDaylightSavingTime(t *testing.T) {
	for name, c := range map[string]struct {
		at   time.Time // an hour before the clocks of Berlin change
		want []string
	}{
		"an hour is left out": {time.Date(2000, 3, 26, 0, 0, 0, 0, time.UTC), nil},
		"an hour comes twice": {time.Date(2000, 10, 29, 0, 0, 0, 0, time.UTC), []string{"alice", "bob"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, d := nelitest.NewBroker(nelitest.Options{}), &diary{}
				defer b.Close()
				member := func(name string) *instance {
					return launch(t, b, name, spread, func(s gocron.Scheduler, jobs *nelicron.Jobs) {
						task := jobs.Task("report", func(context.Context, neli.Leadership) error { d.add(run{who: name}); return nil })
						_, err := s.NewJob(gocron.CronJob("CRON_TZ=Europe/Berlin 30 2 * * *", false), task, gocron.WithName("report"))
						require.NoError(t, err)
					})
				}
				time.Sleep(time.Until(c.at))
				alice := member("alice")
				time.Sleep(45 * time.Minute) // in autumn, 2:45 for the first time
				alice.quit(t)
				bob := member("bob")
				time.Sleep(2 * time.Hour)
				var got []string
				for _, r := range d.runs() {
					got = append(got, r.who)
				}
				require.Equal(t, c.want, got, "who ran the tick of half past two")
				bob.quit(t)
			})
		})
	}
}

// A tick that comes while the previous run is still running is missed.
func TestTickIsMissedWhileARunIsAtWork(t *testing.T) {
	for name, how := range map[string]way{"Locker": spread, "Elector": together} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, d := nelitest.NewBroker(nelitest.Options{}), &diary{}
				defer b.Close()
				in := launch(t, b, "alice", how, func(s gocron.Scheduler, jobs *nelicron.Jobs) {
					task := jobs.Task("report", func(context.Context, neli.Leadership) error {
						begin := time.Now()
						time.Sleep(7 * time.Second)
						d.add(run{begin: begin, end: time.Now()})
						return nil
					})
					_, err := s.NewJob(gocron.CronJob("*/5 * * * * *", true), task, gocron.WithName("report"), d.listen())
					require.NoError(t, err)
				})
				time.Sleep(time.Minute)
				require.Greater(t, len(d.runs()), 3)
				for i, r := range d.runs()[1:] {
					require.False(t, r.begin.Before(d.runs()[i].end), "runs overlap: %v", d.runs())
				}
				require.ErrorIs(t, d.errors(), nelicron.ErrRunning)
				in.quit(t)
			})
		})
	}
}

// The process is suspended after gocron was told to start the job, and before the task begins.
func TestSuspensionBetweenTheLockAndTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, d := nelitest.NewBroker(nelitest.Options{}), &diary{}
		defer b.Close()
		in := launch(t, b, "alice", spread, func(s gocron.Scheduler, jobs *nelicron.Jobs) {
			task := jobs.Task("report", func(context.Context, neli.Leadership) error { d.add(run{}); return nil })
			_, err := s.NewJob(gocron.CronJob(noon, true), task, gocron.WithName("report"), d.listen(), gocron.WithEventListeners(
				gocron.BeforeJobRuns(func(uuid.UUID, string) {
					b.Freeze("alice")
					time.Sleep(10 * time.Second)
				})))
			require.NoError(t, err)
		})
		until(20 * time.Second)
		require.Empty(t, d.runs(), "the job runs though the lease is over")
		require.ErrorIs(t, d.errors(), neli.ErrFenced)
		b.Resume("alice")
		in.quit(t)
	})
}

// Neither the Locker nor the Elector lets a job start after a suspension, even if nothing has told the
// process yet that its lease is over.
func TestJobIsNotStartedAfterASuspension(t *testing.T) {
	for name, how := range map[string]func(*testing.T, *nelicron.Jobs) (ask func() error){
		"Locker": func(t *testing.T, jobs *nelicron.Jobs) func() error {
			l, err := jobs.Locker()
			require.NoError(t, err)
			return func() error {
				lock, err := l.Lock(context.Background(), "report")
				if err == nil {
					require.NoError(t, lock.Unlock(context.Background()))
				}
				return err
			}
		},
		"Elector": func(t *testing.T, jobs *nelicron.Jobs) func() error {
			e, err := jobs.Elector(0)
			require.NoError(t, err)
			return func() error { return e.IsLeader(context.Background()) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := nelitest.NewBroker(nelitest.Options{})
				defer b.Close()
				in, ask := alone(t, b, how)
				require.NoError(t, ask())
				b.Freeze("alice")
				time.Sleep(10 * time.Second)
				if name == "Locker" {
					require.ErrorIs(t, ask(), neli.ErrNotLeader, "the lock is given")
				} else {
					require.ErrorIs(t, ask(), neli.ErrNotLeader, "IsLeader is nil")
				}
				b.Resume("alice")
				time.Sleep(20 * time.Second)
				require.NoError(t, ask(), "it leads again")
				in.quit(t)
			})
		})
	}
}

// In a term that is about to end no run begins, although the lease is kept for the present runs.
func TestNoRunBeginsInATermThatIsAboutToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nelitest.NewBroker(nelitest.Options{})
		defer b.Close()
		var locker gocron.Locker
		in, _ := alone(t, b, func(t *testing.T, jobs *nelicron.Jobs) func() error {
			var err error
			locker, err = jobs.Locker()
			require.NoError(t, err)
			return nil
		})
		lock, err := locker.Lock(t.Context(), "report")
		require.NoError(t, err)
		in.stop()
		time.Sleep(time.Second)
		role := neli.Slot("report", simRoles)
		require.True(t, in.n.IsLeaderOf(role), "the lease is kept")
		other := "report"
		for i := 0; other == "report" || neli.Slot(other, simRoles) != role; i++ {
			other = fmt.Sprint("job-", i)
		}
		_, err = locker.Lock(t.Context(), other)
		require.ErrorIs(t, err, neli.ErrNotLeader, "a run begins though the term is over")
		require.NoError(t, lock.Unlock(t.Context()))
		require.NoError(t, lock.Unlock(t.Context()), "once more does nothing")
		in.quit(t)
		_, err = locker.Lock(t.Context(), other)
		require.ErrorIs(t, err, neli.ErrNotLeader)
	})
}

// alone starts an instance whose scheduler has no jobs, and waits until it leads.
func alone(t *testing.T, b *nelitest.Broker, how func(*testing.T, *nelicron.Jobs) func() error) (in *instance, ask func() error) {
	t.Helper()
	in = launch(t, b, "alice", func(t *testing.T, jobs *nelicron.Jobs) gocron.SchedulerOption {
		ask = how(t, jobs)
		return gocron.WithLocation(time.UTC)
	}, func(gocron.Scheduler, *nelicron.Jobs) {})
	time.Sleep(10 * time.Second)
	return in, ask
}

// somebody is another Elector.
type somebody struct{}

func (somebody) IsLeader(context.Context) error { return nil }

// A task that gocron has not locked does not run: its job has another name, or gocron ignores the Locker
// because there is an Elector.
func TestTaskWithoutALockDoesNotRun(t *testing.T) {
	for name, c := range map[string]struct {
		name string
		with []gocron.SchedulerOption
	}{
		"another name":         {name: "invoices"},
		"an Elector beside it": {name: "report", with: []gocron.SchedulerOption{gocron.WithDistributedElector(somebody{})}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, d := nelitest.NewBroker(nelitest.Options{}), &diary{}
				defer b.Close()
				n, err := neli.New(neli.Config{LeaderGroupID: "jobs", Provider: b.Provider("alice")})
				require.NoError(t, err)
				jobs, err := nelicron.New(n)
				require.NoError(t, err)
				s, err := gocron.NewScheduler(append(c.with, spread(t, jobs))...)
				require.NoError(t, err)
				_, err = s.NewJob(gocron.DurationJob(time.Second),
					jobs.Task("report", func(context.Context, neli.Leadership) error { panic("runs") }), gocron.WithName(c.name), d.listen())
				require.NoError(t, err)
				s.Start()
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- jobs.Run(ctx) }()
				time.Sleep(20 * time.Second)
				require.ErrorIs(t, d.errors(), nelicron.ErrNoLock)
				cancel()
				require.NoError(t, <-ended)
				synctest.Wait()
				require.NoError(t, s.Shutdown())
				require.NoError(t, n.Close())
			})
		})
	}
}

func TestInvalidUsesAreRefused(t *testing.T) {
	_, err := nelicron.New(nil)
	require.ErrorContains(t, err, "n is nil")
	b := nelitest.NewBroker(nelitest.Options{})
	defer b.Close()
	of := func(cfg neli.Config) *neli.Neli {
		cfg.Provider, cfg.LeaderGroupID = b.Provider("alice"), "jobs"
		n, err := neli.New(cfg)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, n.Close()) })
		return n
	}
	_, err = nelicron.New(of(neli.Config{Mode: neli.NonExclusive}))
	require.ErrorContains(t, err, "needs Mode Exclusive")

	n := of(neli.Config{Roles: 2})
	with := func() *nelicron.Jobs {
		jobs, err := nelicron.New(n)
		require.NoError(t, err)
		return jobs
	}
	jobs := with()
	_, err = jobs.Elector(2)
	require.ErrorContains(t, err, "role 2: must be between 0 and 1")
	_, err = jobs.Elector(-1)
	require.Error(t, err)
	_, err = jobs.Locker()
	require.NoError(t, err)
	_, err = jobs.Locker()
	require.NoError(t, err, "a second scheduler")
	_, err = jobs.Elector(1)
	require.ErrorIs(t, err, nelicron.ErrBoth)

	jobs = with()
	elector, err := jobs.Elector(1)
	require.NoError(t, err)
	require.ErrorIs(t, elector.IsLeader(t.Context()), neli.ErrNotLeader, "before Run")
	_, err = jobs.Elector(0)
	require.ErrorIs(t, err, nelicron.ErrBoth)
	_, err = jobs.Locker()
	require.ErrorIs(t, err, nelicron.ErrBoth)

	locker, err := with().Locker()
	require.NoError(t, err)
	_, err = locker.Lock(t.Context(), "report")
	require.ErrorIs(t, err, neli.ErrNotLeader)
}
