package kafkalog

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/kafka"
)

// AccessGuard decides when refused access is for good: before it has worked for
// the first time. That is a wrong password or a missing ACL, and whoever starts the
// process is there to hear of it. Later it is a certificate that has run out, a
// broker that has not read its users yet, a password that is being changed: ending
// every member for good would turn minutes of that into an outage that lasts until
// somebody restarts them, so it is retried for as long as it takes. The caller
// logs it.
type AccessGuard struct {
	// signedIn is a guard that stands for the credentials: all clients have the
	// same, so where these have worked for one, a broker that refuses them to
	// another client is alone in it. Nil: this guard stands for itself.
	SignedIn *AccessGuard

	worked atomic.Bool
}

// OK takes note that access was granted.
func (g *AccessGuard) OK() { g.worked.Store(true) }

func (g *AccessGuard) hasWorked() bool { return g.worked.Load() }

// Check returns a fatal error if err is refused access for good. doing is the
// right that it takes, as an ACL names it: operation and resource.
func (g *AccessGuard) Check(doing string, err error) error {
	proven := g.hasWorked() || errors.Is(err, kafka.ErrAuthentication) && g.SignedIn != nil && g.SignedIn.hasWorked()
	if proven || !refusedAccess(err) {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrAccess, Naming(doing, err))
}

func refusedAccess(err error) bool {
	return errors.Is(err, kafka.ErrAuthentication) || errors.Is(err, kafka.ErrAuthorization)
}

// Naming adds to refused access what it takes; other errors it leaves as they are.
func Naming(doing string, err error) error {
	if !refusedAccess(err) {
		return err
	}
	return fmt.Errorf("cannot %s: %w", doing, err)
}

// denied is an error of appending as an elector knows it.
func denied(doing string, err error) error {
	if !errors.Is(err, kafka.ErrAuthorization) {
		return err
	}
	return fmt.Errorf("%w: %w", elector.ErrDenied, Naming(doing, err))
}
