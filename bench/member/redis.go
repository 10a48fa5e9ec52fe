package member

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"
)

// redisContender takes the lock, and extends it after each third of its expiry, which redsync leaves to its users. Nothing
// tells candidates that a lock is free, so they ask again and again.
type redisContender struct {
	client  *goredislib.Client
	sync    *redsync.Redsync
	group   string
	options []redsync.Option
	every   time.Duration

	until atomic.Pointer[time.Time] // of the lock that is held
	tried atomic.Bool

	stop  context.CancelFunc
	ended sync.WaitGroup
}

// defaultExpiry is redsync's own.
const defaultExpiry = 8 * time.Second

func newRedis(p Params) (Contender, error) {
	client := goredislib.NewClient(&goredislib.Options{Addr: p.Servers[0]})
	ctx, stop := context.WithCancel(context.Background())
	c := &redisContender{client: client, sync: redsync.New(goredis.NewPool(client)), group: p.Group, every: defaultExpiry / 3, stop: stop}
	if p.Lease > 0 {
		c.every = p.Lease / 3
		c.options = append(c.options, redsync.WithExpiry(p.Lease))
	}
	if p.Retry > 0 {
		c.options = append(c.options, redsync.WithRetryDelay(p.Retry))
	}
	if err := client.Ping(ctx).Err(); err != nil {
		stop()
		return nil, err
	}
	c.ended.Go(func() {
		for ctx.Err() == nil {
			c.term(ctx)
		}
	})
	return c, nil
}

// term waits for the lock, and holds it until it is lost or the end has come.
func (c *redisContender) term(ctx context.Context) {
	c.tried.Store(true)
	mutex := c.sync.NewMutex(c.group, c.options...)
	if mutex.LockContext(ctx) != nil {
		return // after 32 tries; the caller tries again
	}
	held := mutex.Until()
	c.until.Store(&held)
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			c.until.Store(nil) // first, since a process that unlocks must not lead
			if _, err := mutex.Unlock(); err != nil {
				fmt.Fprintln(os.Stderr, "unlock:", err)
			}
			return
		case <-tick.C:
			ok, err := mutex.ExtendContext(ctx)
			if ctx.Err() != nil {
				continue
			}
			if held := mutex.Until(); ok {
				c.until.Store(&held)
			} else if !time.Now().Before(held) {
				fmt.Fprintln(os.Stderr, "the lock is lost:", err)
				return
			}
		}
	}
}

// Leads: a lock was got or extended, and has not expired by this clock.
func (c *redisContender) Leads() bool {
	until := c.until.Load()
	return until != nil && time.Now().Before(*until)
}

// Ready: it has begun to ask.
func (c *redisContender) Ready() bool { return c.tried.Load() }

func (c *redisContender) Close() error {
	c.stop()
	c.ended.Wait()
	return c.client.Close()
}
