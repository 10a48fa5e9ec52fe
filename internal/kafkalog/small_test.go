package kafkalog

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/kafka"
)

func TestPlaceApart(t *testing.T) {
	racked := func(racks ...string) (all []kafka.BrokerInfo) {
		for i, rack := range racks {
			all = append(all, kafka.BrokerInfo{ID: 10 * (i + 1), Rack: rack})
		}
		return all
	}
	for _, c := range []struct {
		brokers []kafka.BrokerInfo
		n       int
		racks   int // number of racks that the chosen brokers must cover
	}{
		{racked("", "", ""), 3, 1},
		{racked("a", "b", "c"), 3, 3},
		{racked("a", "a", "a", "b", "b", "c"), 3, 3},
		{racked("a", "a", "b", "b"), 3, 2},
		{racked("a", "a", "a", "a", "a", "a"), 5, 1},
		{racked("a", "b", "c", "", ""), 5, 4},
		{racked("", "", "", "", "", "", ""), 5, 1},
	} {
		racks := map[int]string{}
		for _, b := range c.brokers {
			racks[b.ID] = b.Rack
		}
		first := map[int]bool{}
		for _, topic := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
			chosen, err := placeApart(c.brokers, c.n, topic)
			require.NoError(t, err)
			require.Len(t, chosen, c.n)
			used := map[string]bool{}
			var ids []int
			for _, on := range chosen {
				require.Len(t, on, 1)
				ids = append(ids, on[0])
				used[racks[on[0]]] = true
			}
			first[ids[0]] = true
			slices.Sort(ids)
			require.Len(t, slices.Compact(ids), c.n, "%v", chosen)
			require.Len(t, used, c.racks, "%v", chosen)
			again, err := placeApart(c.brokers, c.n, topic)
			require.NoError(t, err)
			require.Equal(t, chosen, again)
		}
		require.Greater(t, len(first), 1, "topics are spread")
	}
	_, err := placeApart(someOf(2), 3, "t")
	require.ErrorContains(t, err, "2 brokers are up, and Logs is 3")
}

func TestCheckApart(t *testing.T) {
	require.NoError(t, checkApart("t", kafka.TopicInfo{Partitions: 3, Brokers: [][]int{{5}, {2}, {9}}}, 3))
	err := checkApart("t", kafka.TopicInfo{Partitions: 4, Brokers: [][]int{{1, 2}, {3}, {3}, {}}}, 3)
	require.ErrorIs(t, err, ErrTopicPlacement)
	for _, part := range []string{"topic t", "it has 4 partitions: must be as many as Logs, 3", "partition 0 has 2 replicas, on brokers [1 2]: must be 1",
		"partitions 1 and 2 are on broker 3: must be on different ones", "partition 3 has 0 replicas"} {
		require.ErrorContains(t, err, part)
	}
}

func TestLogsTopicIsMade(t *testing.T) {
	leader, admin, _ := told(nil)
	leader.logs, leader.create = 3, &kafka.TopicSpec{Name: "t", Partitions: 3}
	admin.brokers = 5
	require.NoError(t, leader.make(t.Context()))
	spec := admin.specs[0]
	require.Equal(t, 1, spec.Replicas)
	require.Len(t, spec.Brokers, 3)
	require.Equal(t, "1", spec.Settings["min.insync.replicas"])
	require.Empty(t, unsafeSettings(spec.Settings, 1))
	admin.brokers = 2
	require.ErrorContains(t, leader.make(t.Context()), "2 brokers are up")
}

// A cluster with too few brokers is reported as that, not as unreachable.
func TestTooFewBrokersAreNotReportedAsUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leader, admin, out := told(func() (kafka.TopicInfo, error) { return kafka.TopicInfo{}, kafka.ErrUnknownTopic })
		leader.logs, leader.create = 3, &kafka.TopicSpec{Name: "t", Partitions: 3}
		admin.brokers = 2
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, leader.Open(ctx), context.DeadlineExceeded)
		require.False(t, leader.health.Contact.Lacking())
		require.Contains(t, out.String(), "cannot create the leader topic, retrying")
		require.Contains(t, out.String(), "2 brokers are up, and Logs is 3")
		require.NotContains(t, out.String(), "no broker reached")
	})
}

