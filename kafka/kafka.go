package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"
)

// Provider makes the Kafka clients of one neli.Neli. The default is confluent-kafka-go
// (librdkafka); package nelitest has one in memory.
//
// Properties arrive complete: the user's values plus what the library needs, by librdkafka's
// names, as strings. A provider passes them on and adds nothing. If its client uses other names it
// translates them, and refuses what it cannot translate. Constructors do not wait for a broker.
// They fail only for properties that the client refuses, and then start nothing. An error that
// joins several (errors.Join) is shown with one line for each; New reports those of all clients at
// once.
//
// A client logs to log. A provider need not hide secrets: the library removes the values of secret
// properties from everything written to log and from the text of every error before it shows them.
// It does not know secrets that are not properties. Programs that use a provider directly, or that
// wrap one and show its errors, must remove secrets themselves.
//
// Close returns within seconds even if no broker answers; the rest of a client's shutdown
// continues in the background.
//
// Errors with a meaning wrap one of those below (ErrUnknownTopic and so on), for errors.Is; their
// text has the operation and the client's own message. All other errors are temporary: they are
// logged, and the operation is tried again. Package nelitest/providertest tests what is said
// here and below, except ClusterDescriber, EpochKeeper, LoginProvider, Prober, BrokerInfo.Rack, Record.Time,
// ErrAdvertised, ErrClientFatal, ErrTimestamp, ErrUnreadable and ErrUnserved.
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
	Epoch     int    // of the leader that appended it; −1 if the client does not report it
	// Time is the record's timestamp, by the sender's clock or the broker's; zero if the client does not
	// report it. neli history shows it. Elections do not depend on it.
	Time time.Time
}

// Producer appends records. Its methods may be called concurrently.
type Producer interface {
	// Append hands a record to the client and returns at once, without waiting for the network.
	// If it returns nil, report is called exactly once, from another goroutine and never from
	// within Append: with nil once all in-sync replicas have the record, or with an error if
	// that is not certain (the record may still be in the log). If Append returns an error,
	// report is not called and the record was not sent. Without enable.idempotence a record may
	// be in the log twice, or after records that were appended later.
	Append(topic string, partition int, value []byte, report func(error)) error
	// Purge drops all unacknowledged records, in flight or not, and reports them as failed. It
	// does not wait, so it may also drop what is appended while it does so, even after the last
	// report of an earlier record.
	Purge()
	// Throttled returns the total time for which brokers have told this client to wait because
	// of a quota. It may be up to a minute behind, and is 0 if the client cannot know it. It may
	// be called concurrently, and after Close.
	Throttled() time.Duration
	// Close purges and releases the client. All reports have returned when Close returns.
	Close() error
}

// LogReader reads all partitions of a topic, without a group and without commits. One goroutine uses it.
type LogReader interface {
	// Assign starts to read partition i at offsets[i], for every i, and replaces the former
	// assignment. Offsets are explicit, never logical; a partition with NotRead is left out.
	// After Assign, Poll returns only records at or after these offsets.
	Assign(topic string, offsets []int64) error
	// Poll returns the next record, or false after timeout. Within a partition records come in
	// log order, each once; offsets need not be consecutive. Errors: ErrOutOfRange if a position
	// lies outside its log (the error does not name the partition), ErrTruncated,
	// ErrUnreadable, ErrUnknownTopic, ErrTopicAuthorization, ErrAuthentication, ErrClientFatal.
	// Any other error is temporary, and reading continues where it was. After ErrOutOfRange,
	// ErrTruncated or ErrUnreadable no record of that partition may come until the next Assign,
	// whatever the client does by itself; records of other partitions may.
	Poll(timeout time.Duration) (Record, bool, error)
	// Throttled is as for Producer.
	Throttled() time.Duration
	Close() error
}

// NotRead in place of an offset leaves a partition out of an assignment. It differs from the
// numbers that clients use for the ends of a log.
const NotRead int64 = math.MinInt64

// GroupEventKind is the kind of a GroupEvent.
type GroupEventKind int

