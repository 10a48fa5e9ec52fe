package nelihttp

import (
	"context"
	"sync"

	"github.com/goneli/neli"
)

// Gate lets a process keep a role until it has answered the requests for it. Pass it to [Forward] by [WithGate], and call
// Serve in the function that [neli.Neli.Lead] runs:
//
//	var gate nelihttp.Gate
//	mux.Handle("/keys/{key}", nelihttp.Forward(n, byKey, serve, nelihttp.WithTargets(ours), nelihttp.WithGate(&gate)))
//	n.Lead(ctx, gate.Serve)
//
// The zero Gate is ready for use. A Gate must not be copied, and is for one Neli. Its methods may be called concurrently.
type Gate struct {
	mu    sync.Mutex
	terms map[int]*served // by role: those that Serve keeps open
}

// served is a term whose requests are let in.
type served struct {
	token int64
	work  sync.WaitGroup // requests in progress; a WaitGroup, since time passes in a synctest bubble while one is awaited
}

// Serve admits requests for the role of a term until ctx ends, and returns nil when those in progress are answered.
// Until it begins, and from the end of ctx until another process leads, [Forward] answers new requests with 503. If
// leadership is lost, and not given up, another process may lead before Serve returns: so pass the token to what requests
// change.
func (g *Gate) Serve(ctx context.Context, l neli.Leadership) error {
	t := &served{token: l.Token}
	g.mu.Lock()
	if g.terms == nil {
		g.terms = map[int]*served{}
	}
	g.terms[l.Role] = t
	g.mu.Unlock()
	<-ctx.Done()
	g.mu.Lock()
	delete(g.terms, l.Role)
	g.mu.Unlock()
	t.work.Wait()
	return nil
}

// enter lets a request in, unless it returns nil. The caller must call work.Done.
func (g *Gate) enter(in Term) *served {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.terms[in.Role]
	if t == nil || t.token != in.Token {
		return nil
	}
	t.work.Add(1)
	return t
}

// WithGate lets Forward serve requests only while the gate's Serve runs for the same term. Otherwise, while this process
// still leads the role, a client gets 503, and another process of the group 421, as if this process did not lead any more.
func WithGate(g *Gate) ForwardOption {
	return func(f *forwarder) { f.gate = g }
}