// logAdmin describes one log as the test sets it.
type logAdmin struct {
	fakeAdmin
	mu   sync.Mutex
	info kafka.LogInfo
	err  error
}

func (a *logAdmin) Log(context.Context, string, int) (kafka.LogInfo, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.info, a.err
}

func (a *logAdmin) tell(start, end int64, epoch int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.info, a.err = kafka.LogInfo{OffsetRange: kafka.OffsetRange{Start: start, End: end}, Epoch: epoch}, err
}

// smallBed follows one log of Config.Logs, with T = 1 s.
type smallBed struct {
	*testing.T
	*smallPartition
	admin  *logAdmin
	polls  chan polled
	set    *smallTopic
	failed chan error
}

// chanReader is a scriptedReader that gets new results while it is read from.
type chanReader struct {
	scriptedReader
	polls chan polled
}

func (r *chanReader) Poll(timeout time.Duration) (kafka.Record, bool, error) {
	select {
	case p := <-r.polls:
		return p.rec, p.err == nil, p.err
	case <-time.After(timeout):
		return kafka.Record{}, false, nil
	}
}

func onSmallLog(t *testing.T, test func(b *smallBed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		admin := &logAdmin{}
		admin.tell(0, 5000, 5, nil)
		top, _, _ := told(func() (kafka.TopicInfo, error) { return kafka.TopicInfo{ID: "id", Partitions: 2}, nil })
		top.id, top.Size = "id", 2
		b := &smallBed{T: t, admin: admin, polls: make(chan polled), failed: make(chan error, 1)}
		reader := &chanReader{polls: b.polls}
		b.smallPartition = &smallPartition{index: 1, topic: top, T: time.Second, producer: &fakeProducer{}, reader: reader,
			admin: admin, newReader: func() (kafka.LogReader, error) { return reader, nil }, log: slog.New(slog.DiscardHandler)}
		b.reading, b.writing = &AccessGuard{}, &AccessGuard{}
		b.still, b.replaced = newStillness(1, time.Second), &atomic.Uint64{}
		b.at.epoch, b.at.newest = -1, -1
		b.set = newSmallTopic(top, []*smallPartition{b.smallPartition})
		ctx, cancel := context.WithCancel(t.Context())
		var work sync.WaitGroup
		work.Go(func() {
			if err := b.follow(ctx); err != nil {
				b.failed <- err
			}
		})
		work.Go(func() { b.ask(ctx) })
		defer work.Wait()
		defer cancel()
		test(b)
	})
}

// next returns the next entry that is not merely a sign of life.
func (b *smallBed) next() kafka.LogEntry {
	b.Helper()
	for {
		e, ok, err := b.set.Next(b.Context(), 10*time.Second)
		require.NoError(b, err)
		require.True(b, ok, "nothing comes")
		if e.Kind != kafka.LogAlive {
			return e
		}
	}
}

func (b *smallBed) reads(offset int64, epoch int, value string) {
	b.polls <- polled{rec: kafka.Record{Partition: 1, Offset: offset, Epoch: epoch, Value: []byte(value)}}
}

func (b *smallBed) resets(offset, end int64, epoch int) {
	b.Helper()
	e := b.next()
	require.Equal(b, kafka.LogReset, e.Kind)
	require.Equal(b, b.id(epoch), e.ID)
	require.Equal(b, offset, e.Offset)
	require.Equal(b, end, e.End)
}

// Records of an earlier epoch do not belong to the incarnation, whatever they contain.
func TestRecordsOfEarlierEpochsAreSkipped(t *testing.T) {
	onSmallLog(t, func(b *smallBed) {
		b.resets(5000-history, 5000, 5)
		b.reads(5000-history, 3, "claims to be of this one")
		b.reads(5001-history, 5, "is")
		former, present := b.next(), b.next()
		require.EqualValues(b, 5000-history, former.Offset, "it has its place")
		_, err := lease.Codec{Group: "g", Log: former.ID}.Decode(former.Value)
		require.ErrorIs(b, err, lease.ErrForeign)
		require.Equal(b, "is", string(present.Value))
		require.Equal(b, b.id(5), present.ID)
	})
}

