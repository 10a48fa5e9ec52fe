package login

import (
	"context"
	"time"

	"github.com/goneli/neli/kafka"
)

// leastPause is the shortest pause between two calls of get.
const leastPause = time.Second

// Keep gives a client one token after another, each before the previous one expires, until ctx is
// done. get is kafka.Login.Token. failed is called with the reason whenever there is none.
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
