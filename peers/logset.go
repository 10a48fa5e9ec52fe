package peers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/goneli/neli/peers/internal/wire"
)

// logSet is all logs of the list, as one process sees them.
type logSet struct {
	links   []*link
	server  *server // nil: this process hosts no log
	entries chan LogEntry
	fatal   chan error
	cancel  context.CancelFunc
	work    sync.WaitGroup
	close   func() error

	mu      sync.Mutex
	begun   []bool  // logs that were read once
	refused []error // by hosts that were never read
}

// maxEntries is how many entries may wait for Next; after that the hosts have to wait, and
// cut this process off in the end.
const maxEntries = 256

// newLogSet starts this process's own log host, if it has one, and connects to all.
func newLogSet(ctx context.Context, s *settings, logger *slog.Logger) (*logSet, error) {
	n := len(s.agreed.hosts)
	v := &logSet{entries: make(chan LogEntry, maxEntries), fatal: make(chan error, 1), begun: make([]bool, n), refused: make([]error, n)}
	v.close = sync.OnceValue(v.shut)
	if s.self.ID != "" {
		var err error
		if v.server, err = newServer(ctx, s, logger); err != nil {
			return nil, err
		}
	}
	run, cancel := context.WithCancel(context.Background())
	v.cancel = cancel
	for i, h := range s.agreed.hosts {
		l := &link{index: i, to: h, settings: s, emit: v.emit, refused: v.refusedBy, logger: logger, next: -1, open: s.opener(h)}
		if h == s.self {
			l.open = v.openOwn
		}
		v.links = append(v.links, l)
		v.work.Go(func() { l.run(run) })
	}
	return v, nil
}

// opener returns what opens a stream to a host.
func (s *settings) opener(h Host) func(context.Context) (clientStream, func(), error) {
	return func(ctx context.Context) (clientStream, func(), error) {
		conn, err := s.connect(h)
		if err != nil {
			return nil, nil, err
		}
		stream, err := wire.NewSmallLogClient(conn).Follow(ctx)
		if err != nil {
			_ = conn.Close() // there is nothing on its way
			return nil, nil, err
		}
		return stream, func() { _ = conn.Close() }, nil
	}
}

// openOwn opens a stream to the log host inside this process.
func (v *logSet) openOwn(ctx context.Context) (clientStream, func(), error) {
	p := openPipe(ctx, v.server.host)
	return p, func() { <-p.over }, nil
}

// emit hands an entry to Next.
func (v *logSet) emit(ctx context.Context, e LogEntry) bool {
	if e.Kind == LogReset {
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

// ErrRefused is wrapped by the final error of a process that a majority of the log hosts
// has refused, none of them ever having taken it: its configuration is not theirs.
var ErrRefused = errors.New("refused by a majority of the log hosts")

// refusedBy takes note of a refusal. It is final when a majority of the hosts refuses and
// never did anything else; later it is retried for ever, as the hosts may be wrong.
func (v *logSet) refusedBy(index int, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.begun[index] {
		return
	}
	v.refused[index] = err
	var all []error
	for _, err := range v.refused {
		if err != nil {
			all = append(all, err)
		}
	}
	if len(all) > len(v.refused)/2 {
		select {
		case v.fatal <- fmt.Errorf("peers: %w:\n%w", ErrRefused, errors.Join(all...)):
		default:
		}
	}
}

func (v *logSet) Logs() int { return len(v.links) }

func (v *logSet) Next(ctx context.Context, timeout time.Duration) (LogEntry, bool, error) {
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
		return LogEntry{}, false, err
	case <-timer.C:
		return LogEntry{}, false, nil
	case <-ctx.Done():
		return LogEntry{}, false, nil
	}
}

func (v *logSet) Append(log int, id string, value []byte, ballot int64, report func(error)) error {
	if log < 0 || log >= len(v.links) {
		return fmt.Errorf("peers: log %d of %d", log, len(v.links))
	}
	return v.links[log].append(id, value, ballot, report)
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
