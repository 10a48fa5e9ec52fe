package member

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/goneli/neli"
	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/chaos/store"
	"github.com/goneli/neli/lab/pause"
	"github.com/goneli/neli/lab/witness"
)

// patience bounds one operation. The store is never cut off, only slow at times.
const patience = 3 * time.Second

// openStores opens what the leaders of each role write to. Hosts with an odd number write to Kafka by
// one client, the others by the other one, so that each fences the other.
func (p *process) openStores() (err error) {
	number, err := strconv.Atoi(strings.TrimPrefix(hostOf(p.Name), "m"))
	if err != nil {
		return err
	}
	c := store.Config{DSN: p.DSN, Bootstrap: p.Bootstrap, Franz: number%2 == 0, Unfenced: p.Unfenced}
	p.stores, err = store.Open(c, p.Stores)
	return err
}

func (p *process) closeStores() {
	for i, s := range p.stores {
		if !slices.Contains(p.stores[:i], s) {
			s.Close()
		}
	}
}

// lead does the work of a leader: it runs several independent writers, or one if the store allows only one.
func (p *process) lead(ctx context.Context, l neli.Leadership) {
	s := p.stores[l.Role]
	writers := 1
	if s.Concurrent() {
		writers = p.Writers
	}
	c := &claim{process: p, op: history.Op{Kind: history.Fence, Role: l.Role, Token: l.Token}}
	term := store.Term{Term: l, Role: l.Role, Token: l.Token, Member: p.Name, Claiming: c.begin, Claimed: c.end}
	err := s.Lead(ctx, term, func(ctx context.Context, w store.Writer) error {
		var work errgroup.Group
		for i := range writers {
			work.Go(func() error { return p.write(ctx, l, w, i) })
		}
		return work.Wait()
	})
	if err != nil {
		p.log.Info("the store has refused the term, or it is over", "role", l.Role, "error", err)
	}
	<-ctx.Done()
}

// claim reports a term's claim in its store.
type claim struct {
	*process
	id int64
	op history.Op
}

func (c *claim) begin() {
	c.id, c.op = c.asked(c.op)
}

func (c *claim) end(accepted bool) {
	op := c.op
	op.Returned, op.Outcome = witness.Now(), history.Rejected
	if accepted {
		op.Outcome = history.Accepted
	}
	c.tell(Line{Say: SayReturn, ID: c.id, Op: &op})
}

// write writes for the role repeatedly, each time after a check that this member leads. Some writes are delayed
// between the check and the write, as by a garbage collection, and do not check again: tokens are there to stop
// these. Without fences, its first write is delayed until a later term has written. It returns an error if the
// writer cannot be used any more.
func (p *process) write(ctx context.Context, l neli.Leadership, w store.Writer, writer int) error {
	rng := rand.New(rand.NewPCG(p.Seed, uint64(l.Token)<<16|uint64(l.Role)<<8|uint64(writer)))
	if p.Unfenced && l.Valid() {
		late := p.checked(l)
		defer func() {
			p.outlive(l)
			_ = p.deed(w, late)
		}()
	}
	for pause.For(ctx, p.WriteEvery/2+time.Duration(rng.Int64N(int64(p.WriteEvery)))) == nil {
		if !l.Valid() {
			continue // the context is about to end
		}
		op := p.checked(l)
		if rng.Float64() < p.PauseOften {
			_ = pause.For(context.Background(), time.Duration(rng.Int64N(int64(p.PauseAtMost))))
		}
		if err := p.deed(w, op); errors.Is(err, fence.ErrRefused) || errors.Is(err, fence.ErrPermanent) {
			return err
		}
	}
	return nil
}

// checked returns a write whose check has just succeeded.
func (p *process) checked(l neli.Leadership) history.Op {
	return history.Op{Kind: history.Write, Role: l.Role, Token: l.Token, Checked: witness.Now(),
		Value: p.Number<<32 | p.values.Add(1)}
}

// deed carries out a write, however long ago its check was.
func (p *process) deed(w store.Writer, op history.Op) error {
	return p.do(op, func(ctx context.Context, op *history.Op) error {
		accepted, err := w.Write(ctx, op.Value)
		op.Outcome = history.Rejected
		if accepted {
			op.Outcome = history.Accepted
		}
		return err
	})
}

// outliving bounds how long a delayed write waits for a write of a later term, which never comes if the run ends.
const outliving = 5 * time.Second

// outlive waits until a later term than l is seen to have written.
func (p *process) outlive(l neli.Leadership) {
	pause.Until(context.Background(), outliving, func() bool { return p.seen[l.Role].Load() > l.Token })
}

// read reads from the stores of all roles in turn, whether or not this member leads them.
func (p *process) read(ctx context.Context) {
	for role := 0; pause.For(ctx, p.ReadEvery) == nil; role = (role + 1) % p.Roles {
		_ = p.do(history.Op{Kind: history.Read, Role: role}, func(ctx context.Context, op *history.Op) (err error) {
			op.Token, op.Value, err = p.stores[op.Role].Read(ctx, op.Role)
			op.Outcome = history.Accepted
			if err == nil {
				p.seen[op.Role].Store(op.Token)
			}
			return err
		})
	}
}

// do carries out an operation and reports it before and after, so that the record has it even if
// the process is killed in between.
func (p *process) do(op history.Op, f func(context.Context, *history.Op) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	id, op := p.asked(op)
	err := f(ctx, &op)
	op.Returned = witness.Now()
	switch {
	case errors.Is(err, store.ErrNotSent):
		op.Outcome = history.NotSent
	case err != nil:
		op.Outcome, op.Returned = history.Unknown, witness.Never
	}
	if err != nil {
		p.log.Info("store", "error", err)
	}
	p.tell(Line{Say: SayReturn, ID: id, Op: &op})
	return err
}

// asked reports that an operation is about to begin.
func (p *process) asked(op history.Op) (int64, history.Op) {
	id := p.ops.Add(1)
	op.Member, op.Invoked, op.Returned, op.Outcome = p.Name, witness.Now(), witness.Never, history.Unknown
	told := op
	p.tell(Line{Say: SayInvoke, ID: id, Op: &told})
	return id, op
}
