package fence

import "errors"

// ErrStale says that a later term has written, or that the term asked about is over. The
// writer must stop for good: no retry of this term can succeed. The error's text has both
// tokens where there are tokens.
var ErrStale = errors.New("fence: a later term has taken over")

// ErrRefused says that a transactional producer is of no use any more: the broker refused
// it, or an outcome is unknown. It does not say that the term is over: a transaction that
// took longer than its time-out is refused, too. Transactions opens another producer when
// work returns it and the term lasts.
var ErrRefused = errors.New("fence: the producer was refused")

// ErrPermanent says that another producer would fail as well: a right is missing, a record
// is too large, the brokers are too old. A Client wraps it; Transactions returns such an
// error instead of trying again.
var ErrPermanent = errors.New("fence: trying again is of no use")

// ErrUnverified says that a broker appends to a partition without asking the transaction
// coordinator. A former leader's batch that arrives late could then become part of the new
// leader's transaction.
var ErrUnverified = errors.New("fence: a broker does not verify transactions: " +
	"this needs Apache Kafka 3.6 or newer, with transaction.partition.verification.enable=true")

// ErrCompacted says that a topic is compacted, so that Stamp and Filter do not suffice: of
// two records with one key compaction keeps the later one, even if that is a former
// leader's and the other one is not. Use Transactions.
var ErrCompacted = errors.New("fence: the topic is compacted")
