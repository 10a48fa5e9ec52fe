package kafkalog

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/kafka"
)

// AccessGuard decides when refused access is fatal: only before access has worked for the first
// time. Then the cause is a wrong password or a missing ACL, and the person who starts the process
// sees the error. Later causes are an expired certificate, a broker that has not read its users
// yet, or a password that is being changed. If that ended every member, minutes would become an
// outage that lasts until somebody restarts them. So a later refusal is retried without end, and the
// caller logs it.
type AccessGuard struct {
	// SignedIn is a guard for the credentials, which all clients share. Once they have worked for
	// one client, a later refusal is an exception. If it is nil, this guard stands alone.
	SignedIn *AccessGuard

	worked atomic.Bool
}

// OK notes that access was granted.
func (g *AccessGuard) OK() { g.worked.Store(true) }

func (g *AccessGuard) hasWorked() bool { return g.worked.Load() }

// Check returns a fatal error if err refuses a right that was never granted, or credentials that never worked.
// doing is the required right, as in an ACL: operation and resource.
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

// Naming adds the required right to refused access, and returns other errors unchanged.
func Naming(doing string, err error) error {
	if !refusedAccess(err) {
		return err
	}
	return fmt.Errorf("cannot %s: %w", doing, err)
}

// denied returns an append error as the elector expects it.
func denied(doing string, err error) error {
	if !errors.Is(err, kafka.ErrAuthorization) {
		return err
	}
	return fmt.Errorf("%w: %w", elector.ErrDenied, Naming(doing, err))
}

// Errors that end an election. Package neli documents its own errors for them.
var (
	ErrAccess            = errors.New("access refused")
	ErrTopicReplaced     = errors.New("leader topic was deleted, recreated or truncated")
	ErrPartitionsChanged = errors.New("number of partitions of the leader topic changed")
	ErrNoTopicID         = errors.New("the brokers give topics no ids (Kafka does since 2.8, and with ZooKeeper only if inter.broker.protocol.version is 2.8 or later), and without them a recreated topic cannot be told from the one before")
	ErrTopicPlacement    = errors.New("leader topic is not spread over brokers as Config.Logs needs it")
	ErrEpochsNotKept     = errors.New("leader epochs are not known to grow whenever a broker was away, and without that a log that has forgotten cannot be told")
	ErrNoLeaderEpoch     = errors.New("no leader epochs are told, and without them a log that has forgotten cannot be told")
)

// Health is what the Kafka clients of one Neli have met so far. The zero value is ready, and its fields
// may be used concurrently.
type Health struct {
	Pace       Pace
	Throttling Throttling
	Contact    Contact
	Refusals   Refusals
	Replaced   atomic.Uint64 // clients that stood still
}
