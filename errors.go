package neli

import (
	"errors"
	"strings"

	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/kafkalog"
)

// Errors that end a Neli: Pulse, Lead and Await return them, wrapped with what
// was being tried. Everything else is retried and logged.
var (
	// ErrClosed: Close was called.
	ErrClosed = errors.New("neli: closed")
	// ErrTopicReplaced: the leader topic was deleted, or deleted and created
	// again, or lost records that had been read. Fencing tokens would start
	// again, so no claim can be trusted: stop all members, then start them anew.
	ErrTopicReplaced = errors.New("neli: leader topic was deleted, recreated or truncated")
	// ErrPartitionsChanged: the leader topic now has another number of
	// partitions, so that roles would move between leaders.
	ErrPartitionsChanged = errors.New("neli: number of partitions of the leader topic changed")
	// ErrNoTopicID: the brokers give topics no ids, so that a topic that was deleted and
	// created again could not be told from the former one, and tokens would start again
	// unnoticed. Kafka gives them since 2.8; with ZooKeeper, up to 3.9, only if
	// inter.broker.protocol.version is 2.8 or later. docs/brokers.md has others.
	ErrNoTopicID = errors.New("neli: the brokers give topics no ids (Kafka does since 2.8, and with ZooKeeper only if inter.broker.protocol.version is 2.8 or later), and without them a recreated topic cannot be told from the one before")
	// ErrTopicPlacement: with Config.Logs, the leader topic is there already and its
	// partitions are not as many, with one replica each, on different brokers. The text
	// names all that is wrong.
	ErrTopicPlacement = errors.New("neli: leader topic is not spread over brokers as Config.Logs needs it")
	// ErrNoLeaderEpoch: with Config.Logs, the broker or the Provider tells no leader
	// epochs (Kafka before 2.1), and without them a log that has lost its records cannot
	// be told.
	ErrNoLeaderEpoch = errors.New("neli: no leader epochs are told, and without them a log that has forgotten cannot be told")
	// ErrAccess: the broker refuses the credentials, or an operation that is
	// needed; the text names it. Only at the start: what has worked once, and is
	// refused later, is retried for ever, and logged.
	ErrAccess = errors.New("neli: access refused")
)

// ErrObserver is returned by Pulse, Background and Lead of a Neli that only
// watches (Config.Observer).
var ErrObserver = errors.New("neli: an observer does not contend")

// Errors of Transfer.
var (
	// ErrNotLeader: this process does not lead the role.
	ErrNotLeader = errors.New("neli: this process does not lead the role")
	// ErrNoMember: no member that would claim has this id, and none, or more than
	// one, this name.
	ErrNoMember = errors.New("neli: no such member")
	// ErrLeadsAlready: the member that is to lead the role leads it. Nothing was done. Ask
	// returns it, too.
	ErrLeadsAlready = errors.New("neli: the member leads the role already")
	// ErrNoAnswer: the member did not say in time that it would lead, or said that it
	// would not. The role was not given up.
	ErrNoAnswer = errors.New("neli: the member does not answer")
	// ErrNotTransferred: the role was given up, and another member than the one that
	// was meant leads it.
	ErrNotTransferred = errors.New("neli: another member claimed first")
)

// Errors of Ask, which may be ErrNoAnswer, too.
var (
	// ErrRefused: the holder of the role refuses; the text says why.
	ErrRefused = errors.New("neli: the request was refused")
	// ErrNotDone: the holder accepted and could not do it, or lost the role meanwhile.
	ErrNotDone = errors.New("neli: the request was accepted, and could not be carried out")
	// ErrVacant: nobody is known to hold the role.
	ErrVacant = errors.New("neli: nobody is known to hold the role")
)

// Causes of the cancellation of the context that Lead gives to its function, to
// be read with context.Cause.
var (
	// ErrRevoked: finish and return; the lease is kept for you until
	// Config.DrainTimeout has passed.
	ErrRevoked = errors.New("neli: leadership revoked")
	// ErrFenced: leadership is over already: stop at once.
	ErrFenced = errors.New("neli: leadership fenced")
)

// public has what the internal packages call their errors.
var public = [...]struct{ internal, own error }{
	{kafkalog.ErrTopicReplaced, ErrTopicReplaced},
	{kafkalog.ErrPartitionsChanged, ErrPartitionsChanged},
	{kafkalog.ErrNoTopicID, ErrNoTopicID},
	{kafkalog.ErrTopicPlacement, ErrTopicPlacement},
	{kafkalog.ErrNoLeaderEpoch, ErrNoLeaderEpoch},
	{kafkalog.ErrAccess, ErrAccess},
	{elector.ErrNotLeader, ErrNotLeader},
	{elector.ErrNoMember, ErrNoMember},
	{elector.ErrLeadsAlready, ErrLeadsAlready},
	{elector.ErrNoAnswer, ErrNoAnswer},
	{elector.ErrNotTransferred, ErrNotTransferred},
	{elector.ErrRefused, ErrRefused},
	{elector.ErrNotDone, ErrNotDone},
	{elector.ErrVacant, ErrVacant},
}

// own makes errors.Is find this package's error in an internal one. The text stays, and names
// the library.
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

// outcome is what a call of the elector that has ended with err returns.
func (n *Neli) outcome(err error) error {
	if errors.Is(err, elector.ErrEnded) {
		<-n.done
		return n.ended()
	}
	return own(err)
}
