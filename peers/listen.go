package peers

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/cenkalti/backoff/v5"

	"github.com/goneli/neli/internal/logqueue"
)

// lastLines is how long ListenAndServe waits at its end for the handler of Config.Logger.
const lastLines = time.Second

// ListenAndServe hosts the log Config.Self, without a member, until ctx is done, and then returns
// nil. The log is empty at the start, and is lost when ListenAndServe returns. It asks the other
// hosts whether they agree with its configuration, and logs their objections. It serves
// meanwhile: a host refuses every process with another configuration. Errors are an invalid
// configuration, with everything that is wrong with it; a list from DNS that is wrong; an address on
// which it cannot listen; a TopFile that it cannot use; and whatever ended the listening later.
func ListenAndServe(ctx context.Context, c Config) error {
	logger, lines := logqueue.New(cmp.Or(c.Logger, slog.New(slog.DiscardHandler)).Handler(), "group", c.Group)
	defer func() { lines.Flush(time.After(lastLines)) }()
	timeout, drift := cmp.Or(c.HeartbeatTimeout, defaultTimeout), cmp.Or(c.MaxClockDrift, defaultDrift)
	if err := c.checkAlone(timeout, drift); err != nil {
		return err
	}
	c, err := c.discovered(ctx, logger)
	if err != nil && ctx.Err() != nil {
		return nil // it was told to end while it waited for the list
	}
	if err != nil {
		return err
	}
	s, err := c.settle(agreement{group: c.Group, timeout: timeout, drift: drift}, "", logger)
	if err != nil {
		return err
	}
	v, err := newServer(ctx, s, logger)
	if err != nil && ctx.Err() != nil {
		return nil // it was told to end before it listened
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	for _, h := range s.agreed.all() {
		if h != s.self {
			work.Go(func() { s.askUntil(ctx, h, logger) })
		}
	}
	select {
	case <-ctx.Done():
	case err = <-v.served:
		v.served <- err
		err = fmt.Errorf("peers: log host %s stopped listening: %w", s.self.ID, err)
	}
	cancel()
	work.Wait()
	return cmp.Or(err, v.close())
}

// checkAlone checks what a Provider takes from neli.Config, and the rest of the configuration.
func (c Config) checkAlone(timeout time.Duration, drift float64) error {
	var f faults
	f.check(c.Self != "", "Self", c.Self, "is needed: it names the log to host")
	f.check(c.Group != "" && len(c.Group) <= 255 && utf8.ValidString(c.Group), "Group", c.Group,
		"must be 1 to 255 bytes of UTF-8, the members' LeaderGroupID")
	f.check(timeout >= minTimeout && timeout <= maxTimeout, "HeartbeatTimeout", c.HeartbeatTimeout,
		fmt.Sprintf("must be between %v and %v", minTimeout, maxTimeout))
	f.check(drift >= 0 && drift <= maxDrift, "MaxClockDrift", c.MaxClockDrift, fmt.Sprintf("must be a fraction between 0 and %v", maxDrift))
	c.collect(&f)
	return f.err()
}

// askUntil asks another host whether it agrees, until it does.
func (s *settings) askUntil(ctx context.Context, h Host, logger *slog.Logger) {
	every := backoff.NewExponentialBackOff()
	every.InitialInterval, every.MaxInterval = 100*time.Millisecond, refusedPause
	said := ""
	_, _ = backoff.Retry(ctx, func() (struct{}, error) { // it ends when the host agrees, or with ctx
		_, err := s.ask(ctx, h, s.agreed.message(h.ID))
		if disagreement(err) && plain(err).Error() != said {
			said = plain(err).Error()
			logger.Error("another log host disagrees", "host", h.ID, "address", h.Address, "error", said)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(every), backoff.WithMaxElapsedTime(0))
}
