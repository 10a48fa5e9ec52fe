package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"
)

// Provider makes the Kafka clients of one neli.Neli. The default is
// confluent-kafka-go (librdkafka); package nelitest has one in memory.
//
// Properties arrive complete: the user's own values, completed by what the
// library needs, in librdkafka's names and as strings. A provider passes them on
// and adds nothing; a client that has other names translates them, and refuses what
// it cannot translate. Constructors do not wait for a broker; they fail only for
// properties that the client refuses, and start nothing then. An error that joins several
// (errors.Join) is shown with one line for each; New tells those of all clients at once.
//
// What a client logs goes to log. A provider need not hide secrets: the library cuts
// the values of secret properties out of whatever is written to log and out of the
// text of every error before it shows it. Secrets that it is not told of as properties
// it does not know. Who uses a provider by itself, or wraps one and shows its errors,
// has to see to that.
//
// Close returns within some seconds though no broker answers; what is left of a client
// then goes on ending in the background.
//
// Errors that mean something wrap one of those below (ErrUnknownTopic and so on), by
// which errors.Is finds it; the text has what was tried and the client's own words. All
// others are passing: they are logged, and what failed is tried again. Package
// nelitest/providertest has all that is said here and below as tests.
type Provider interface {
	Producer(props map[string]string, log *slog.Logger) (Producer, error)
	LogReader(props map[string]string, log *slog.Logger) (LogReader, error)
	GroupConsumer(props map[string]string, log *slog.Logger) (GroupConsumer, error)
	// Admin returns an admin client over the connections of p, a producer of
	// this same provider. It is closed before p is.
	Admin(p Producer) (Admin, error)
}

// Record is one record of a topic, as it was read.
type Record struct {
	Partition int
	Offset    int64
	Value     []byte // owned by the receiver
	Epoch     int    // of the leader that appended it; −1 if the client does not tell
}

// Producer appends records. Its methods may be called concurrently.
type Producer interface {
	// Append hands a record to the client and returns at once, without waiting
	// for the network. A nil error promises exactly one call of report, from
	// another goroutine and never from within Append: with nil once all in-sync
	// replicas have the record, with an error when that could not be
	// established — the record may be in the log nevertheless. After a non-nil
	// error report is not called and the record was not sent.
	Append(topic string, partition int, value []byte, report func(error)) error
	// Purge drops what has not been acknowledged yet and reports it as failed,
	// in flight or not. It does not wait.
	Purge()
	// Throttled returns for how long, in all, brokers have told this client to wait
	// because a quota was exceeded. It may be behind by the better part of a minute,
	// and 0 where that cannot be known. Any goroutine may ask, also after Close.
	Throttled() time.Duration
	// Close purges and releases the client. When it returns, every report has
	// been made and none is under way.
	Close() error
}

// LogReader reads all partitions of a topic, without a group and without
// commits. One goroutine uses it.
type LogReader interface {
	// Assign starts reading partition i at offsets[i], for every i, in place of
	// whatever was read before. Offsets are explicit, never logical; a partition of
	// NotRead is left out. Once it returns, Poll yields only records at or after these
	// offsets.
	Assign(topic string, offsets []int64) error
	// Poll returns the next record, or false after timeout. Within a partition
	// records come in log order, each once; offsets need not be consecutive. Errors:
	// ErrOutOfRange when a position does not lie in its log (of which partition is not
	// known), ErrTruncated, ErrUnknownTopic, ErrTopicAuthorization, ErrAuthentication,
	// ErrClientFatal; any other error is passing, and reading goes on where it was.
	// After ErrOutOfRange or ErrTruncated no record of that partition comes, whatever
	// the client would do by itself, until the next Assign; others may.
	Poll(timeout time.Duration) (Record, bool, error)
	// Throttled returns for how long, in all, brokers have told this client to wait
	// because a quota was exceeded: as for Producer.
	Throttled() time.Duration
	Close() error
}

// NotRead in place of an offset leaves a partition out of an assignment. It is none of
// the numbers by which clients mean an end of a log.
const NotRead int64 = math.MinInt64

// GroupEventKind tells what a GroupEvent is.
type GroupEventKind int

const (
	// GroupIdle: nothing happened before the timeout.
	GroupIdle GroupEventKind = iota
	// GroupRecord: a record of a partition that the group has assigned to this
	// member. Only for members that joined to read.
	GroupRecord
	// GroupAssigned: the group has completed an assignment; Partitions is all
	// that this member now has (not only what was added). A rebalance that is
	// still under way is not reported: an eager protocol's preliminary revoke of
	// everything means nothing yet.
	GroupAssigned
	// GroupLost: the session is over, or membership was given up; the group may
	// assign, or has assigned, this member's partitions to others.
	GroupLost
)

