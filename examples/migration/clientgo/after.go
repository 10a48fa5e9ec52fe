package clientgo

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/goneli/neli"
)

func after(ctx context.Context, config neli.Config, name string, send func()) error {
	config.LeaderGroupID = "billing-invoicing"
	config.Name = name
	config.HeartbeatTimeout = 15 * time.Second
	n, err := neli.New(config)
	if err != nil {
		return err
	}
	go func() {
		for s := range n.Watch(ctx) {
			log.Print("the leader is ", s.Holder.Name) // "": there is none
		}
	}()
	err = n.Lead(ctx, func(ctx context.Context, _ neli.Leadership) error {
		for ctx.Err() == nil { // checks the clock, so it is right after a suspension
			send()
			wait(ctx, time.Second)
		}
		return nil
	})
	return errors.Join(err, n.Close())
}
