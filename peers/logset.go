package peers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/peers/internal/wire"
)

// logSet is all logs of the list, as one process sees them.
type logSet struct {
	size    int     // N
	lists   [][]int // see Lists; nil: one list
	logger  *slog.Logger
	entries chan kafka.LogEntry
	fatal   chan error
	cancel  context.CancelFunc
	work    sync.WaitGroup
	close   func() error
	known   chan struct{} // closed once the list is known
	list    string        // the list of hosts, hashed; written before known is closed

	mu      sync.Mutex
	links   []*link // empty until the list is known
	server  *server // nil: this process hosts no log, or does not yet
	begun   []bool  // logs that were read at least once
	refused []error // refusals by hosts whose logs were never read
}

// maxEntries is how many entries may wait for Next. When there are more, the hosts have to wait,
// and in the end cut this process off.
const maxEntries = 256

// newLogSet starts this process's own log host, if it has one, and connects to all hosts. If the
// list comes from DNS, it does so in the background, once it has the list.
func newLogSet(ctx context.Context, c Config, s kafka.LogSettings) (*logSet, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	n := cmp.Or(c.Size, len(c.all()))
	run, cancel := context.WithCancel(context.Background())
	v := &logSet{size: n, lists: c.numbers(), logger: s.Logger, entries: make(chan kafka.LogEntry, maxEntries), fatal: make(chan error, 1), cancel: cancel,
		known: make(chan struct{}), begun: make([]bool, n), refused: make([]error, n)}
	v.close = sync.OnceValue(v.shut)
	if c.Discover == "" {
		if err := v.start(ctx, run, c, s); err != nil {
			cancel()
			return nil, err
		}
		return v, nil
	}
	v.work.Go(func() {
		c, err := c.discovered(run, s.Logger)
		if err == nil {
			err = v.start(run, run, c, s)
		}
		if err != nil && run.Err() == nil {
			v.end(err)
		}
	})
	return v, nil
}

// start starts this process's host, within ctx, and the links, which run until run is done.
func (v *logSet) start(ctx, run context.Context, c Config, s kafka.LogSettings) error {
	set, err := c.settle(agreement{group: s.Group, timeout: s.HeartbeatTimeout, drift: s.MaxClockDrift}, s.Name, s.Logger)
	if err != nil {
		return err
	}
	v.list = set.agreed.list()
	close(v.known)
	var own *server
	if set.self.ID != "" {
		if own, err = newServer(ctx, set, s.Logger); err != nil {
			return err
		}
	}
	var links []*link
	for i, h := range set.agreed.all() {
		l := &link{index: i, to: h, settings: set, emit: v.emit, refused: v.refusedBy, logger: s.Logger, next: -1, open: set.opener(h)}
		if h == set.self {
			l.open = openerOf(own.host)
		}
		links = append(links, l)
	}
	v.mu.Lock()
	v.links, v.server = links, own
	v.mu.Unlock()
	if own != nil {
		v.work.Go(func() { v.watch(run, own) })
	}
	for _, l := range links {
		v.work.Go(func() { l.run(run) })
	}
	return nil
}

// watch logs if this process's host stops listening before run is done. Members that are connected
// already go on, so this is not final, but no other member can connect to the log any more.
func (v *logSet) watch(run context.Context, own *server) {
	select {
	case err := <-own.served:
		own.served <- err
		v.logger.Error("log host has stopped listening: restart this process", "host", own.host.self.ID, "address", own.listen.Addr(), "error", err)
	case <-run.Done():
	}
}

// opener returns a function that opens a stream to a host.
func (s *settings) opener(h Host) func(context.Context) (clientStream, func(), error) {
	return func(ctx context.Context) (clientStream, func(), error) {
		conn, err := s.connect(h)
		if err != nil {
			return nil, nil, err
		}
		stream, err := wire.NewSmallLogClient(conn).Follow(ctx)
		if err != nil {
			_ = conn.Close() // nothing is in flight
			return nil, nil, err
		}
		return stream, func() { _ = conn.Close() }, nil
	}
}