// A record of a later epoch belongs to another incarnation. Reading begins again once the broker
// that is asked knows that epoch, too.
func TestLogBeginsAgainWithAnotherEpoch(t *testing.T) {
	onSmallLog(t, func(b *smallBed) {
		b.resets(5000-history, 5000, 5)
		b.reads(5000, 7, "of another one")
		time.Sleep(100 * time.Millisecond)
		require.Empty(b, b.set.entries, "reading began with an epoch that is over, or handed a record of another one on")
		b.admin.tell(0, 5001, 7, nil)
		b.resets(5001-history, 5001, 7)
		require.ErrorIs(b, b.append(b.id(5), nil, func(error) {}), errIncarnation)
		require.NoError(b, b.append(b.id(7), nil, func(error) {}))
		time.Sleep(time.Millisecond)
	})
}

// A log to which nobody writes reports regularly that it can be reached, and in which epoch.
func TestSilentLogsAreAsked(t *testing.T) {
	onSmallLog(t, func(b *smallBed) {
		b.resets(5000-history, 5000, 5)
		b.reads(4999, 5, "last") // nothing is left to read, so a silent reader is not replaced
		require.Equal(b, "last", string(b.next().Value))
		heard := time.Now()
		for range 20 {
			e, ok, err := b.set.Next(b.Context(), time.Second)
			require.NoError(b, err)
			require.True(b, ok)
			require.Equal(b, kafka.LogEntry{Log: 1, Kind: kafka.LogAlive, ID: b.id(5), End: 5000}, e)
			require.LessOrEqual(b, time.Since(heard), 3*time.Second/8)
			heard = time.Now()
		}
		b.admin.tell(0, 0, 7, errors.New("no leader"))
		time.Sleep(3 * time.Second)
		require.Empty(b, b.set.entries)
		b.admin.tell(0, 0, 7, nil) // the broker is back, and its log is empty
		b.resets(0, 0, 7)
		b.reads(0, 7, "first")
		require.Equal(b, "first", string(b.next().Value))
	})
}

func TestLogBeginsAgainWhenRecordsAreLost(t *testing.T) {
	onSmallLog(t, func(b *smallBed) {
		b.resets(5000-history, 5000, 5)
		for i, err := range []error{kafka.ErrOutOfRange, kafka.ErrTruncated, kafka.ErrClientFatal} {
			end := int64(500 - 100*i)
			b.admin.tell(end-50, end, 7+i, nil)
			b.polls <- polled{err: err}
			b.resets(end-50, end, 7+i)
		}
		b.reads(300, 9, "on")
		require.EqualValues(b, 300, b.next().Offset)
		b.reads(300, 9, "again")
		b.resets(250, 300, 9)
	})
}

// A small log's reader that stands still is replaced, and reading of its log begins again.
func TestLogReaderThatStandsStillIsReplaced(t *testing.T) {
	onSmallLog(t, func(b *smallBed) {
		b.resets(5000-history, 5000, 5)
		b.reads(4999, 5, "last")
		time.Sleep(time.Minute)
		require.Zero(b, b.replaced.Load(), "nothing was appended")
		require.NoError(b, b.append(b.id(5), nil, func(error) {}))
		time.Sleep(4 * time.Second)
		require.Zero(b, b.replaced.Load(), "not before five seconds")
		time.Sleep(2 * time.Second)
		require.EqualValues(b, 1, b.replaced.Load(), "replaced within T + 5 s")
		require.Equal(b, "last", string(b.next().Value))
		b.resets(5000-history, 5000, 5)
		b.reads(4999, 5, "last")
		time.Sleep(time.Minute)
		require.EqualValues(b, 1, b.replaced.Load())
		b.admin.tell(0, 5001, 5, nil) // another process has appended
		time.Sleep(6 * time.Second)
		require.EqualValues(b, 2, b.replaced.Load(), "replaced within T + 5 s")
	})
}

