package kafkalog

import "errors"

// Errors that end an election. Package neli has its own errors for these, and documents them
// there.
var (
	ErrAccess            = errors.New("access refused")
	ErrTopicReplaced     = errors.New("leader topic was deleted, recreated or truncated")
	ErrPartitionsChanged = errors.New("number of partitions of the leader topic changed")
	ErrNoTopicID         = errors.New("the brokers give topics no ids (Kafka does since 2.8, and with ZooKeeper only if inter.broker.protocol.version is 2.8 or later), and without them a recreated topic cannot be told from the one before")
	ErrTopicPlacement    = errors.New("leader topic is not spread over brokers as Config.Logs needs it")
	ErrEpochsNotKept     = errors.New("leader epochs are not known to grow whenever a broker was away, and without that a log that has forgotten cannot be told")
	ErrNoLeaderEpoch     = errors.New("no leader epochs are told, and without them a log that has forgotten cannot be told")
)
