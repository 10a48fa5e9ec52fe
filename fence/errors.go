package fence

import "errors"

// ErrStale says that a later term has claimed, or that this term is over. The writer must stop for
// good: no retry in this term can succeed. Where there are tokens, the error's text has both,
// unless the stored one could not be read.
var ErrStale = errors.New("fence: a later term has taken over")

// ErrRefused says that a transactional producer can no longer be used: the broker refused it, or
// the outcome of a transaction is unknown. It does not say that the term is over, because the
// broker also refuses a transaction that took longer than its timeout. If work returns this error
// and the term lasts, Transactions opens another producer.
var ErrRefused = errors.New("fence: the producer was refused")

// ErrPermanent says that another producer would fail as well: a right is missing, a record is too
// large, or the brokers are too old. A Client wraps it. Transactions returns such an error instead
// of trying again.
var ErrPermanent = errors.New("fence: trying again is of no use")

// ErrUnverified says that a broker appends to a partition without asking the transaction
// coordinator. A former leader's batch that arrives late could then become part of the new
// leader's transaction.
var ErrUnverified = errors.New("fence: a broker does not verify transactions: " +
	"this needs Apache Kafka 3.6 or newer, with transaction.partition.verification.enable=true")

// ErrCompacted says that a topic is compacted, so that Stamp and Filter are not enough. Of two
// records with one key, compaction keeps the later one, even if that is a former leader's. Use
// Transactions.
var ErrCompacted = errors.New("fence: the topic is compacted")
