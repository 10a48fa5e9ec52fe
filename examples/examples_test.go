package examples_test

import (
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/kafkatest"
)

// TestExamples runs each program against a real Kafka.
func TestExamples(t *testing.T) {
	bootstrap := kafkatest.Bootstrap(t)
	for name, test := range map[string]func(*testing.T, flags){
		"basic":        testBasic,
		"barrier":      testBarrier,
		"lead":         testLead,
		"shards":       testShards,
		"static":       testStatic,
		"nonexclusive": testNonExclusive,
		"two-clusters": testTwoClusters,
		"fenced-sql":   testFencedSQL,
		"fenced-kafka": testFencedKafka,
		"cron":         testCron,
		"asynq":        testAsynq,
		"runner":       testRunner,
		"service":      testService,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fresh := fmt.Sprintf("examples-%s-%d", name, time.Now().UnixNano())
			test(t, flags{bootstrap: bootstrap, fresh: fresh})
		})
	}
}

// flags builds the arguments that all examples have in common.
type flags struct {
	bootstrap string
	fresh     string // a unique name of this run
}

func (f flags) of(name string, more ...string) []string {
	return append([]string{"-bootstrap", f.bootstrap, "-group", f.fresh, "-name", name}, more...)
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}

// other returns the one of two that is not p.
func other(p, a, b *program) *program {
	if p == a {
		return b
	}
	return a
}

func testBasic(t *testing.T, f flags) {
	s := newStage(t)
	anna := s.start("basic", "anna", f.of("anna")...)
	boris := s.start("basic", "boris", f.of("boris")...)
	leader, _ := s.await(nil, `sent invoice 1$`)
	s.await(leader, `sent invoice 3$`)
	next := other(leader, anna, boris)
	require.Zero(t, s.said(next, `sent`), "only one sends")

	leader.Kill()
	s.await(next, `sent invoice 1$`)
	next.signal(syscall.SIGTERM)
	s.await(next, `closed$`)
	next.ends()
}

func testBarrier(t *testing.T, f flags) {
	s := newStage(t)
	anna := s.start("barrier", "anna", f.of("anna")...)
	boris := s.start("barrier", "boris", f.of("boris")...)
	leader, m := s.await(nil, `leader, with token (\d+): opens a batch`)
	first := number(t, m[0])
	s.await(leader, `imported a batch of 50`)

	leader.signal(syscall.SIGTERM)
	s.await(leader, `no longer leader \(closing\): committed`)
	next, m := s.await(other(leader, anna, boris), `leader, with token (\d+): opens a batch`)
	require.Greater(t, number(t, m[0]), first)
	leader.ends()

	// The leader is suspended until another one leads, and then wakes.
	clara := s.start("barrier", "clara", f.of("clara")...)
	next.suspend()
	_, again := s.await(clara, `leader, with token (\d+): opens a batch`)
	require.Greater(t, number(t, again[0]), number(t, m[0]))
	next.signal(syscall.SIGCONT)
	s.await(next, `leadership lost \((lapsed|superseded)\): throws away a batch`)
	for _, p := range []*program{next, clara} {
		p.signal(syscall.SIGTERM)
		p.ends()
	}
}

func testLead(t *testing.T, f flags) {
	s := newStage(t)
	p := s.start("lead", "demo", f.of("demo", "-step-down", "1s")...)
	_, former := s.await(p, `(demo-\d): leads, with token (\d+)`)
	s.await(p, former[0]+`: steps down`)
	_, latter := s.await(p, `(demo-\d): leads, with token (\d+)`)
	require.NotEqual(t, former[0], latter[0])
	require.Greater(t, number(t, latter[1]), number(t, former[1]))
	s.await(p, fmt.Sprintf(`%s: a former leader's write arrives late: stale token: %s, the row has %s$`, latter[0], former[1], latter[1]))
	p.signal(syscall.SIGINT)
	s.await(p, latter[0]+`: must stop: one last write`)
	s.await(p, `wrote "final rate" with token `+latter[1])
	p.ends()
}

