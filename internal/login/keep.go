package login

import (
	"context"
	"time"

	"github.com/goneli/neli/kafka"
)

// leastPause is between two questions of a Keep.
const leastPause = time.Second

// Keep gives a client token after token, each before the one before has ended, until ctx is done.
// get is kafka.Login.Token. failed is told why there is none.
func Keep(ctx context.Context, get func(context.Context) (kafka.Token, error), set func(kafka.Token), failed func(error)) {
	for {
		token, err := get(ctx)
		wait := leastPause
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			failed(err)
		default:
			set(token)
			wait = max(wait, Soon(token, time.Now()))
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}
