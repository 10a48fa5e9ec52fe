package examples_test

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
)

// These tests suspend the programs that people copy in the middle of their loops, for longer than the lease.
// When a program wakes while another process leads, it must not act as a leader. Each program runs as a
// process of its own on an embedded broker.

const leaseT = 5 * time.Second // the default

// suspended describes a program under test.
type suspended struct {
	args  func(f flags, name string) []string
	acts  string        // its output when it acts as a leader
	done  string        // its last output before it waits; "": as acts
	loses string        // its output when it finds that it no longer leads; "": none
	again string        // its output when it is elected again; "": it is not, since boris leads everything
	lease time.Duration // T
}

func TestASuspendedExampleDoesNothing(t *testing.T) {
	common := func(f flags, name string) []string { return f.of(name) }
	redis := miniredis.RunT(t)
	for name, s := range map[string]suspended{
		"basic":   {args: common, acts: `sent `, lease: leaseT},
		"barrier": {args: common, acts: `imported a batch|: committed`, loses: `throws away a batch`, lease: leaseT},
		"lead": {args: func(f flags, name string) []string { return f.of(name, "-step-down", "10m") },
			acts: `wrote `, loses: `has lost leadership: stops at once`, lease: leaseT},
		"static": {args: common, acts: `runs the job`, loses: `stops the job \(neli: leadership fenced\)`, lease: leaseT},
		"cron":   {args: common, acts: `sends part `, done: `sends part 3`, loses: `has drained the schedule`, lease: leaseT},
		"asynq": {args: func(f flags, name string) []string { return f.of(name, "-redis", redis.Addr()) },
			acts: `enqueued `, loses: `has shut the scheduler down`, lease: leaseT},
		"nonexclusive": {args: func(f flags, name string) []string { return f.of(name, "-topic", f.fresh) },
			acts: `publishes `, done: `publishes ORCL`, loses: `leader fenced`,
			// It joins the group again, and the group reassigns the partitions.
			again: `leader acquired`, lease: 3 * 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trySuspended(t, filepath.Join(binaries, name), s)
		})
	}
}

// trySuspended starts two processes, and suspends the leader while it waits, as it does most of the time.
// Against a suspension between the check and the action only the token helps.
func trySuspended(t *testing.T, binary string, s suspended) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(time.Second))
	require.NoError(t, err)
	t.Cleanup(broker.Close)
	f := flags{bootstrap: broker.ListenAddrs()[0], fresh: "suspended"}
	st := newStage(t)
	env := []string{"BOOTSTRAP=" + f.bootstrap} // for programs without flags
	anna := st.startAt(binary, "anna", env, s.args(f, "anna")...)
	st.await(anna, s.acts)
	boris := st.startAt(binary, "boris", env, s.args(f, "boris")...)
	if s.repeats() {
		st.await(anna, cmp.Or(s.done, s.acts))
	}
	anna.suspend()
	stopped := time.Now()
	st.await(boris, s.acts)
	st.during(2*s.lease, stopped)
	before, asleep := st.said(anna, s.acts), len(st.all())
	require.Positive(t, before)
	anna.signal(syscall.SIGCONT)
	if s.loses != "" {
		st.await(anna, s.loses)
	}
	st.during(3*time.Second, time.Now())
	elected := len(st.all())
	if s.again != "" {
		elected = st.first(anna, s.again, asleep)
	}
	require.Equal(t, before, st.saidBy(anna, s.acts, elected), "anna acts as a leader though boris leads")
	anna.Kill()
	if s.repeats() {
		st.await(boris, s.acts)
	}
}

// repeats reports whether the program acts, and says so, again and again.
func (s suspended) repeats() bool {
	return s.acts != `runs the job`
}

// during lets programs run until d after a time.
func (s *stage) during(d time.Duration, after time.Time) {
	for timer := time.NewTimer(time.Until(after.Add(d))); ; {
		select {
		case <-s.news:
		case <-timer.C:
			return
		}
	}
}

var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// snippets are the blocks of Go in a document.
func snippets(t *testing.T, document string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", document))
	require.NoError(t, err)
	var out []string
	for _, m := range goBlock.FindAllStringSubmatch(string(text), -1) {
		out = append(out, m[1])
	}
	return out
}