// openerOf returns a function that opens a stream to the log host inside this process.
func openerOf(h *host) func(context.Context) (clientStream, func(), error) {
	return func(ctx context.Context) (clientStream, func(), error) {
		p := openPipe(ctx, h)
		return p, func() { <-p.over }, nil
	}
}

// emit passes an entry to Next. It returns false if ctx is done, and Next then never returns the
// entry. A process that wakes from a suspension may find ctx done although there is room.
func (v *logSet) emit(ctx context.Context, e kafka.LogEntry) bool {
	if e.Kind == kafka.LogReset {
		v.mu.Lock()
		v.begun[e.Log], v.refused[e.Log] = true, nil
		v.mu.Unlock()
	}
	select {
	case v.entries <- e:
		return true
	case <-ctx.Done():
		return false
	}
}

// ErrRefused is wrapped by the final error of a process that a majority of the log hosts has
// refused, if none of these has ever accepted it: its configuration differs from theirs, or they
// do not admit its certificate.
var ErrRefused = errors.New("refused by a majority of the log hosts")

// refusedBy notes a refusal. If a majority of the hosts of a list refuses and none of these has ever
// accepted this process, that is final. A host that has accepted it is asked again for ever, since
// the host may be the one that is wrong.
func (v *logSet) refusedBy(index int, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.begun[index] {
		return
	}
	v.refused[index] = err
	lists := v.lists
	if lists == nil {
		lists = [][]int{numbersUpTo(v.size)}
	}
	for _, list := range lists {
		var all []error
		for _, i := range list {
			if err := v.refused[i]; err != nil {
				all = append(all, err)
			}
		}
		if len(all) > len(list)/2 {
			v.end(fmt.Errorf("peers: %w:\n%w", ErrRefused, errors.Join(all...)))
		}
	}
}

// end makes Next return a final error.
func (v *logSet) end(err error) {
	select {
	case v.fatal <- err:
	default: // there is one already
	}
}

func (v *logSet) Logs() int { return v.size }

var (
	_ kafka.Identified = (*logSet)(nil)
	_ kafka.Joint      = (*logSet)(nil)
)

// Lists implements kafka.Joint.
func (v *logSet) Lists() [][]int { return v.lists }

// numbers returns the numbers of each list's logs, or nil if there is one list.
func (c Config) numbers() [][]int {
	if len(c.Next) == 0 {
		return nil
	}
	both := make([][]int, 2)
	for i, h := range c.all() {
		for k, list := range [][]Host{c.Hosts, c.Next} {
			if slices.Contains(list, h) {
				both[k] = append(both[k], i)
			}
		}
	}
	return both
}

func numbersUpTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// Identity implements kafka.Identified: processes with the same list of hosts use the same logs.
func (v *logSet) Identity(ctx context.Context) string {
	select {
	case <-v.known:
		return v.list
	case <-ctx.Done():
		return ""
	}
}

func (v *logSet) Next(ctx context.Context, timeout time.Duration) (kafka.LogEntry, bool, error) {
	select {
	case e := <-v.entries:
		return e, true, nil
	default:
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case e := <-v.entries:
		return e, true, nil
	case err := <-v.fatal:
		return kafka.LogEntry{}, false, err
	case <-timer.C:
		return kafka.LogEntry{}, false, nil
	case <-ctx.Done():
		return kafka.LogEntry{}, false, nil
	}
}

func (v *logSet) Append(log int, id string, value []byte, ballot int64, report func(error)) error {
	if log < 0 || log >= v.size {
		return fmt.Errorf("peers: log %d of %d", log, v.size)
	}
	v.mu.Lock()
	links := v.links
	v.mu.Unlock()
	if len(links) == 0 {
		return errDown
	}
	return links[log].append(id, value, ballot, report)
}

func (v *logSet) Close() error { return v.close() }

func (v *logSet) shut() error {
	v.cancel()
	v.work.Wait()
	if v.server != nil {
		return v.server.close()
	}
	return nil
}
