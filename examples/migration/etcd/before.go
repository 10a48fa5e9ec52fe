// Package etcd moves from package concurrency of etcd.
package etcd

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

func before(ctx context.Context, client *clientv3.Client, name string, send func(token int64)) error {
	session, err := concurrency.NewSession(client, concurrency.WithTTL(10))
	if err != nil {
		return err
	}
	defer session.Close()
	election := concurrency.NewElection(session, "/billing/invoicing")
	if err := election.Campaign(ctx, name); err != nil {
		return err
	}
	defer election.Resign(context.WithoutCancel(ctx))
	for tick := time.Tick(time.Second); ; {
		send(election.Rev())
		select {
		case <-session.Done():
			return errors.New("the session is lost")
		case <-ctx.Done():
			return nil
		case <-tick:
		}
	}
}

func leaderBefore(ctx context.Context, session *concurrency.Session) (string, error) {
	leader, err := concurrency.NewElection(session, "/billing/invoicing").Leader(ctx)
	if err != nil {
		return "", err
	}
	return string(leader.Kvs[0].Value), nil
}
