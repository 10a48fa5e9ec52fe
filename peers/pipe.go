package peers

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"

	"github.com/goneli/neli/peers/internal/wire"
)

// pipe is a stream between a member and the log host in the same process. No network can cut them
// off from each other, and nothing is encoded.
type pipe struct {
	ctx    context.Context
	toHost chan *wire.ToHost
	toUser chan *wire.FromHost
	over   chan struct{} // closed when the host's end has returned, after err is set
	err    error
}

// pipeBuffer is how many messages may be in flight in each direction.
const pipeBuffer = 16

// openPipe lets the host serve a stream within the process, and closes over when that ends.
func openPipe(ctx context.Context, h *host) *pipe {
	ctx, cancel := context.WithCancel(ctx)
	p := &pipe{ctx: ctx, toHost: make(chan *wire.ToHost, pipeBuffer), toUser: make(chan *wire.FromHost, pipeBuffer), over: make(chan struct{})}
	go func() {
		p.err = h.follow(pipeEnd{p})
		cancel()
		close(p.over)
	}()
	return p
}

func (p *pipe) Send(m *wire.ToHost) error {
	select {
	case p.toHost <- m:
		return nil
	case <-p.ctx.Done():
		return io.EOF // as with gRPC: Recv returns the reason
	}
}

func (p *pipe) Recv() (*wire.FromHost, error) {
	select {
	case m := <-p.toUser:
		return m, nil
	case <-p.over:
		return nil, p.err
	}
}

// pipeEnd is the host's end of a pipe.
type pipeEnd struct{ p *pipe }

func (e pipeEnd) Context() context.Context { return e.p.ctx }

func (e pipeEnd) Send(m *wire.FromHost) error {
	if r := m.GetRecord(); r != nil {
		r.Value = bytes.Clone(r.Value) // the receiver owns it, and the log sends its own to others
	}
	select {
	case e.p.toUser <- m:
		return nil
	case <-e.p.ctx.Done():
		return e.p.ctx.Err()
	}
}

func (e pipeEnd) Recv() (*wire.ToHost, error) {
	select {
	case m := <-e.p.toHost:
		return m, nil
	case <-e.p.ctx.Done():
		return nil, e.p.ctx.Err()
	}
}

const (
	// repeatEvery is the period in which a host logs the same trouble at most once.
	repeatEvery = time.Minute
	// maxLines is how many different lines one logLimit lets a host log in that period.
	maxLines = 20
)

// logLimit limits what others can make a host log. A process that is refused tries again every few seconds,
// and a stranger chooses part of the text.
type logLimit struct {
	mu    sync.Mutex
	since time.Time
	said  map[string]bool // since then
}

// due reports whether a line with this text is to be logged.
func (l *logLimit) due(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.said == nil || time.Since(l.since) >= repeatEvery {
		l.since, l.said = time.Now(), map[string]bool{}
	}
	if l.said[text] || len(l.said) == maxLines {
		return false
	}
	l.said[text] = true
	return true
}
