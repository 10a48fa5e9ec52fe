//go:build linux

package peers

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
)

const (
	memberEnv = "NELI_SUSPENDED_MEMBER" // a member's orders, as JSON
	stopT     = 300 * time.Millisecond
	stopRoles = 4
)

func init() { programs[memberEnv] = beMember }

// stopOrders are the orders of a member that will be suspended.
type stopOrders struct {
	Hosts []Host
	Self  string
}

// span is a time during which a member led a role without interruption, by the machine's clock.
// It led at least from From to Until. A term that has ended never goes on.
type span struct {
	Member string
	Role   int
	Token  int64
	From   int64
	Until  int64
}

// report is a member's final report.
type report struct {
	Spans                  []*span
	Records, Gaps, Orphans int // read; missing before one; of an incarnation that was not begun
	Resets                 uint64
	Contradictions         uint64
	Transfers              int
}

// nanos reads a clock that all processes of the machine share.
func nanos() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}

// watched is a log set that checks its entries against the contract, as the elector gets them.
type watched struct {
	kafka.LogSet
	mu   sync.Mutex
	ids  map[int]string
	next map[int]int64
	seen report
}

// watchedLogs is a provider of such log sets.
type watchedLogs struct {
	kafka.Provider
	logs kafka.SmallLogs
	set  *watched
}

func (w *watchedLogs) SmallLogs(ctx context.Context, s kafka.LogSettings) (kafka.LogSet, error) {
	set, err := w.logs.SmallLogs(ctx, s)
	w.set.LogSet = set
	return w.set, err
}

func (w *watched) Next(ctx context.Context, timeout time.Duration) (kafka.LogEntry, bool, error) {
	e, ok, err := w.LogSet.Next(ctx, timeout)
	if ok && err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case e.Kind == kafka.LogReset:
			w.ids[e.Log], w.next[e.Log] = e.ID, e.Offset
		case e.ID != w.ids[e.Log]:
			w.seen.Orphans++
		case e.Kind == kafka.LogRecord:
			w.seen.Records++
			if e.Offset != w.next[e.Log] {
				w.seen.Gaps++
			}
			w.next[e.Log] = e.Offset + 1
		}
	}
	return e, ok, err
}

// beMember is a member in a process of its own. It leads what it can, hands roles over all the
// time, and answers "state" with the holders that it knows. At the end of standard input it
// closes, and reports.
func beMember(orders string) error {
	var o stopOrders
	if err := json.Unmarshal([]byte(orders), &o); err != nil {
		return err
	}
	p := &provider{Config{Hosts: o.Hosts, Self: o.Self}}
	w := &watchedLogs{Provider: p, logs: p, set: &watched{ids: map[int]string{}, next: map[int]int64{}}}
	n, err := neli.New(neli.Config{Provider: w, LeaderGroupID: "test", Name: o.Self, HeartbeatTimeout: stopT, Roles: stopRoles, DrainTimeout: stopT,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var work sync.WaitGroup
	r := report{}
	work.Go(func() { r.Spans = watchTerms(ctx, n) })
	work.Go(func() { r.Transfers = handOver(ctx, n, o) })
	if _, err := n.Background(func() { pause(ctx, time.Millisecond) }); err != nil {
		return err
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println("holders " + holders(n))
	}
	stop()
	work.Wait()
	stats := n.Stats()
	if err := n.Close(); err != nil {
		return err
	}
	r.Records, r.Gaps, r.Orphans = w.set.seen.Records, w.set.seen.Gaps, w.set.seen.Orphans
	r.Resets, r.Contradictions = stats.LogResets, stats.Contradictions
	out, err := json.Marshal(r)
	fmt.Println("report " + string(out))
	return err
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// holders returns the holder of each role, as far as a member knows; "?" for an unknown one.
func holders(n *neli.Neli) string {
	all := make([]string, stopRoles)
	for role := range all {
		if h, ok := n.Holder(role); ok {
			all[role] = h.Name
		} else {
			all[role] = "?"
		}
	}
	return strings.Join(all, ",")
}

// watchTerms records what the member leads until ctx is done.
func watchTerms(ctx context.Context, n *neli.Neli) (all []*span) {
	var open [stopRoles]*span
	for ctx.Err() == nil {
		for role := range stopRoles {
			before := nanos()
			token, leads := n.Token(role)
			after := nanos()
			switch s := open[role]; {
			case !leads:
				open[role] = nil
			case s != nil && s.Token == token:
				s.Until = before // it led at some instant between before and after
			default:
				open[role] = &span{n.Config().Name, role, token, after, after}
				all = append(all, open[role])
			}
		}
		pause(ctx, time.Millisecond)
	}
	return all
}

// handOver hands roles that the member leads to any other member until ctx is done.
func handOver(ctx context.Context, n *neli.Neli, o stopOrders) (done int) {
	for ctx.Err() == nil {
		pause(ctx, rand.N(stopT/2))
		role := rand.IntN(stopRoles)
		for _, i := range rand.Perm(len(o.Hosts)) {
			if to := o.Hosts[i].ID; to == o.Self || !n.IsLeaderOf(role) {
				continue
			} else if transfer(ctx, n, role, to) == nil {
				done++
				break
			}
		}
	}
	return done
}

func transfer(ctx context.Context, n *neli.Neli, role int, to string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*stopT)
	defer cancel()
	return n.Transfer(ctx, role, to)
}

// process is one of the programs in a process of its own, as the test sees it.
type process struct {
	name   string
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string
	errors bytes.Buffer
}

// startProcess starts the program of an environment variable.
func startProcess(t *testing.T, name, variable string, orders any) *process {
	t.Helper()
	text, err := json.Marshal(orders)
	require.NoError(t, err)
	s := &process{name: name, cmd: exec.Command(os.Args[0]), lines: make(chan string, 10)}
	s.cmd.Env = append(os.Environ(), variable+"="+string(text))
	s.cmd.Stderr = &s.errors
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.in, err = s.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(s.lines)
		in := bufio.NewScanner(out)
		in.Buffer(nil, 1<<26)
		for in.Scan() {
			s.lines <- in.Text()
		}
	})
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		for range s.lines { // until it has ended
		}
		reading.Wait()
		_ = s.cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", s.name, &s.errors)
		}
	})
	return s
}