const (
	// GroupIdle: nothing happened before the timeout.
	GroupIdle GroupEventKind = iota
	// GroupRecord: a record of a partition that is assigned to this member. Only for members that joined to read.
	GroupRecord
	// GroupAssigned: the group has completed an assignment. Partitions has all partitions that
	// this member now has, not only new ones, in ascending order; a member that has none is told
	// so. A rebalance in progress is not reported: the initial revocation of everything by an
	// eager protocol means nothing yet.
	GroupAssigned
	// GroupLost: the session is over, or this member has left. The group may assign its
	// partitions to others, or has done so.
	GroupLost
)

// GroupEvent is what Poll of a GroupConsumer returns.
type GroupEvent struct {
	Kind       GroupEventKind
	Record     Record
	Partitions []int
}

// GroupConsumer is a member of a consumer group. One goroutine uses it. It answers rebalances at
// once, within Poll, and waits for nobody.
type GroupConsumer interface {
	// Join subscribes to topic. With read, Poll returns the records that arrive on assigned
	// partitions from now on (from the end, since nothing is committed); without read none are
	// fetched. It may be called again, also without Leave.
	Join(topic string, read bool) error
	// Poll waits at most timeout for an event. Call it often: heartbeats continue without it,
	// but rebalances do not, nor does a Leave during one. Without a membership its events mean
	// nothing. Errors: ErrUnknownTopic, ErrTopicAuthorization, ErrGroupAuthorization,
	// ErrAuthentication, ErrInstanceFenced, ErrUnreadable, ErrClientFatal. Any other error is
	// temporary, and the membership continues.
	Poll(timeout time.Duration) (GroupEvent, error)
	// Reach sends a request to a broker over this client's own connections, and returns an
	// error if no answer comes before ctx is done. It distinguishes a client that reaches no
	// broker from one that is idle. Without a membership it need not send anything. It may be
	// called concurrently with all other methods; Close may wait for it.
	Reach(ctx context.Context, topic string) error
	// Leave leaves the group at once, and tells the coordinator if that can be reached. Poll may
	// return GroupLost for it. A later Join begins a new membership.
	Leave() error
	// Throttled is as for Producer.
	Throttled() time.Duration
	// Close leaves and releases the client.
	Close() error
}

// TopicInfo is a broker's description of a topic.
type TopicInfo struct {
	ID         string // changes when a topic is deleted and created again; empty if the broker has none
	Partitions int
	Replicas   int // of the partition with the fewest
	// Brokers are the ids of the brokers with a replica, by partition, whether or not they are up.
	Brokers [][]int
}

// BrokerInfo is one broker of a cluster.
type BrokerInfo struct {
	ID   int
	Rack string // empty: unknown
}

// TopicSpec describes a topic to be created.
type TopicSpec struct {
	Name       string
	Partitions int
	Replicas   int // 0: the cluster's default
	Settings   map[string]string
	// Brokers are the ids of the brokers for the replicas, by partition: as many lists as
	// Partitions, each with Replicas ids. Nil lets the cluster choose.
	Brokers [][]int
	// ValidateOnly asks whether the cluster would create it, and creates nothing.
	ValidateOnly bool
}

// OffsetRange is the extent of one partition's log: records have offsets from Start, inclusive, to End, exclusive.
type OffsetRange struct {
	Start, End int64
}

// LogInfo is a partition's log, as the partition's leader describes it.
type LogInfo struct {
	OffsetRange
	// Epoch is the leader epoch. It grows whenever another broker becomes leader of the
	// partition. It also grows when the same broker leads again after it was away, if an
	// EpochKeeper says so. −1: the client does not report it.
	Epoch int
}

