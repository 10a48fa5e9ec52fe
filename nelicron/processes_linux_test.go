package nelicron_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/goneli/neli"
	"github.com/goneli/neli/franz"
	"github.com/goneli/neli/nelicron"
)

// These tests use real processes: the test binary starts itself as members, which share a broker in memory. A
// run locks its job's file, and the kernel releases the lock when its process dies.

func TestMain(m *testing.M) {
	if name := os.Getenv("NELICRON_MEMBER"); name != "" {
		if err := member(name); err != nil {
			fmt.Println(name, "failed:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

var processNames = []string{"anna", "boris", "clara"}

// member is one process. SIGTERM ends it, and SIGUSR1 makes it hand a role over.
func member(name string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	n, err := neli.New(neli.Config{
		KafkaConfig:   neli.KafkaConfigMap{"bootstrap.servers": os.Getenv("NELICRON_BOOTSTRAP")},
		Provider:      franz.Provider(),
		LeaderGroupID: "jobs",
		Name:          name,
		Roles:         simRoles,
		// A run asks whether its lease is valid, and a member that gets no processor for T cannot: its job would
		// overlap with the next leader's.
		HeartbeatTimeout: 6 * time.Second,
	})
	if err != nil {
		return err
	}
	jobs, err := nelicron.New(n)
	if err != nil {
		return err
	}
	var opts []gocron.SchedulerOption
	if os.Getenv("NELICRON_ALONE") == "" {
		locker, err := jobs.Locker()
		if err != nil {
			return err
		}
		opts = append(opts, gocron.WithDistributedLocker(locker))
	}
	s, err := gocron.NewScheduler(opts...)
	if err != nil {
		return err
	}
	for i := range simJobs {
		job := fmt.Sprintf("job-%d", i)
		task := jobs.Task(job, func(_ context.Context, l neli.Leadership) error { return witnessed(name, job, l.Valid) })
		if os.Getenv("NELICRON_ALONE") != "" {
			task = gocron.NewTask(func() error { return witnessed(name, job, func() bool { return true }) })
		}
		if _, err := s.NewJob(gocron.CronJob("* * * * * *", true), task, gocron.WithName(job)); err != nil {
			return err
		}
	}
	s.Start()
	handOver := make(chan os.Signal, 1)
	signal.Notify(handOver, syscall.SIGUSR1)
	go func() {
		for range handOver {
			for role := range n.Led() {
				err := n.Transfer(ctx, role, processNames[rand.IntN(3)])
				fmt.Println(name, "transfer", err)
				break
			}
		}
	}()
	return errors.Join(jobs.Run(ctx), s.Shutdown(), n.Close())
}

// witnessed is a run of a job that reports an overlap with another run.
func witnessed(name, job string, valid func() bool) error {
	f, err := os.OpenFile(filepath.Join(os.Getenv("NELICRON_DIR"), job), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		fmt.Println(name, "overlap", job)
		return err
	}
	fmt.Printf("%s runs %s.\n", name, job)
	for range rand.IntN(20) {
		time.Sleep(50 * time.Millisecond)
		if !valid() {
			return nil
		}
	}
	return nil
}

// hall is a set of members.
type hall struct {
	env     []string
	members map[string]*exec.Cmd
	reading sync.WaitGroup

	mu    sync.Mutex
	lines []string
}

func (h *hall) start(t *testing.T, name string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "NELICRON_MEMBER="+name), h.env...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	h.members[name] = cmd
	h.reading.Go(func() {
		for in := bufio.NewScanner(out); in.Scan(); {
			h.mu.Lock()
			h.lines = append(h.lines, in.Text())
			h.mu.Unlock()
		}
	})
}

// end sends a signal to a member and waits for its end.
func (h *hall) end(t *testing.T, name string, sig syscall.Signal) {
	t.Helper()
	require.NoError(t, h.members[name].Process.Signal(sig))
	err := h.members[name].Wait()
	if sig != syscall.SIGKILL {
		require.NoError(t, err, name)
	}
	delete(h.members, name)
}

// of returns the number of lines of a member that contain what.
func (h *hall) of(name, what string) (count int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.lines {
		if strings.HasPrefix(l, name) && strings.Contains(l, what) {
			count++
		}
	}
	return count
}

// open starts the members.
func open(t *testing.T, env ...string) *hall {
	t.Helper()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	require.NoError(t, err)
	t.Cleanup(broker.Close)
	h := &hall{members: map[string]*exec.Cmd{},
		env: append(env, "NELICRON_BOOTSTRAP="+broker.ListenAddrs()[0], "NELICRON_DIR="+t.TempDir())}
	for _, name := range processNames {
		h.start(t, name)
	}
	t.Cleanup(func() {
		for _, m := range h.members {
			_ = m.Process.Kill()
			_ = m.Wait()
		}
		h.reading.Wait()
		if t.Failed() {
			t.Log(strings.Join(h.lines, "\n"))
		}
	})
	return h
}

// awaits waits until met returns true.
func awaits(t *testing.T, what string, met func() bool) {
	t.Helper()
	require.Eventually(t, met, 2*time.Minute, 20*time.Millisecond, what)
}

// TestProcesses kills and ends processes with fifty jobs, and makes them hand roles over. No two runs of a job
// overlap, and the remaining processes run the jobs of the others.
func TestProcesses(t *testing.T) {
	h := open(t)
	for _, name := range processNames {
		awaits(t, name+" runs jobs", func() bool { return h.of(name, "runs") > 5 })
	}
	for i, how := range []syscall.Signal{syscall.SIGKILL, syscall.SIGUSR1, syscall.SIGTERM, syscall.SIGKILL} {
		name := processNames[i%3]
		if how == syscall.SIGUSR1 {
			require.NoError(t, h.members[name].Process.Signal(how))
			awaits(t, name+" hands over", func() bool { return h.of(name, "transfer") > 0 })
		} else {
			h.end(t, name, how)
			h.start(t, name)
		}
		h.everyJob(t, "")
	}
	// Two members die, and the one that is left runs all jobs.
	h.end(t, "boris", syscall.SIGKILL)
	h.end(t, "clara", syscall.SIGKILL)
	h.everyJob(t, "anna")
	h.end(t, "anna", syscall.SIGTERM)
	require.Zero(t, h.of("", "overlap"), "runs of a job overlap")
}

// everyJob waits until a member, or any member if name is "", has run each job once more.
func (h *hall) everyJob(t *testing.T, name string) {
	t.Helper()
	before := map[int]int{}
	for i := range simJobs {
		before[i] = h.of(name, fmt.Sprintf("runs job-%d.", i))
	}
	for i := range simJobs {
		what := fmt.Sprintf("runs job-%d.", i)
		awaits(t, name+" "+what, func() bool { return h.of(name, what) > before[i] })
	}
}

// Without the Locker the witness finds overlaps.
func TestProcessesWithoutALocker(t *testing.T) {
	h := open(t, "NELICRON_ALONE=1")
	awaits(t, "runs overlap", func() bool { return h.of("", "overlap") > 0 })
}
