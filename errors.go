package neli

import (
	"errors"
	"strings"

	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/kafkalog"
)

// Errors that end a Neli. Pulse, Lead and Await return them, wrapped with the operation
// that failed. All other errors are retried and logged.
var (
	// ErrClosed: Close was called.
	ErrClosed = errors.New("neli: closed")
	// ErrTopicReplaced: the leader topic was deleted, deleted and created again, or has lost
	// records that this process had read. Fencing tokens would start again, so no claim can be
	// trusted: stop all members, then start them again.
	ErrTopicReplaced = errors.New("neli: leader topic was deleted, recreated or truncated")
	// ErrPartitionsChanged: the number of partitions of the leader topic has changed, which moves
	// roles to other partitions and so to other leaders.
	ErrPartitionsChanged = errors.New("neli: number of partitions of the leader topic changed")
	// ErrNoTopicID: the brokers do not give topics ids. Without ids a topic that was deleted and
	// created again looks like the former one, and tokens would start again unnoticed. Kafka has
	// topic ids since 2.8; with ZooKeeper (up to 3.9) only if inter.broker.protocol.version is 2.8
	// or later. For other brokers see docs/brokers.md.
	ErrNoTopicID = errors.New("neli: the brokers give topics no ids (Kafka does since 2.8, and with ZooKeeper only if inter.broker.protocol.version is 2.8 or later), and without them a recreated topic cannot be told from the one before")
	// ErrTopicPlacement: with Config.Logs, the existing leader topic does not have that many
	// partitions with one replica each on different brokers. The text lists everything that is
	// wrong.
	ErrTopicPlacement = errors.New("neli: leader topic is not spread over brokers as Config.Logs needs it")
	// ErrNoLeaderEpoch: with Config.Logs, the broker (Kafka before 2.1) or the Provider does not
	// report leader epochs. Without them the loss of a log's records cannot be detected.
	ErrNoLeaderEpoch = errors.New("neli: no leader epochs are told, and without them a log that has forgotten cannot be told")
	// ErrAccess: the broker refuses the credentials, or an operation that this process needs; the
	// text names it. Fatal only at the start. Access that worked once and is refused later is
	// retried for ever, and logged.
	ErrAccess = errors.New("neli: access refused")
)

// ErrObserver is returned by Pulse, Background and Lead of a Neli that only watches
// (Config.Observer).
var ErrObserver = errors.New("neli: an observer does not contend")

// Errors of Transfer.
var (
	// ErrNotLeader: this process does not lead the role.
	ErrNotLeader = errors.New("neli: this process does not lead the role")
	// ErrNoMember: no member that may claim has this id, and the name belongs to no member or to
	// several.
	ErrNoMember = errors.New("neli: no such member")
	// ErrLeadsAlready: the chosen member leads the role already. Nothing was done. Ask returns it
	// too.
	ErrLeadsAlready = errors.New("neli: the member leads the role already")
	// ErrNoAnswer: the member did not answer in time, or refused to lead. The role was not given
	// up.
	ErrNoAnswer = errors.New("neli: the member does not answer")
	// ErrNotTransferred: the role was given up, but the chosen member did not claim it in time.
	ErrNotTransferred = errors.New("neli: another member claimed first")
)

// Errors of Ask, which may also return ErrNoAnswer and ErrLeadsAlready.
var (
	// ErrRefused: the holder of the role refuses; the text says why.
	ErrRefused = errors.New("neli: the request was refused")
	// ErrNotDone: the holder accepted the request, but could not carry it out or has lost the
	// role.
	ErrNotDone = errors.New("neli: the request was accepted, and could not be carried out")
	// ErrVacant: no process is known to hold the role.
	ErrVacant = errors.New("neli: nobody is known to hold the role")
)

// Causes with which Lead cancels the context of its function (see context.Cause).
var (
	// ErrRevoked: finish and return. The lease is kept until then, for Config.DrainTimeout at
	// most.
	ErrRevoked = errors.New("neli: leadership revoked")
	// ErrFenced: leadership is over already. Stop at once.
	ErrFenced = errors.New("neli: leadership fenced")
)

// public maps the internal packages' errors to this package's.
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

// own makes errors.Is find this package's error in an internal one. The text stays the same but
// for the library's name in front of it.
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