// Admin describes and creates topics. Its methods may be called concurrently. They return when ctx
// is done, with an error that wraps the context's. Errors are ErrUnknownTopic, ErrTopicExists,
// ErrSettings, ErrAuthorization and ErrAuthentication where these apply; any other error is
// temporary.
type Admin interface {
	// Brokers returns the brokers that are up, in no order. If racks is false it may leave their racks out.
	Brokers(ctx context.Context, racks bool) ([]BrokerInfo, error)
	// Topic describes a topic.
	Topic(ctx context.Context, topic string) (TopicInfo, error)
	// CreateTopic creates a topic, or only asks whether the cluster would (ValidateOnly).
	// ErrSettings: not with these settings or that number of replicas or partitions.
	CreateTopic(ctx context.Context, spec TopicSpec) error
	// Settings returns the effective settings of a topic.
	Settings(ctx context.Context, topic string) (map[string]string, error)
	// Offsets returns the extents of partitions 0 to n−1, all or none.
	Offsets(ctx context.Context, topic string, n int) ([]OffsetRange, error)
	// Log asks the leader of one partition, independently of the others. If there is no leader it waits for one.
	Log(ctx context.Context, topic string, partition int) (LogInfo, error)
	Close()
}

// EpochKeeper is implemented by an Admin that can tell what becomes of leader epochs (LogInfo.Epoch,
// Record.Epoch) when a broker returns. Config.Logs needs it.
type EpochKeeper interface {
	// KeepsEpochs reports whether the epoch of a partition is certain to grow whenever its leader was
	// away, whatever the broker has lost meanwhile. That is so if the cluster keeps its metadata in
	// KRaft. With ZooKeeper the epoch may be the same as before.
	KeepsEpochs(ctx context.Context) (bool, error)
}

// Prober is implemented by an Admin that can try each broker. The command neli uses it; elections do
// not depend on it.
type Prober interface {
	// Probe opens as many connections as a member does to each broker, at the address that it
	// advertises, and sends a request over each. It waits for each broker until ctx is done.
	Probe(ctx context.Context) ([]BrokerProbe, error)
}

// BrokerProbe is what became of the connections to one broker.
type BrokerProbe struct {
	ID      int
	Address string // host:port, as advertised
	Err     error  // of the first connection that failed; nil: all requests were answered
	Failed  int    // how many of them failed
	Tried   int    // how many there were
}

// ClusterDescriber is implemented by an Admin that can describe its cluster. The command neli shows that
// to people; elections do not depend on it.
type ClusterDescriber interface {
	Cluster(ctx context.Context) (ClusterInfo, error)
}

// ClusterInfo is a cluster's description of itself.
type ClusterInfo struct {
	ID      string   // empty if it has none
	Version string   // of Apache Kafka, inferred from the requests that the broker supports, like "v4.1"
	Hosts   []string // of the brokers that are up, as advertised
}

