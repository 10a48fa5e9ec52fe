package examples_test

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/goneli/neli/lab/pause"
)

func testCron(t *testing.T, f flags) {
	s := newStage(t)
	anna := s.start("cron", "anna", f.of("anna")...)
	boris := s.start("cron", "boris", f.of("boris")...)
	leader, m := s.await(nil, `starts the schedule, with token (\d+)`)
	next := other(leader, anna, boris)
	s.await(leader, `sends part 3 of the report`)
	s.await(leader, `sends part 1 of the report`)
	require.Zero(t, s.said(next, `sends`), "only one sends")

	leader.signal(syscall.SIGTERM) // in the middle of a report
	s.await(leader, `sends part 3 of the report`)
	s.await(leader, `has drained the schedule \(`)
	_, later := s.await(next, `starts the schedule, with token (\d+)`)
	require.Greater(t, number(t, later[0]), number(t, m[0]))
	leader.ends()
	s.await(next, `sends part 3 of the report`)
	next.signal(syscall.SIGTERM)
	next.ends()
}

func testAsynq(t *testing.T, f flags) {
	redis := miniredis.RunT(t)
	s := newStage(t)
	anna := s.start("asynq", "anna", f.of("anna", "-redis", redis.Addr())...)
	boris := s.start("asynq", "boris", f.of("boris", "-redis", redis.Addr())...)
	leader, m := s.await(nil, `starts the scheduler, with token (\d+)`)
	next := other(leader, anna, boris)
	began := time.Now()
	const ticks = 5
	for range ticks {
		s.await(leader, `enqueued report`)
	}
	require.Zero(t, s.said(next, `enqueue`), "only one enqueues")
	tasks, err := redis.List("asynq:{default}:pending")
	require.NoError(t, err)
	require.LessOrEqual(t, len(tasks), int(time.Since(began)/time.Second)+2, "a tick each second, and none twice")

	leader.Kill()
	left := s.said(leader, `enqueued report`)
	_, later := s.await(next, `starts the scheduler, with token (\d+)`)
	require.Greater(t, number(t, later[0]), number(t, m[0]))
	for range 2 {
		s.await(next, `enqueued report`)
	}
	next.signal(syscall.SIGTERM)
	s.await(next, `has shut the scheduler down`)
	next.ends()
	tasks, err = redis.List("asynq:{default}:pending")
	require.NoError(t, err)
	enqueued := left + s.said(next, `enqueued report`)
	require.GreaterOrEqual(t, len(tasks), enqueued)
	require.LessOrEqual(t, len(tasks), enqueued+1, "the leader may have been killed before it said so of one")
}

func testRunner(t *testing.T, f flags) {
	s := newStage(t)
	args := []string{"-bootstrap", f.bootstrap, "-group", f.fresh}
	anna, boris := s.start("runner", "anna", args...), s.start("runner", "boris", args...)
	urls := map[*program]string{}
	for _, p := range []*program{anna, boris} {
		_, m := s.await(p, `listens on (http://\S+)$`)
		urls[p] = m[0]
	}
	leader, m := s.await(nil, `leads, with token (\d+)$`)
	next := other(leader, anna, boris)
	for _, url := range urls {
		status, body := askLed(t, url+"/jobs/invoices?steps=2")
		require.Equal(t, http.StatusOK, status, body)
		require.Equal(t, "invoices: 2 steps with token "+m[0]+"\n", body)
	}
	require.Zero(t, s.said(next, `step`), "the other one redirects")
	status, _ := ask(t, urls[leader]+"/jobs/invoices?steps=none")
	require.Equal(t, http.StatusBadRequest, status)

	leader.Kill()
	_, later := s.await(next, `leads, with token (\d+)$`)
	require.Greater(t, number(t, later[0]), number(t, m[0]))
	status, body := ask(t, urls[next]+"/jobs/invoices?steps=1")
	require.Equal(t, http.StatusOK, status, body)
	require.Equal(t, "invoices: 1 steps with token "+later[0]+"\n", body)
	next.signal(syscall.SIGTERM)
	next.ends()
}

// askLed is ask, but waits until the process knows who leads: it reads that from the log, as the leader did.
func askLed(t *testing.T, url string) (status int, body string) {
	t.Helper()
	for deadline := time.Now().Add(limit); ; require.NoError(t, pause.For(t.Context(), 50*time.Millisecond)) {
		status, body = ask(t, url)
		if status != http.StatusServiceUnavailable || time.Now().After(deadline) {
			return status, body
		}
	}
}

// ask sends a POST to a URL, follows redirects, and returns the answer.
func ask(t *testing.T, url string) (status int, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	require.NoError(t, err)
	r, err := http.DefaultClient.Do(q)
	require.NoError(t, err)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return r.StatusCode, string(b)
}

// A process that is suspended during a job, and wakes when another one runs jobs, does not continue the
// job, and tells its client so.
func TestASuspendedRunnerAbandonsItsJob(t *testing.T) {
	t.Parallel()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(time.Second))
	require.NoError(t, err)
	t.Cleanup(broker.Close)
	s := newStage(t)
	args := []string{"-bootstrap", broker.ListenAddrs()[0], "-group", "suspended"}
	run := func(name string) (p *program, url string) {
		p = s.startAt(filepath.Join(binaries, "runner"), name, nil, args...)
		_, m := s.await(p, `listens on (http://\S+)$`)
		return p, m[0]
	}
	anna, hers := run("anna")
	s.await(anna, `leads, with token`)
	boris, his := run("boris")
	type answer struct {
		status int
		body   string
	}
	answered := make(chan answer, 1)
	go func() {
		status, body := ask(t, hers+"/jobs/invoices?steps=1000")
		answered <- answer{status, body}
	}()
	s.await(anna, `invoices: step 3 `)
	anna.suspend()
	stopped := time.Now()
	s.await(boris, `leads, with token`)
	status, body := ask(t, his+"/jobs/invoices?steps=1")
	require.Equal(t, http.StatusOK, status, body)
	s.during(2*leaseT, stopped)
	before := s.said(anna, `step`)
	anna.signal(syscall.SIGCONT)
	a := <-answered
	require.Equal(t, http.StatusServiceUnavailable, a.status)
	require.Contains(t, a.body, "invoices: cut off after step")
	require.Equal(t, before, s.said(anna, `step`), "anna goes on though boris leads")
}
