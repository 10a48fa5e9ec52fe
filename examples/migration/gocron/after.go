// Package gocron moves from gocron's lock in Redis.
package gocron

import (
	"context"
	"errors"

	"github.com/go-co-op/gocron/v2"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelicron"
)

// n is New(Config{LeaderGroupID: "billing", Roles: 64}).
func after(ctx context.Context, n *neli.Neli, send func(token int64)) error {
	jobs, err := nelicron.New(n)
	if err != nil {
		return err
	}
	locker, err := jobs.Locker()
	if err != nil {
		return err
	}
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		return err
	}
	task := jobs.Task("invoices", func(ctx context.Context, l neli.Leadership) error {
		if l.Valid() {
			send(l.Token)
		}
		return nil
	})
	if _, err := s.NewJob(gocron.CronJob("* * * * *", false), task, gocron.WithName("invoices")); err != nil {
		return err
	}
	s.Start()
	return errors.Join(jobs.Run(ctx), s.Shutdown())
}