// around has, by document, a program for each snippet: the snippet replaces SNIPPET. A program that starts with
// "//" says why its snippet is not tested.
var around = map[string][]string{
	"README.md": {`SNIPPET`},
	"docs/guide.md": {
		preamble + `
const roles = 2

func run(ctx context.Context, n *neli.Neli) error {
SNIPPET
	return err
}

func schedule(ctx context.Context, l neli.Leadership) error { return serveShard(ctx, l) }

func serveShard(ctx context.Context, l neli.Leadership) error {
	for ctx.Err() == nil {
		log.Print("serves key")
		time.Sleep(500 * time.Millisecond)
	}
	return nil
}
`,
		preamble + `
const roles = slots

SNIPPET
func run(ctx context.Context, n *neli.Neli) error {
	for ctx.Err() == nil {
		if _, err := n.Pulse(100 * time.Millisecond); err != nil {
			return err
		}
		time.Sleep(500 * time.Millisecond)
		handle(n, "key")
	}
	return nil
}
`,
		preamble + `
const roles = 1

SNIPPET
func run(ctx context.Context, n *neli.Neli) error {
	db := sql.OpenDB(table{})
	for ctx.Err() == nil {
		if _, err := n.Pulse(100 * time.Millisecond); err != nil {
			return err
		}
		time.Sleep(500 * time.Millisecond)
		_ = setBalance(ctx, n, db, 0, "account", 1)
	}
	return nil
}
` + table,
		"// a test of its own: TestTheGuidesTestPasses",
	},
	"docs/fencing.md": {
		preamble + `
const roles = 1

SNIPPET
var due = make(chan int)

func run(ctx context.Context, n *neli.Neli) error {
	db := sql.OpenDB(table{})
	go func() {
		for i := 0; ; i++ {
			time.Sleep(500 * time.Millisecond)
			due <- i
		}
	}()
	return n.Lead(ctx, func(ctx context.Context, l neli.Leadership) error { return lead(ctx, l, db) })
}
` + table,
		"// the example fenced-kafka is this, and is tried on a broker that has transactions",
	},
	"docs/discovery.md": {"// says where to send requests: it is no leader's"},
}

const table = `
// table is a database that prints what is written to it.
type table struct{}

func (t table) Connect(context.Context) (driver.Conn, error)     { return t, nil }
func (t table) Driver() driver.Driver                            { return nil }
func (t table) Prepare(string) (driver.Stmt, error)              { return nil, errors.New("none") }
func (t table) Begin() (driver.Tx, error)                        { return t, nil }
func (t table) Commit() error                                    { return nil }
func (t table) Rollback() error                                  { return nil }
func (t table) Close() error                                     { return nil }
func (t table) ExecContext(_ context.Context, q string, _ []driver.NamedValue) (driver.Result, error) {
	log.Print(strings.Fields(q)[0])
	return driver.RowsAffected(1), nil
}
`

const preamble = `package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log"
	"strings"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/fence"
)

var (
	_ fence.Term
	_ = errors.New
	_ driver.Conn
	_ sql.DB
	_ = strings.Fields
	_ = time.Second
)

func main() {
	n, err := neli.New(neli.Config{
		KafkaConfig:   neli.KafkaConfigMap{"bootstrap.servers": "localhost:9092"},
		LeaderGroupID: "snippet",
		Roles:         roles,
	})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(run(context.Background(), n))
}
`

// acting matches the output of the snippets when they act.
const acting = `sending what is due|serves key|UPDATE`

// Each snippet of the README and the guides that acts as a leader is built unchanged but for the brokers'
// address, and tested like the examples.
func TestASuspendedSnippetDoesNothing(t *testing.T) {
	for document, programs := range around {
		all := snippets(t, document)
		require.Len(t, all, len(programs), "a program around each snippet of %s", document)
		for i, program := range programs {
			if strings.HasPrefix(program, "//") {
				continue
			}
			t.Run(document+" "+string(rune('1'+i)), func(t *testing.T) {
				t.Parallel()
				source := strings.Replace(program, "SNIPPET", all[i], 1)
				source = strings.Replace(source, `"localhost:9092"`, `os.Getenv("BOOTSTRAP")`, 1)
				if !strings.Contains(source, `"os"`) {
					source = strings.Replace(source, "\t\"log\"\n", "\t\"log\"\n\t\"os\"\n", 1)
				}
				binary := buildSnippet(t, source)
				none := func(flags, string) []string { return nil }
				trySuspended(t, binary, suspended{args: none, acts: acting, lease: leaseT})
			})
		}
	}
}

// buildSnippet builds a program with the modules that the examples require.
func buildSnippet(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "main.go")
	require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
	binary := filepath.Join(dir, "snippet")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, file).CombinedOutput()
	require.NoError(t, err, "%s\n%s", out, source)
	return binary
}

// The guide's test of a loop passes unchanged.
func TestTheGuidesTestPasses(t *testing.T) {
	all := snippets(t, "docs/guide.md")
	source := `package guide

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

func TestGuide(t *testing.T) {
` + all[len(all)-1] + "}\n"
	file := filepath.Join(t.TempDir(), "guide_test.go")
	require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "test", "-count=1", file).CombinedOutput()
	require.NoError(t, err, "%s\n%s", out, source)
}

// The leader of the page about fences ends with its term, also if nothing is due.
func TestTheFencedLeaderEndsWithItsTerm(t *testing.T) {
	source := `package fencing

import (
	"context"
	"database/sql"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/fence"
)

` + snippets(t, "docs/fencing.md")[0] + `
func TestLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		due = make(chan int)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if err := lead(ctx, neli.Leadership{}, nil); err != context.Canceled {
			t.Fatal(err)
		}
	})
}

var due chan int
`
	file := filepath.Join(t.TempDir(), "fencing_test.go")
	require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "test", "-count=1", file).CombinedOutput()
	require.NoError(t, err, "%s\n%s", out, source)
}
