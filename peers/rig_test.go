package peers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goneli/neli/internal/said"
	"github.com/goneli/neli/kafka"
)

// programs are the programs that the test binary runs instead of the tests, by the environment variable
// that holds the program's orders.
var programs = map[string]func(orders string) error{}

// TestMain runs the tests, or one of the programs.
func TestMain(m *testing.M) {
	for variable, run := range programs {
		if orders := os.Getenv(variable); orders != "" {
			if err := run(orders); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	goleak.VerifyTestMain(m)
}

// within bounds what takes milliseconds on a quiet machine.
const within = 2 * time.Minute

// given are the ports that tests have got. No other test gets one, even while the host at it is down.
var given sync.Map

// freeAddresses returns n free addresses of this machine. Their ports are below those that the
// system uses for outgoing connections: otherwise a host that is restarted would sometimes find
// its port in use.
func freeAddresses(t *testing.T, n int) (all []string) {
	t.Helper()
	for len(all) < n {
		port := 20_000 + rand.IntN(12_000)
		if _, twice := given.LoadOrStore(port, true); twice {
			continue
		}
		address := fmt.Sprintf("127.0.0.1:%d", port)
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			all = append(all, address)
		}
	}
	return all
}

// Hosts returns n log hosts a, b, c … on free addresses.
func Hosts(t *testing.T, n int) []Host {
	t.Helper()
	var hosts []Host
	for i, address := range freeAddresses(t, n) {
		hosts = append(hosts, Host{ID: string(rune('a' + i)), Address: address})
	}
	return hosts
}

// journal is a log handler that keeps its lines and signals new ones.
type journal struct {
	said.Text
	lines chan struct{}
}

func newJournal() (*journal, *slog.Logger) {
	j := &journal{lines: make(chan struct{}, 1)}
	return j, slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (j *journal) Write(line []byte) (int, error) {
	defer ring(j.lines)
	return j.Text.Write(line)
}

// await waits for a text in the log.
func (j *journal) await(t *testing.T, text string) {
	t.Helper()
	late := time.After(within)
	for j.Count(text) == 0 {
		select {
		case <-j.lines:
		case <-late:
			require.Contains(t, j.String(), text)
		}
	}
}

// running is a log host run by ListenAndServe.
type running struct {
	stop    context.CancelFunc
	ended   chan error
	journal *journal
}

// startHost starts a host and waits until it listens.
func startHost(t *testing.T, c Config) *running {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r := &running{stop: stop, ended: make(chan error, 1)}
	r.journal, c.Logger = newJournal()
	c.Group = "test"
	go func() { r.ended <- ListenAndServe(ctx, c) }()
	t.Cleanup(func() { r.kill(t) })
	r.journal.await(t, "log host is up")
	return r
}

func (r *running) kill(t *testing.T) {
	t.Helper()
	r.stop()
	select {
	case err := <-r.ended:
		assert.NoError(t, err)
		r.ended <- nil
	case <-time.After(within):
		t.Error("the log host does not end")
	}
}

// startHosts starts all hosts of the list.
func startHosts(t *testing.T, c Config) map[string]*running {
	t.Helper()
	all := map[string]*running{}
	for _, h := range c.Hosts {
		own := c
		own.Self = h.ID
		all[h.ID] = startHost(t, own)
	}
	return all
}

// member is a process of the group, with what it has read, log by log.
type member struct {
	set     kafka.LogSet
	journal *journal
	stop    context.CancelFunc
	done    sync.WaitGroup

	mu      sync.Mutex
	logs    []view
	err     error // Next's final error
	wrong   []string
	changed chan struct{}
}

// view is what was read of one log since its last reset.
type view struct {
	id      string
	from    int64
	next    int64
	records []string
	resets  int
	alive   int
	top     int64
}

const testTimeout = 2 * time.Second

func join(t *testing.T, c Config) *member {
	t.Helper()
	m, err := tryJoin(t, c, kafka.LogSettings{Group: "test", Name: "tester", HeartbeatTimeout: c.HeartbeatTimeout, MaxClockDrift: defaultDrift})
	require.NoError(t, err)
	return m
}

func tryJoin(t *testing.T, c Config, s kafka.LogSettings) (*member, error) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	m := &member{stop: stop, changed: make(chan struct{}, 1)}
	m.journal, s.Logger = newJournal()
	set, err := (&provider{c}).SmallLogs(ctx, s)
	if err != nil {
		stop()
		return nil, err
	}
	m.set, m.logs = set, make([]view, set.Logs())
	m.done.Go(func() { m.read(ctx) })
	t.Cleanup(func() { m.leave(t) })
	return m, nil
}

func (m *member) leave(t *testing.T) {
	t.Helper()
	m.stop()
	m.done.Wait()
	assert.NoError(t, m.set.Close())
	m.mu.Lock()
	defer m.mu.Unlock()
	assert.Empty(t, m.wrong)
}

func (m *member) read(ctx context.Context) {
	for ctx.Err() == nil {
		e, ok, err := m.set.Next(ctx, time.Second)
		m.mu.Lock()
		if err != nil {
			m.err = err
		} else if ok {
			m.take(e)
		}
		m.mu.Unlock()
		ring(m.changed)
		if err != nil {
			return
		}
	}
}

// take checks an entry against the contract of kafka.LogSet.
func (m *member) take(e kafka.LogEntry) {
	v := &m.logs[e.Log]
	switch {
	case e.Kind == kafka.LogReset:
		v.id, v.from, v.next, v.records, v.top = e.ID, e.Offset, e.Offset, nil, e.Top
		v.resets++
	case e.ID != v.id:
		m.wrong = append(m.wrong, fmt.Sprintf("log %d: an entry of %s, reading %s", e.Log, e.ID, v.id))
	case e.Kind == kafka.LogAlive:
		v.alive++
		if e.End < v.next {
			m.wrong = append(m.wrong, fmt.Sprintf("log %d ends at %d, and %d was read", e.Log, e.End, v.next-1))
		}
	case e.Offset != v.next:
		m.wrong = append(m.wrong, fmt.Sprintf("log %d: record %d instead of %d", e.Log, e.Offset, v.next))
	default:
		v.next++
		v.records = append(v.records, string(e.Value))
	}
}

// await waits until ok returns true for what was read.
func (m *member) await(t *testing.T, what string, ok func(logs []view) bool) {
	t.Helper()
	late := time.After(within)
	for {
		m.mu.Lock()
		done := ok(m.logs)
		m.mu.Unlock()
		if done {
			return
		}
		select {
		case <-m.changed:
		case <-late:
			require.FailNow(t, "not in time: "+what, "%s", m.journal)
		}
	}
}

func (m *member) view(log int) view {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.logs[log]
}

// begun waits until every log was read at least once.
func (m *member) begun(t *testing.T) {
	t.Helper()
	m.await(t, "all logs begin", func(logs []view) bool {
		for _, v := range logs {
			if v.resets == 0 {
				return false
			}
		}
		return true
	})
}

// append appends to the incarnation that is being read. It returns a channel for the report.
func (m *member) append(log int, value string) (<-chan error, error) {
	reported := make(chan error, 2) // with room for a second report, which would be an error
	err := m.set.Append(log, m.view(log).id, []byte(value), 0, func(err error) { reported <- err })
	return reported, err
}

// reported waits for a report, and returns it.
func reported(t *testing.T, ch <-chan error) error {
	t.Helper()
	select {
	case err := <-ch:
		return err
	case <-time.After(within):
		require.FailNow(t, "a record was never reported")
		return nil
	}
}

// sure appends a record once, and returns why it was refused. A process that gets no processor for
// T/4 drops its record, and one that gets none for T loses its connection. The record is not in the
// log then, and is appended again.
func (m *member) sure(log int, value string, ballot int64) error {
	for late := time.Now().Add(within); ; <-time.After(time.Millisecond) {
		reported := make(chan error, 2)
		err := m.set.Append(log, m.view(log).id, []byte(value), ballot, func(err error) { reported <- err })
		if err == nil {
			select {
			case err = <-reported: // within T
			case <-time.After(within):
				return errors.New("the record was never reported")
			}
		}
		if starved := errors.Is(err, errDown) || errors.Is(err, errLate); !starved || time.Now().After(late) {
			return err
		}
	}
}

func (m *member) mustAppend(t *testing.T, log int, value string) {
	t.Helper()
	require.NoError(t, m.sure(log, value, 0))
}

// final waits for the error that ends Next.
func (m *member) final(t *testing.T) error {
	t.Helper()
	m.await(t, "Next ends", func([]view) bool { return m.err != nil })
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}
