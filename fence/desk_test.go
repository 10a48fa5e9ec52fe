package fence_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/goneli/neli/fence"
)

// desk is a transaction coordinator and a log in memory. It refuses clients that a later init has fenced.
type desk struct {
	mu        sync.Mutex
	epoch     int
	committed []string
	fail      map[string][]error // by call: the errors that its next calls return
	calls     []string
	open      int // clients that are not closed
}

var errFenced = errors.New("a newer producer has this transactional.id")

func (d *desk) call(name string, c *teller) error {
	d.calls = append(d.calls, name)
	if errs := d.fail[name]; len(errs) > 0 {
		d.fail[name] = errs[1:]
		return errs[0]
	}
	if name != "init" && c.epoch != d.epoch {
		return errFenced
	}
	return nil
}

// teller is one client of a desk.
type teller struct {
	d       *desk
	epoch   int
	pending []string
}

func (d *desk) client() (fence.Client[string], error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open++
	d.calls = append(d.calls, "open")
	return &teller{d: d}, nil
}

func (c *teller) Init(ctx context.Context) error {
	c.d.mu.Lock()
	err := c.d.call("init", c)
	if err == nil {
		c.d.epoch++
		c.epoch = c.d.epoch
	}
	c.d.mu.Unlock()
	if errors.Is(err, errHangs) {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

var errHangs = errors.New("hangs until its context ends")

func (c *teller) Begin() error {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	return c.d.call("begin", c)
}

func (c *teller) Produce(_ context.Context, records []string) error {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	c.pending = records
	return c.d.call("produce", c)
}

func (c *teller) Commit(context.Context) error {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	err := c.d.call("commit", c)
	if err == nil {
		c.d.committed = append(c.d.committed, c.pending...)
	}
	return err
}

func (c *teller) Close() {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	c.d.open--
	c.d.calls = append(c.d.calls, "close")
}

func (d *desk) said() string { return fmt.Sprint(d.calls) }

// term is a term that lasts for a given number of questions.
type term struct {
	d     *desk
	lasts int
}

func (t *term) Valid() bool {
	t.d.mu.Lock()
	defer t.d.mu.Unlock()
	t.d.calls = append(t.d.calls, "valid")
	t.lasts--
	return t.lasts >= 0
}
