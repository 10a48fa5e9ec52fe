package proxy

import (
	"sync"
	"time"

	"github.com/Shopify/toxiproxy/v2/toxics"
)

// gateType is the name under which toxiproxy knows a gate.
const gateType = "neli_gate"

func init() { toxics.Register(gateType, new(gate)) }

// A gate is a toxic that decides for one direction of a proxy what passes. It is installed before the first
// connection, and then only changes its own state.
//
// Toxiproxy's own timeout and latency toxics would do the same, but adding and
// removing toxics while connections come and go deadlocks inside toxiproxy
// v2.5.0: it waits for a goroutine that waits to send to a connection's writer,
// which has ended.
//
// The zero gate lets everything pass.
type gate struct {
	mu      sync.Mutex
	mode    mode
	delay   time.Duration
	changed chan struct{} // closed on the next change; made when first asked for
}

// A mode says what a gate does with data that arrives.
type mode int

const (
	pass mode = iota
	drop
	hold
)

func (g *gate) set(m mode) {
	g.change(func() { g.mode = m })
}

func (g *gate) setDelay(d time.Duration) {
	g.change(func() { g.delay = d })
}

func (g *gate) change(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

func (g *gate) state() (mode, time.Duration, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return g.mode, g.delay, g.changed
}

// GetBufferSize returns the number of reads that can wait at the gate, because of hold or delay. A delayed read
// must not delay the next one further.
func (g *gate) GetBufferSize() int { return 1024 }

// Pipe runs once for each connection. Toxiproxy calls it, and sends nil at the end of the connection.
func (g *gate) Pipe(stub *toxics.ToxicStub) {
	for {
		select {
		case <-stub.Interrupt:
			return
		case chunk := <-stub.Input:
			if chunk == nil {
				stub.Close()
				return
			}
			for done := false; !done; {
				mode, delay, changed := g.state()
				if mode == drop {
					break
				}
				// Held data waits for the next change, delayed data until its delay is over. A writer that has
				// ended accepts nothing; then drop ends the wait.
				var due <-chan time.Time
				output := stub.Output
				if wait := delay - time.Since(chunk.Timestamp); mode == hold {
					output = nil
				} else if wait > 0 {
					output, due = nil, time.After(wait)
				}
				select {
				case output <- chunk:
					done = true
				case <-due:
				case <-changed:
				}
			}
		}
	}
}