// line waits for a line of the given kind.
func (s *process) line(t *testing.T, kind string) string {
	t.Helper()
	late := time.After(within)
	for {
		select {
		case line, ok := <-s.lines:
			require.True(t, ok, "%s has ended: %s", s.name, &s.errors)
			if rest, is := strings.CutPrefix(line, kind+" "); is {
				return rest
			}
		case <-late:
			require.FailNow(t, "not in time", "%s: %s", s.name, kind)
		}
	}
}

func (s *process) holders(t *testing.T) string {
	t.Helper()
	_, err := fmt.Fprintln(s.in, "state")
	require.NoError(t, err)
	return s.line(t, "holders")
}

// settled waits until all members name the same holder of each role.
func settled(t *testing.T, all []*process) {
	t.Helper()
	said := make([]string, len(all))
	require.Eventually(t, func() bool {
		for i, s := range all {
			said[i] = s.holders(t)
		}
		return !strings.Contains(said[0], "?") && said[0] == said[1] && said[0] == said[2]
	}, within, stopT/4, "%q", said)
}

// TestSuspendedMembersLoseNothing suspends each of three members in turn for 0.3 to 3 T, for
// NELI_ROUNDS rounds, while all hand over roles. Each hosts a log. No member may miss a record or
// a reset, no fold may differ, and no role may have two leaders at any time.
func TestSuspendedMembersLoseNothing(t *testing.T) {
	rounds := 4
	if more, err := strconv.Atoi(os.Getenv("NELI_ROUNDS")); err == nil && more > 0 {
		rounds = more
	}
	hosts := Hosts(t, 3)
	var all []*process
	for _, h := range hosts {
		all = append(all, startProcess(t, h.ID, memberEnv, stopOrders{hosts, h.ID}))
	}
	settled(t, all)
	began, stops := time.Now(), 0
	for range rounds {
		for _, s := range all {
			d := stopT*3/10 + rand.N(stopT*27/10)
			require.NoError(t, s.cmd.Process.Signal(syscall.SIGSTOP))
			pause(t.Context(), d)
			require.NoError(t, s.cmd.Process.Signal(syscall.SIGCONT))
			pause(t.Context(), rand.N(2*stopT))
			stops++
		}
		if stops%60 == 0 {
			settled(t, all)
		}
	}
	settled(t, all)
	var spans []*span
	var sum report
	for _, s := range all {
		require.NoError(t, s.in.Close())
		var r report
		require.NoError(t, json.Unmarshal([]byte(s.line(t, "report")), &r))
		assert.Positive(t, r.Records)
		assert.Zero(t, r.Gaps, "%s missed records without a reset:\n%s", s.name, &s.errors)
		assert.Zero(t, r.Orphans, "%s was not told of a reset:\n%s", s.name, &s.errors)
		assert.Zero(t, r.Contradictions, "%s found that folds differ:\n%s", s.name, &s.errors)
		spans = append(spans, r.Spans...)
		sum.Records, sum.Resets, sum.Transfers = sum.Records+r.Records, sum.Resets+r.Resets, sum.Transfers+r.Transfers
	}
	oneLeader(t, spans)
	t.Logf("%d suspensions in %v: %d terms, %d roles handed over, %d records read, %d logs begun again", stops, time.Since(began).Round(time.Second),
		len(spans), sum.Transfers, sum.Records, sum.Resets)
	assert.Positive(t, sum.Transfers)
	assert.Greater(t, len(spans), stops/3, "roles hardly moved")
}

// oneLeader asserts that the terms of a role follow each other, with increasing tokens.
func oneLeader(t *testing.T, spans []*span) {
	t.Helper()
	slices.SortFunc(spans, func(a, b *span) int { return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.From, b.From)) })
	for i := 1; i < len(spans); i++ {
		a, b := spans[i-1], spans[i]
		if a.Role != b.Role {
			continue
		}
		assert.Less(t, a.Until, b.From, "two leaders: %+v and %+v", *a, *b)
		assert.Less(t, a.Token, b.Token, "tokens: %+v and %+v", *a, *b)
	}
}
