package neli

import (
	"errors"
	"strings"

	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/kafkalog"
)

// Errors that end a Neli. Pulse, Lead and Await return them, wrapped with the operation that
// failed; Neli.Await returns nil after Close. All other errors are retried and logged.
var (
	// ErrClosed: Close was called.
	ErrClosed = errors.New("neli: closed")
	// ErrTopicChanged: the leader topic was deleted, deleted and created again, or has lost records
	// that this process had read; then fencing tokens would start again, and no claim can be
	// trusted. Or its number of partitions has changed, which moves roles to other partitions and
	// so to other leaders. The text says which. Stop all members, raise Config.TokenBase if tokens
	// begin again (docs/runbook.md), then start them.
	ErrTopicChanged = errors.New("neli: leader topic was deleted, recreated, truncated or given other partitions")
	// ErrTopicPlacement: with Config.Logs, the existing leader topic does not have that many
	// partitions with one replica each on different brokers. The text lists everything that is
	// wrong.
	ErrTopicPlacement = errors.New("neli: leader topic is not spread over brokers as Config.Logs needs it")
	// ErrUnsupported: the brokers, or the Provider, lack something without which a loss of the
	// log would go unnoticed, so that tokens could start again. The text says what. One is topic
	// ids: Kafka has them since 2.8; with ZooKeeper (up to 3.9) only if
	// inter.broker.protocol.version is 2.8 or later. The other, with Config.Logs, is leader epochs
	// that grow whenever a broker was away: Kafka has them with KRaft. For other brokers see
	// docs/brokers.md.
	ErrUnsupported = errors.New("neli: the brokers lack topic ids or leader epochs")
	// ErrAccess: the broker refuses the credentials, or an operation that this process needs; the
	// text names it. Fatal only at the start. Access that worked once and is refused later is
	// retried for ever, and logged.
	ErrAccess = errors.New("neli: access refused")
)

// ErrObserver is returned by Pulse, Background, Lead, StepDown and Rebalance of a Neli that only
// watches (Config.Observer).
var ErrObserver = errors.New("neli: an observer does not contend")

// Errors of Transfer, which may also return ErrNotDone.
var (
	// ErrNotLeader: this process does not lead the role.
	ErrNotLeader = errors.New("neli: this process does not lead the role")
	// ErrNoMember: no member that may claim the role has this id or name, or several members have
	// this name; then the text has their ids.
	ErrNoMember = errors.New("neli: no such member")
	// ErrLeadsAlready: the chosen member leads the role already. Nothing was done. Ask returns it too.
	ErrLeadsAlready = errors.New("neli: the member leads the role already")
	// ErrNoAnswer: the member did not answer in time, or refused to lead. Transfer has kept the role.
	ErrNoAnswer = errors.New("neli: the member does not answer")
)

// Errors of Ask, which may also return ErrNoAnswer and ErrLeadsAlready.
var (
	// ErrRefused: the holder of the role refuses; the text says why.
	ErrRefused = errors.New("neli: the request was refused")
	// ErrNotDone: the role was given up, but the chosen member did not claim it in time. Ask also
	// returns it if the holder accepted the request, but could not carry it out or has lost the
	// role.
	ErrNotDone = errors.New("neli: begun, and could not be carried out")
	// ErrVacant: no process is known to hold the role.
	ErrVacant = errors.New("neli: nobody is known to hold the role")
)

// Causes with which Lead cancels the context of its function (see context.Cause).
var (
	// ErrRevoked: finish and return. The lease is kept until then, for Config.DrainTimeout at most.
	ErrRevoked = errors.New("neli: leadership revoked")
	// ErrFenced: leadership is over already. Stop at once.
	ErrFenced = errors.New("neli: leadership fenced")
)

// public maps the internal packages' errors to this package's.
var public = [...]struct{ internal, own error }{
	{kafkalog.ErrTopicReplaced, ErrTopicChanged},
	{kafkalog.ErrPartitionsChanged, ErrTopicChanged},
	{kafkalog.ErrNoTopicID, ErrUnsupported},
	{kafkalog.ErrTopicPlacement, ErrTopicPlacement},
	{kafkalog.ErrNoLeaderEpoch, ErrUnsupported},
	{kafkalog.ErrEpochsNotKept, ErrUnsupported},
	{kafkalog.ErrAccess, ErrAccess},
	{elector.ErrNotLeader, ErrNotLeader},
	{elector.ErrNoMember, ErrNoMember},
	{elector.ErrLeadsAlready, ErrLeadsAlready},
	{elector.ErrNoAnswer, ErrNoAnswer},
	{elector.ErrNotTransferred, ErrNotDone},
	{elector.ErrRefused, ErrRefused},
	{elector.ErrNotDone, ErrNotDone},
	{elector.ErrVacant, ErrVacant},
}

// own makes an internal error match this package's error in errors.Is. The text is unchanged,
// except that it begins with the library's name.
func own(err error) error {
	for _, p := range public {
		if errors.Is(err, p.internal) {
			return &ownError{p.own, err}
		}
	}
	return err
}

type ownError struct{ own, err error }

func (e *ownError) Error() string {
	const name = "neli: "
	return name + strings.TrimPrefix(e.err.Error(), name)
}

func (e *ownError) Unwrap() []error { return []error{e.own, e.err} }

// outcome returns the public error for a call of the elector that ended with err.
func (n *Neli) outcome(err error) error {
	if errors.Is(err, elector.ErrEnded) {
		<-n.done
		return n.ended()
	}
	return own(err)
}