// GroupEvent is what Poll of a GroupConsumer returns.
type GroupEvent struct {
	Kind       GroupEventKind
	Record     Record
	Partitions []int
}

// GroupConsumer takes part in a consumer group. One goroutine uses it.
// It answers rebalances at once, from within Poll, and waits for nobody.
type GroupConsumer interface {
	// Join subscribes to topic. With read, records that arrive on assigned
	// partitions from now on are returned by Poll (from the end: nothing is
	// committed); without, none is fetched. Joining again, after Leave or not, is
	// allowed.
	Join(topic string, read bool) error
	// Poll waits at most timeout for something to happen. It must be called
	// often: heartbeats continue without it, rebalances do not, nor does a Leave
	// during one. Without a membership it returns nothing of interest. Errors:
	// ErrUnknownTopic, ErrTopicAuthorization, ErrGroupAuthorization, ErrAuthentication,
	// ErrInstanceFenced, ErrClientFatal; any other is passing, and membership goes on.
	Poll(timeout time.Duration) (GroupEvent, error)
	// Reach asks a broker something over this client's own connections, and returns an error
	// if no answer has come before ctx is done. It tells a client that reaches nobody from one
	// of which the group wants nothing. Without a membership it need not ask. It may be called
	// concurrently with all other methods; while it is under way Close may wait for it.
	Reach(ctx context.Context, topic string) error
	// Leave leaves the group at once and tells the coordinator if it can be
	// reached. Poll may tell GroupLost of it. A later Join makes a new membership.
	Leave() error
	// Throttled returns for how long, in all, brokers have told this client to wait
	// because a quota was exceeded: as for Producer.
	Throttled() time.Duration
	// Close leaves and releases the client.
	Close() error
}

// TopicInfo is what the broker says of a topic.
type TopicInfo struct {
	ID         string // changes when a topic is deleted and created again; empty if not told
	Partitions int
	Replicas   int // of the partition that has the fewest
	// Brokers are the ids of the brokers that have a replica, by partition, whether or
	// not they are up.
	Brokers [][]int
}

// BrokerInfo is one broker of a cluster.
type BrokerInfo struct {
	ID   int
	Rack string // empty: it does not say
}

// TopicSpec describes a topic to be created.
type TopicSpec struct {
	Name       string
	Partitions int
	Replicas   int // 0: as many as is the cluster's default
	Settings   map[string]string
	// Brokers are the ids of the brokers that are to have a replica, by partition: as many
	// lists as Partitions, each of Replicas ids. Nil leaves that to the cluster.
	Brokers [][]int
	// ValidateOnly asks whether the cluster would create it, and creates nothing.
	ValidateOnly bool
}

// OffsetRange is the extent of one partition's log: records have offsets from
// Start, inclusive, to End, exclusive.
type OffsetRange struct {
	Start, End int64
}

// LogInfo is what the leader of a partition says of its log.
type LogInfo struct {
	OffsetRange
	// Epoch is the leader's: it grows whenever another broker leads the partition, or
	// the same one again after it was away. −1: the client does not tell.
	Epoch int
}

// Admin asks and changes topics. Its methods may be called concurrently and
// return when ctx is done, with an error that wraps the context's. Errors are
// ErrUnknownTopic, ErrTopicExists, ErrSettings, ErrAuthorization and ErrAuthentication
// where these apply; any other is passing.
type Admin interface {
	// Brokers returns the brokers that are up, in no order. If racks is false it may leave their
	// racks out.
	Brokers(ctx context.Context, racks bool) ([]BrokerInfo, error)
	// Topic describes a topic.
	Topic(ctx context.Context, topic string) (TopicInfo, error)
	// CreateTopic creates a topic, or only asks whether that can be. ErrSettings: not with
	// these settings or so many replicas, nor, perhaps, with so many partitions.
	CreateTopic(ctx context.Context, spec TopicSpec) error
	// Settings returns the effective settings of a topic.
	Settings(ctx context.Context, topic string) (map[string]string, error)
	// Offsets returns the extents of partitions 0 to n−1, all or none.
	Offsets(ctx context.Context, topic string, n int) ([]OffsetRange, error)
	// Log asks the leader of one partition, whatever has become of all others. Without a
	// leader it waits for one.
	Log(ctx context.Context, topic string, partition int) (LogInfo, error)
	Close()
}

