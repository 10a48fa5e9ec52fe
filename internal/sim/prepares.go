package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/goneli/neli"
)

// Members that prepare roles before they lead them, beside others that do not.

// preparing is what a seed decides about preparation.
type preparing struct {
	some  bool // three of four members prepare
	trail bool // preparations fail, hang and ignore the end of their contexts
}

func drawPreparing(seed uint64, p plan) preparing {
	rnd := rand.New(rand.NewPCG(seed, 41))
	return preparing{some: rnd.IntN(3) == 0 && p.nomination == neli.NominationOpen, trail: rnd.IntN(2) == 0}
}

// drain is the least time that an application has to finish: if successors prepare, half of DrainTimeout is theirs.
func (p preparing) drain() time.Duration {
	if p.some {
		return simDrain / 2
	}
	return simDrain
}

const (
	mostPrepares = 3
	simPrepare   = 3 * time.Second
)

// bench is a process's preparations.
type bench struct {
	id      string
	j       *journal
	seen    *Seen
	trail   bool                 // preparations fail, hang and ignore the end of their contexts
	limit   time.Duration        // of one call of Prepare
	stopped func() chan struct{} // returns a channel that is closed when the process goes on; nil: it is not suspended

	mu      sync.Mutex
	rnd     *rand.Rand
	running int
	open    map[context.Context]int // contexts that have not ended, with their roles
}

// prepares completes a member's configuration.
func (w *world) prepares(p *proc, seed uint64, cfg *neli.Config) {
	p.bench.starts(p.id, &w.journal, w.opts.Seen, seed)
	p.bench.trail, p.bench.limit, p.bench.stopped = w.preparing.trail, simPrepare, p.app.stoppedUntil
	if w.preparing.some {
		p.bench.joins(cfg)
	}
}

func (b *bench) starts(id string, j *journal, seen *Seen, seed uint64) {
	b.id, b.j, b.seen, b.rnd, b.open = id, j, seen, rand.New(rand.NewPCG(seed, 43)), map[context.Context]int{}
}

// joins lets three of four members prepare, and half of these stand by.
func (b *bench) joins(cfg *neli.Config) {
	if b.rnd.IntN(4) > 0 {
		cfg.Prepare, cfg.MaxPrepares, cfg.PrepareTimeout = b.prepare, mostPrepares, b.limit
		cfg.Standby = b.rnd.IntN(2) == 0
	}
}

var errUnprepared = errors.New("unprepared")

// prepare is the application's Prepare. It is suspended with its process.
func (b *bench) prepare(ctx context.Context, role int) error {
	if stopped := b.stopped(); stopped != nil {
		<-stopped
	}
	b.mu.Lock()
	b.running++
	running, takes, fate := b.running, time.Duration(b.rnd.ExpFloat64()*float64(b.limit)/15), b.rnd.IntN(20)
	b.open[ctx] = role
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.running--
	}()
	if running > mostPrepares {
		b.j.violated("%s: %d roles are being prepared at once", b.id, running)
	}
	context.AfterFunc(ctx, func() { b.ends(ctx) })
	if !b.trail {
		fate = 19
	}
	switch fate {
	case 0:
		b.seen.Count("prepare: hangs")
		<-ctx.Done()
		return context.Cause(ctx)
	case 1:
		b.seen.Count("prepare: ignores its context")
		time.Sleep(2 * b.limit)
		return nil
	case 2:
		b.seen.Count("prepare: fails")
		time.Sleep(takes)
		return errUnprepared
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// ends notes the end of a context.
func (b *bench) ends(ctx context.Context) {
	switch why := context.Cause(ctx); {
	case errors.Is(why, neli.ErrLed):
		b.seen.Count("prepare: led")
	case errors.Is(why, neli.ErrNotLed):
		b.seen.Count("prepare: not led")
	default:
		b.j.violated("%s: a preparation ends by %v", b.id, why)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, ctx)
}

// closed asserts that a process that has closed was told of the end of all contexts.
func (b *bench) closed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ctx, role := range b.open {
		if ctx.Err() == nil {
			b.j.violated("%s closed and was never told that it need not prepare %d", b.id, role)
		}
	}
}
