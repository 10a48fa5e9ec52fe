//go:build unix

package show

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/goneli/neli"
)

// Member contends for all roles, and reports on standard output which of them it leads, until standard
// input says "close". It passes all other orders to obey.
func Member(c neli.Config, obey func(order string)) error {
	signal.Ignore(os.Interrupt, syscall.SIGTERM) // the demo handles Ctrl-C, and ends its members
	c.Roles = Roles
	n, err := neli.New(c)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- n.Lead(context.Background(), work) }()
	sampled := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(sampled)
		Sample(n, stop)
	}()

	for order := range Orders(os.Stdin) {
		obey(order)
	}
	err = n.Close()
	close(stop)
	<-sampled
	if lead := <-ended; !errors.Is(lead, neli.ErrClosed) {
		err = errors.Join(err, lead)
	}
	return err
}

// work is where a real member would do its work. ctx ends with the leadership.
func work(ctx context.Context, _ neli.Leadership) error {
	<-ctx.Done()
	return nil
}
