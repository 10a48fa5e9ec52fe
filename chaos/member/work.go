package member

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/chaos/history"
	"github.com/goneli/neli/chaos/store"
	"github.com/goneli/neli/testkit/pause"
	"github.com/goneli/neli/testkit/witness"
)

// patience is for one operation; the store is never cut off, only slow at times.
const patience = 3 * time.Second

// lead is the work of a leader: several writers, which know nothing of each other.
func (p *process) lead(ctx context.Context, l neli.Leadership) {
	var writers sync.WaitGroup
	for i := range p.Writers {
		writers.Go(func() { p.write(ctx, l, i) })
	}
	writers.Wait()
}

// write writes to the role's register again and again, each time after a check that
// it is led. Some writes are held up in between, as by a garbage collection or a
// swapped page, and do not look again: that is the work that outlives its check,
// and what tokens are for.
func (p *process) write(ctx context.Context, l neli.Leadership, writer int) {
	c := &store.Client{DSN: p.DSN}
	defer c.Close(context.Background())
	rng := rand.New(rand.NewPCG(p.Seed, uint64(l.Token)<<16|uint64(l.Role)<<8|uint64(writer)))
	for pause.For(ctx, p.WriteEvery/2+time.Duration(rng.Int64N(int64(p.WriteEvery)))) == nil {
		if !l.Valid() {
			continue // the context is about to end
		}
		op := history.Op{Kind: history.Write, Role: l.Role, Token: l.Token, Checked: witness.Now(),
			Value: p.Number<<32 | p.values.Add(1)}
		if rng.Float64() < p.PauseOften {
			_ = pause.For(context.Background(), time.Duration(rng.Int64N(int64(p.PauseAtMost))))
		}
		p.do(op, func(ctx context.Context, op *history.Op) error {
			accepted, err := c.Write(ctx, op.Role, op.Token, op.Value, p.Name)
			op.Outcome = history.Rejected
			if accepted {
				op.Outcome = history.Accepted
			}
			return err
		})
	}
}

// read reads the registers in turn, whoever leads.
func (p *process) read(ctx context.Context) {
	c := &store.Client{DSN: p.DSN}
	defer c.Close(context.Background())
	for role := 0; pause.For(ctx, p.ReadEvery) == nil; role = (role + 1) % p.Roles {
		p.do(history.Op{Kind: history.Read, Role: role}, func(ctx context.Context, op *history.Op) (err error) {
			op.Token, op.Value, err = c.Read(ctx, op.Role)
			op.Outcome = history.Accepted
			return err
		})
	}
}

// do tells of an operation before it is begun and after it has ended, whatever
// happens to the process in between.
func (p *process) do(op history.Op, f func(context.Context, *history.Op) error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	id := p.ops.Add(1)
	op.Member, op.Invoked, op.Returned, op.Outcome = p.Name, witness.Now(), witness.Never, history.Unknown
	asked := op
	p.tell(Line{Say: SayInvoke, ID: id, Op: &asked})
	err := f(ctx, &op)
	op.Returned = witness.Now()
	switch {
	case errors.Is(err, store.ErrNotSent):
		op.Outcome = history.NotSent
	case err != nil:
		op.Outcome, op.Returned = history.Unknown, witness.Never
		p.log.Info("store", "error", err)
	}
	p.tell(Line{Say: SayReturn, ID: id, Op: &op})
}