// Identifier is what an Admin has in addition if it can tell what cluster it asks. Only
// people are told, by the command neli: elections do not depend on it.
type Identifier interface {
	Cluster(ctx context.Context) (ClusterInfo, error)
}

// ClusterInfo is what a cluster says of itself.
type ClusterInfo struct {
	ID      string   // empty if it has none
	Version string   // of Apache Kafka, as far as what the broker understands tells it, like "v4.1"
	Hosts   []string // of the brokers that are up, as they advertise them
}

// What a Provider's clients report. They wrap these, with the client's own words.
// Each says which answers of a broker it stands for, and what the library does.
var (
	// ErrUnknownTopic: the broker does not know the topic (UNKNOWN_TOPIC_OR_PARTITION,
	// UNKNOWN_TOPIC_ID), perhaps not yet. The library compares the topic's id, and goes
	// on or ends with ErrTopicReplaced. A client waits for
	// topic.metadata.propagation.max.ms before it says so of a topic that is read.
	ErrUnknownTopic = errors.New("unknown topic")
	// ErrTopicExists: a topic of that name was there already (TOPIC_ALREADY_EXISTS).
	// The library takes it.
	ErrTopicExists = errors.New("topic exists")
	// ErrSettings: the broker does not create a topic like that (INVALID_CONFIG,
	// POLICY_VIOLATION, INVALID_REPLICATION_FACTOR). From CreateTopic only. The library finds
	// out, with ValidateOnly, which settings and how many replicas it takes.
	ErrSettings = errors.New("topic settings refused")
	// ErrTimestamp: the broker did not take a record for the time that it bears
	// (INVALID_TIMESTAMP). From reports of Append only; each record is on its own, and
	// the library goes on appending.
	ErrTimestamp = errors.New("the broker refuses the record's timestamp: the wall clock of this machine is ahead of the broker's " +
		"by more than the topic's message.timestamp.after.max.ms (an hour), or far behind; " +
		"set the clock, or message.timestamp.type=LogAppendTime on the topic")
	// ErrOutOfRange: a read position outside the log (OFFSET_OUT_OF_RANGE). The library
	// asks for the extents of all logs, and goes on from the start of one whose head was
	// deleted; one that ends before what was read has lost records, which ends it with
	// ErrTopicReplaced.
	ErrOutOfRange = errors.New("offset out of range")
	// ErrTruncated: records that had been read are not in the log any more, though
	// it may have grown past the position again with others. A client finds that by
	// the leader epoch of what it read (KIP-320: OffsetsForLeaderEpoch, or the
	// diverging epoch of a fetch). The library reads again from before the end, as at
	// the start, and forgets what it knew. A client that cannot tell never reports it;
	// then a lease rests on unclean elections being off.
	ErrTruncated = errors.New("log truncated")
	// ErrAuthentication: the broker refused the credentials, or one side the other's
	// certificate. A connection that was lost on the way is none: refused credentials
	// end a Neli for which they have never worked (ErrAccess).
	ErrAuthentication = errors.New("authentication refused")
	// ErrAuthorization: the principal may not do that (…_AUTHORIZATION_FAILED). It ends
	// a Neli for which that has never worked (ErrAccess); later it is retried.
	ErrAuthorization = errors.New("not authorized")
	// ErrTopicAuthorization: it may not do that to the topic (TOPIC_AUTHORIZATION_FAILED).
	// It is an ErrAuthorization. A GroupConsumer must tell it from the next one, or the
	// library names the wrong right: a member of a group needs READ of both. A client may
	// say it only once for each Assign or Join; the library asks again, by Assign, and by
	// Leave and Join.
	ErrTopicAuthorization = fmt.Errorf("topic %w", ErrAuthorization)
	// ErrGroupAuthorization: it may not join the group (GROUP_AUTHORIZATION_FAILED). It
	// is an ErrAuthorization. A client may say it only once, and goes on trying.
	ErrGroupAuthorization = fmt.Errorf("group %w", ErrAuthorization)
	// ErrInstanceFenced: another process joined with the same group.instance.id
	// (FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID). It ends the Neli. A client must not
	// join again by itself, or the two would take turns for ever.
	ErrInstanceFenced = errors.New("group.instance.id is in use by another process")
	// ErrClientFatal: the client is of no more use; a new one is needed. Producers
	// (with their Admin) and log readers are replaced then, a second apart at least; a
	// group consumer that says so ends the Neli. Every later call says so, too, and
	// Close works.
	ErrClientFatal = errors.New("client failed for good")
)