func TestLogsNeedEpochs(t *testing.T) {
	onSmallLog(t, func(b *smallBed) {
		b.resets(5000-history, 5000, 5)
		b.admin.tell(0, 5000, -1, nil)
		b.at.mu.Lock()
		b.at.epoch, b.at.newest = -1, -1
		b.at.mu.Unlock()
		require.ErrorIs(b, <-b.failed, ErrNoLeaderEpoch)
	})
}

// readingProvider makes readers, too.
type readingProvider struct{ fakeProvider }

func (*readingProvider) LogReader(map[string]string, *slog.Logger) (kafka.LogReader, error) {
	return &scriptedReader{}, nil
}

// Rights apply to the topic. If one broker grants them and another one refuses, the latter may not
// have read the ACLs yet. That ends no process.
func TestRefusalByOneOfSeveralLogsIsRetried(t *testing.T) {
	w := &Clients{Provider: &readingProvider{}, Topic: "t", Logs: 3, T: time.Second, Producing: noProperties, Reading: noProperties, Logger: slog.New(slog.DiscardHandler), Health: new(Health)}
	set, err := w.smallTopic()
	require.NoError(t, err)
	for _, l := range set.logs {
		require.True(t, l.at.begin(1))
	}
	granted := make(chan error)
	require.NoError(t, set.Append(0, set.logs[0].id(1), nil, 0, func(err error) { granted <- err }))
	require.NoError(t, <-granted)
	require.ErrorIs(t, set.logs[1].lost(kafka.ErrTopicAuthorization), elector.ErrDenied, "a request is told")
	require.Empty(t, set.fatal)

	other, err := w.smallTopic()
	require.NoError(t, err)
	require.ErrorIs(t, other.logs[1].lost(kafka.ErrTopicAuthorization), elector.ErrDenied)
	require.ErrorIs(t, <-other.fatal, ErrAccess, "nothing has ever been granted")
}

// sealedProducer seals its log just before it gets a record.
type sealedProducer struct {
	fakeProducer
	seal func()
}

func (p *sealedProducer) Append(topic string, partition int, value []byte, report func(error)) error {
	p.seal()
	return p.fakeProducer.Append(topic, partition, value, report)
}

// A record that the producer gets just after its log was sealed is purged: otherwise it would go into
// a new topic of the same name.
func TestSealedLogIsPurged(t *testing.T) {
	onSmallLog(t, func(b *smallBed) {
		b.resets(5000-history, 5000, 5)
		producer := &sealedProducer{seal: b.smallPartition.seal}
		b.producer = producer
		_ = b.append(b.id(5), nil, func(error) {})
		require.Equal(b, []string{"Purge", "Append", "Purge"}, producer.calls)
		synctest.Wait()
	})
}

// epochAdmin is an admin that reports whether brokers keep leader epochs, or that it cannot know.
type epochAdmin struct {
	fakeAdmin
	answers []error // the errors of the first calls; later ones return keeps
	keeps   bool
}

func (a *epochAdmin) KeepsEpochs(context.Context) (bool, error) {
	if len(a.answers) > 0 {
		err := a.answers[0]
		a.answers = a.answers[1:]
		return false, err
	}
	return a.keeps, nil
}

// Small logs in Kafka need brokers that are known to keep leader epochs. If a process cannot know
// that, the error says why.
func TestLogsNeedBrokersThatKeepEpochs(t *testing.T) {
	for _, c := range []struct {
		name  string
		admin kafka.Admin
		want  string // empty: not refused
	}{
		{"kept", &epochAdmin{keeps: true}, ""},
		{"kept, as a broker says that answers late", &epochAdmin{answers: []error{errReported}, keeps: true}, ""},
		{"not kept", &epochAdmin{}, "Config.Logs needs KRaft"},
		{"asking is not allowed", &epochAdmin{answers: []error{kafka.ErrAuthorization}}, "the right DESCRIBE_CONFIGS on the cluster"},
		{"the Provider does not say", fakeAdmin{}, "the Provider does not say"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				top, _, _ := told(nil)
				top.Admin = c.admin
				err := newSmallTopic(top, nil).checkEpochs(t.Context())
				if c.want == "" {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, ErrEpochsNotKept)
				require.ErrorContains(t, err, c.want)
			})
		})
	}
}