// Errors of a Provider's clients, which wrap these with the client's own message. Each comment has
// the broker's error codes and the library's reaction.
var (
	// ErrUnknownTopic: the broker does not know the topic, or not yet
	// (UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID). The library compares the topic's id, and
	// continues or ends with ErrTopicChanged. A LogReader returns it at once for a topic of which
	// it has read a record, and after topic.metadata.propagation.max.ms for any other topic.
	ErrUnknownTopic = errors.New("unknown topic")
	// ErrTopicExists: a topic of that name exists (TOPIC_ALREADY_EXISTS). The library uses it.
	ErrTopicExists = errors.New("topic exists")
	// ErrSettings: the broker refuses to create such a topic (INVALID_CONFIG, POLICY_VIOLATION,
	// INVALID_REPLICATION_FACTOR). Only from CreateTopic. The library then finds out, with
	// ValidateOnly, which settings and how many replicas the broker accepts.
	ErrSettings = errors.New("topic settings refused")
	// ErrTimestamp: the broker refuses a record because of its timestamp (INVALID_TIMESTAMP).
	// Only from reports of Append. It concerns that record only, and the library continues to
	// append.
	ErrTimestamp = errors.New("the broker refuses the record's timestamp: the wall clock of this machine is ahead of the broker's " +
		"by more than the topic's message.timestamp.after.max.ms (an hour), or far behind; " +
		"set the clock, or message.timestamp.type=LogAppendTime on the topic")
	// ErrOutOfRange: a read position outside the log (OFFSET_OUT_OF_RANGE). The library asks for all logs'
	// extents. A log that begins later is read again from before its end, as after a start. A log that ends earlier
	// has lost records: the library ends with ErrTopicChanged, except with Config.Logs.
	ErrOutOfRange = errors.New("offset out of range")
	// ErrTruncated: records that were read are no longer in the log, even if the log has grown
	// past the position again with others. A client detects that by the leader epoch of the
	// records it has read (KIP-320: OffsetsForLeaderEpoch, or the diverging epoch of a fetch).
	// The library forgets its state and reads again from before the end, as after a start. A
	// client that cannot detect it never returns this error; a lease then depends on unclean
	// leader election being off.
	ErrTruncated = errors.New("log truncated")
	// ErrUnreadable: a record that is damaged, that this client cannot unpack, or that would unpack to
	// more than receive.message.max.bytes. The error is an UnreadableError, which says where. From Poll
	// of a LogReader: the library begins to read again behind the record, as after a start. A
	// GroupConsumer returns it and reads on at the end by itself, since only the newest record counts
	// there.
	ErrUnreadable = errors.New("unreadable record")
	// ErrAuthentication: the broker refused the credentials, or one side refused the other's
	// certificate. A lost connection must not be reported like that, because refused
	// credentials that have never worked end a Neli (ErrAccess).
	ErrAuthentication = errors.New("authentication refused")
	// ErrAuthorization: the principal lacks a right (…_AUTHORIZATION_FAILED). If the operation
	// has never worked, it ends a Neli (ErrAccess); later it is retried.
	ErrAuthorization = errors.New("not authorized")
	// ErrTopicAuthorization: the principal lacks a right on the topic
	// (TOPIC_AUTHORIZATION_FAILED). It is an ErrAuthorization. A GroupConsumer must distinguish
	// it from ErrGroupAuthorization, so that the library names the right one: a member needs
	// READ on both. A client may return it only once for each Assign or Join; the library asks
	// again by Assign, or by Leave and Join.
	ErrTopicAuthorization = fmt.Errorf("topic %w", ErrAuthorization)
	// ErrGroupAuthorization: the principal may not join the group (GROUP_AUTHORIZATION_FAILED).
	// It is an ErrAuthorization. A client may return it only once while it keeps trying.
	ErrGroupAuthorization = fmt.Errorf("group %w", ErrAuthorization)
	// ErrAdvertised: a broker answered, and sent the client to an address at which it reaches no
	// broker. It is temporary. A client that cannot tell never returns it.
	ErrAdvertised = errors.New("no broker can be reached at an address that the brokers advertise (advertised.listeners)")
	// ErrUnserved: a broker accepted a connection and did not answer on it, or closed it at once. It is
	// temporary. The clients themselves suspect TLS or an old version.
	ErrUnserved = errors.New("a broker that can be reached does not serve this client: it may have reached max.connections or max.connections.per.ip, " +
		"expect another security.protocol, or stand still")
	// ErrInstanceFenced: another process joined with the same group.instance.id
	// (FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID). It ends the Neli. A client must not join
	// again by itself, or the two processes would fence each other for ever.
	ErrInstanceFenced = errors.New("group.instance.id is in use by another process")
	// ErrClientFatal: the client has failed permanently. The library replaces log readers, and
	// producers (with their Admin) at most once a second; a group consumer with this error ends
	// the Neli. Every later call returns it too, and Close works.
	ErrClientFatal = errors.New("client failed for good")
)

// UnreadableError is an ErrUnreadable. Records are packed into batches, so that more than one may be concerned.
type UnreadableError struct {
	Partition int   // −1: the client does not know
	Next      int64 // where records may be readable again; 0: the client does not know
	Err       error // the client's own
}

// Error implements error.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("%v: %v", ErrUnreadable, e.Err)
}

// Unwrap returns ErrUnreadable and Err.
func (e *UnreadableError) Unwrap() []error { return []error{ErrUnreadable, e.Err} }
