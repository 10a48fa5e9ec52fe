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

// preparing is what a seed decides about that.
type preparing struct {
	some  bool // three of four members prepare
	trail bool // preparations fail, hang and ignore the end of their contexts
}

func drawPreparing(seed uint64, p plan) preparing {
	rnd := rand.New(rand.NewPCG(seed, 41))
	return preparing{some: rnd.IntN(3) == 0 && p.nomination == neli.NominationOpen, trail: rnd.IntN(2) == 0}
}

// drain is the least time that an application has to finish: if successors prepare, half of DrainTimeout is
// theirs.
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
	mu      sync.Mutex
	rnd     *rand.Rand
	running int
	open    map[context.Context]int // contexts that have not ended, by role
}

// prepares completes a member's configuration.
func (w *world) prepares(p *proc, seed uint64, cfg *neli.Config) {
	p.bench = bench{rnd: rand.New(rand.NewPCG(seed, 43)), open: map[context.Context]int{}}
	if !w.preparing.some || p.bench.rnd.IntN(4) == 0 {
		return
	}
	cfg.Prepare, cfg.MaxPrepares, cfg.PrepareTimeout = p.prepare, mostPrepares, simPrepare
}

var errUnprepared = errors.New("unprepared")

// prepare is the application's Prepare. It is suspended with its process.
func (p *proc) prepare(ctx context.Context, role int) error {
	if stopped := p.app.stoppedUntil(); stopped != nil {
		<-stopped
	}
	b := &p.bench
	b.mu.Lock()
	b.running++
	running, takes, fate := b.running, time.Duration(b.rnd.ExpFloat64()*float64(200*time.Millisecond)), b.rnd.IntN(20)
	b.open[ctx] = role
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.running--
	}()
	if running > mostPrepares {
		p.w.violated("%s: %d roles are being prepared at once", p.id, running)
	}
	context.AfterFunc(ctx, func() { p.unprepared(ctx) })
	if !p.w.preparing.trail {
		fate = 19
	}
	switch fate {
	case 0:
		p.w.opts.Seen.Count("prepare: hangs")
		<-ctx.Done()
		return context.Cause(ctx)
	case 1:
		p.w.opts.Seen.Count("prepare: ignores its context")
		time.Sleep(2 * simPrepare)
		return nil
	case 2:
		p.w.opts.Seen.Count("prepare: fails")
		time.Sleep(takes)
		return errUnprepared
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// unprepared notes the end of a context.
func (p *proc) unprepared(ctx context.Context) {
	switch why := context.Cause(ctx); {
	case errors.Is(why, neli.ErrLed):
		p.w.opts.Seen.Count("prepare: led")
	case errors.Is(why, neli.ErrNotLed):
		p.w.opts.Seen.Count("prepare: not led")
	default:
		p.w.violated("%s: a preparation ends by %v", p.id, why)
	}
	p.bench.mu.Lock()
	defer p.bench.mu.Unlock()
	delete(p.bench.open, ctx)
}

// keeps returns the roles whose contexts have not ended.
func (b *bench) keeps() (roles []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ctx, role := range b.open {
		if ctx.Err() == nil {
			roles = append(roles, role)
		}
	}
	return roles
}