func testStatic(t *testing.T, f flags) {
	s := newStage(t)
	anna := s.start("static", "anna", f.of("anna")...)
	boris := s.start("static", "boris", f.of("boris")...)
	leader, m := s.await(nil, `runs the job, with token (\d+)`)
	next := other(leader, anna, boris)
	leader.signal(syscall.SIGTERM)
	s.await(leader, `stops the job`)
	_, later := s.await(next, `runs the job, with token (\d+)`)
	require.Greater(t, number(t, later[0]), number(t, m[0]))
	leader.ends()
	next.signal(syscall.SIGTERM)
	next.ends()
}

func testShards(t *testing.T, f flags) {
	s := newStage(t)
	p := s.start("shards", "shards", "-bootstrap", f.bootstrap, "-group", f.fresh, "-moves", "1", "-pause", "0s")
	for _, scene := range []string{"with Prepare", "without Prepare", "with Standby", "with Standby and sentinel"} {
		_, m := s.await(p, `^planned moves `+scene+`: (\d+) changes, nobody served the shard for [^-]+ \(median\)`)
		require.GreaterOrEqual(t, number(t, m[0]), 64, "more if a move failed and was tried again")
		s.await(p, `^SIGKILL `+scene+`: \d+ changes`)
		_, m = s.await(p, `^requests `+scene+`: (\d+) served by one process, \d+ by none, 0 by two`)
		require.Positive(t, number(t, m[0]))
	}
	p.ends()
}

func testNonExclusive(t *testing.T, f flags) {
	s := newStage(t)
	of := func(group string) []string {
		return append(f.of("of-"+group, "-topic", f.fresh), "-group", f.fresh+group)
	}
	a := s.start("nonexclusive", "a", of("a")...)
	b := s.start("nonexclusive", "b", of("b")...)
	s.await(a, `publishes ORCL`)
	s.await(b, `publishes ORCL`)
	s.await(a, `publishes ORCL`)

	a.Kill()
	for range 10 {
		for _, symbol := range []string{"AAPL", "MSFT", "NVDA", "ORCL"} {
			_, m := s.await(b, `publishes (\w+)`)
			require.Equal(t, symbol, m[0])
		}
	}
	require.Zero(t, s.said(b, `fenced|revoked`), "the other group's crash does not affect it")
	b.signal(syscall.SIGTERM)
	s.await(b, `closing`)
	s.await(b, `publishes ORCL`) // until a successor may have taken over
	s.await(b, `leader revoked \(closing\)`)
	b.ends()
}

// One of two clusters dies for longer than T: the group on the other publishes every symbol meanwhile. When the
// cluster is back, its group can do the same.
func testTwoClusters(t *testing.T, f flags) {
	mortal := kafkatest.Run(t, kafkatest.Options{Brokers: 1})
	s := newStage(t)
	start := func(name, bootstrap string) *program {
		return s.start("nonexclusive", name, "-alone", "-bootstrap", bootstrap, "-group", f.fresh+name, "-topic", f.fresh+name, "-name", name)
	}
	a, b := start("a", mortal.Bootstrap()), start("b", f.bootstrap)
	s.await(a, `publishes ORCL`)
	s.await(b, `publishes ORCL`)
	without := func(lost, left *program, until string) {
		began, before := time.Now(), s.said(left, `publishes`)
		s.await(lost, until)
		rounds := (s.said(left, `publishes`) - before) / 4
		require.GreaterOrEqual(t, rounds, int(time.Since(began)/time.Second)-2, "each symbol once a second")
		require.Zero(t, s.said(left, `fenced|revoked`))
	}
	mortal.Brokers()[0].Kill()
	without(a, b, `leader fenced`)
	go mortal.Brokers()[0].Restart(t.Context())
	without(a, b, `publishes ORCL`)
	b.Kill()
	for range 20 {
		s.await(a, `publishes`)
	}
	a.signal(syscall.SIGTERM)
	a.ends()
}
