package member

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

// etcdContender campaigns with a session, and with a new one when that one is lost.
type etcdContender struct {
	client *clientv3.Client
	name   string
	prefix string
	ttl    int

	session atomic.Pointer[concurrency.Session] // the present one
	won     atomic.Pointer[concurrency.Session] // the session of the campaign that was won

	stop  context.CancelFunc
	ended sync.WaitGroup
}

func newEtcd(p Params) (Contender, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: p.Servers, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &etcdContender{client: client, name: p.Name, prefix: p.Group, ttl: int(p.Lease / time.Second), stop: stop}
	c.ended.Go(func() {
		for ctx.Err() == nil {
			if err := c.term(ctx); err != nil && ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, "campaign:", err)
			}
		}
	})
	return c, nil
}

// term campaigns and leads until the session is lost or the contender closes.
func (c *etcdContender) term(ctx context.Context) error {
	var options []concurrency.SessionOption
	if c.ttl > 0 {
		options = append(options, concurrency.WithTTL(c.ttl))
	}
	session, err := concurrency.NewSession(c.client, options...)
	if err != nil {
		return err
	}
	defer session.Close() // revokes the session, so that a follower that leaves does not delay others
	c.session.Store(session)
	// The campaign ends with the session, since it does not notice that its own key is gone.
	campaign, cancel := context.WithCancel(session.Ctx())
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	election := concurrency.NewElection(session, c.prefix)
	if err := election.Campaign(campaign, c.name); err != nil {
		return err
	}
	c.won.Store(session)
	defer c.won.Store(nil)
	select {
	case <-session.Done():
		return errors.New("the session was lost")
	case <-ctx.Done():
		c.won.Store(nil) // first, since a process that resigns must not lead
		return election.Resign(c.client.Ctx())
	}
}

// Leads reports whether the campaign was won and the session is not known to be lost since then.
func (c *etcdContender) Leads() bool {
	return lasts(c.won.Load())
}

// lasts reports whether there is a session that is not known to be lost.
func lasts(session *concurrency.Session) bool {
	if session == nil {
		return false
	}
	select {
	case <-session.Done():
		return false
	default:
		return true
	}
}

// Ready reports whether the member's key is in the store, as the leader's or behind it.
func (c *etcdContender) Ready() bool {
	session := c.session.Load()
	if !lasts(session) {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	found, err := c.client.Get(ctx, fmt.Sprintf("%s/%x", c.prefix, session.Lease()), clientv3.WithCountOnly())
	return err == nil && found.Count > 0
}

func (c *etcdContender) Close() error {
	c.stop()
	c.ended.Wait()
	return c.client.Close()
}
