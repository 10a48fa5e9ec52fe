package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/shards"
)

// member is a process of the service.
type member struct {
	mu      sync.Mutex // guards out and serving
	out     io.Writer
	serving [count]*term
}

// term is a time in which a member serves a shard.
type term struct {
	neli.Leadership
	since int64 // in nanoseconds, as all times here: the processes share a clock
}

// run serves shards until ctx or the input ends.
func (m *member) run(ctx context.Context, cfg neli.Config, cold bool, in io.Reader) error {
	f := shards.Functions{Prepare: warm, Serve: m.serve}
	if cold {
		f.Prepare, f.Serve = nil, func(ctx context.Context, l neli.Leadership) error {
			if warm(ctx, l.Role) != nil {
				return nil // the term is over
			}
			return m.serve(ctx, l)
		}
	}
	set, err := shards.New(count, f)
	if err != nil {
		return err
	}
	if !cold {
		cfg.Prepare = set.Prepare
	}
	n, err := neli.New(cfg)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	go func() {
		defer stop()
		m.obey(ctx, n, in)
	}()
	context.AfterFunc(ctx, func() { _ = n.Close() }) // each shard's successor prepares before Serve ends
	if err = set.Run(context.Background(), n); errors.Is(err, neli.ErrClosed) {
		err = nil
	}
	return errors.Join(err, n.Close())
}

// warm takes long, as if it filled a cache.
func warm(ctx context.Context, _ int) error {
	select {
	case <-time.After(warmUp):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// serve lets requests in until the term ends. When it returns no request is at work, since each holds the lock.
func (m *member) serve(ctx context.Context, l neli.Leadership) error {
	m.set(l.Role, &term{l, time.Now().UnixNano()}, "serves")
	<-ctx.Done()
	m.set(l.Role, nil, "left")
	return nil
}

func (m *member) set(shard int, to *term, what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.serving[shard] = to
	fmt.Fprintln(m.out, what, shard, time.Now().UnixNano())
}

// obey moves shards and answers requests.
func (m *member) obey(ctx context.Context, n *neli.Neli, in io.Reader) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var number int
		var sent int64
		var to string
		if _, err := fmt.Sscanf(lines.Text(), "requests %d %d", &number, &sent); err == nil {
			m.answer(number, sent)
		} else if _, err := fmt.Sscanf(lines.Text(), "move %d %s", &number, &to); err == nil {
			go func() {
				if n.Transfer(ctx, number, to) != nil {
					time.Sleep(100 * time.Millisecond) // before the next try
				}
				m.mu.Lock()
				defer m.mu.Unlock()
				fmt.Fprintln(m.out, "tried", number)
			}()
		}
	}
}

// answer serves requests, one for each shard. All members get all requests, so that a request that two of them serve
// would show. A request that was sent before this member served the shard was for the former owner.
func (m *member) answer(round int, sent int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	served := make([]byte, count)
	for shard, t := range m.serving {
		served[shard] = '.'
		if t != nil && t.since <= sent && t.Valid() { // asks the clock
			served[shard] = '!'
		}
	}
	fmt.Fprintln(m.out, "answered", round, string(served))
}
