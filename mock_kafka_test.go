package neli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/redact"
	"github.com/goneli/neli/kafka"
)

// mockKafka is a Kafka with one partition in which single calls fail as scripted, in ways that no
// real broker does on demand. All other calls succeed at once.
type mockKafka struct {
	mu        sync.Mutex
	script    map[string][]error // call → what its next calls return; nil succeeds
	calls     []string
	log       [][]byte
	more      chan struct{} // closed at the next append
	dead      error         // the error of the producer until another one is made
	stillborn bool          // every producer fails for good from the beginning
	silent    bool          // appends are accepted, but never reported
	open      int           // clients that are not closed
	still     int           // how many readers, counted from the first, return nothing from now on
	readers   int           // how many readers were made
	deaf      int           // how many group consumers, counted from the first, reach no broker from now on
	groups    int           // how many group consumers were made
	away      bool          // no broker answers a question
	feeds     bool          // members of the group are given records
	ids       string
	props     map[string]map[string]string
	throttled atomic.Int64 // what every client reports

	refusal      error // what every call to a broker returns until refusedUntil
	refusedUntil time.Time
}

func newMockKafka() *mockKafka {
	return &mockKafka{script: map[string][]error{}, ids: "id", props: map[string]map[string]string{}, more: make(chan struct{})}
}

// write appends a record, which ends the readers' long polls. It needs the lock.
func (k *mockKafka) write(value []byte) {
	k.log = append(k.log, value)
	close(k.more)
	k.more = make(chan struct{})
}

func (k *mockKafka) fail(call string, errs ...error) {
	k.script[call] = append(k.script[call], errs...)
}

// refuse makes every broker refuse everything until a time.
func (k *mockKafka) refuse(err error, until time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refusal, k.refusedUntil = err, until
}

// called notes a call and returns the scripted error. It needs the lock.
func (k *mockKafka) called(call string) error {
	k.calls = append(k.calls, call)
	if k.refusal != nil && time.Now().Before(k.refusedUntil) && k.reaches(call) {
		return k.refusal
	}
	if s := k.script[call]; len(s) > 0 {
		k.script[call] = s[1:]
		return s[0]
	}
	return nil
}

// reaches reports whether a call goes to a broker and returns with its answer.
func (k *mockKafka) reaches(call string) bool {
	return slices.Contains([]string{"Append", "Hello", "Poll", "Group.Poll", "Topic", "Offsets", "Settings"}, call)
}

func (k *mockKafka) count(call string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := 0
	for _, c := range k.calls {
		if c == call {
			n++
		}
	}
	return n
}

func (k *mockKafka) decode(value []byte) (*lease.Record, error) {
	return lease.Codec{Group: "g", Log: k.ids}.Decode(value)
}

func (k *mockKafka) make(what string, props map[string]string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.called(what); err != nil {
		return err
	}
	k.props[what] = props
	k.open++
	return nil
}

func (k *mockKafka) closed(what string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.open--
	return k.called(what + ".Close")
}

func (k *mockKafka) Producer(p map[string]string, _ *slog.Logger) (kafka.Producer, error) {
	err := k.make("Producer", p)
	if err == nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.dead = nil
		if k.stillborn {
			k.dead = kafka.ErrClientFatal
		}
	}
	return &mockProducer{mockKafka: k}, err
}

func (k *mockKafka) LogReader(p map[string]string, _ *slog.Logger) (kafka.LogReader, error) {
	err := k.make("LogReader", p)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.readers++
	return &mockReader{mockKafka: k, number: k.readers}, err
}

func (k *mockKafka) GroupConsumer(p map[string]string, _ *slog.Logger) (kafka.GroupConsumer, error) {
	err := k.make("GroupConsumer", p)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.groups++
	return &mockGroup{mockKafka: k, number: k.groups}, err
}

func (k *mockKafka) Admin(kafka.Producer) (kafka.Admin, error) {
	return &mockAdmin{k}, k.make("Admin", nil)
}

func (k *mockKafka) Throttled() time.Duration { return time.Duration(k.throttled.Load()) }

type mockProducer struct {
	*mockKafka
	wg   sync.WaitGroup
	once sync.Once
	held []func(error) // unreported appends
}

func (p *mockProducer) Append(_ string, _ int, value []byte, report func(error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	call := "Append"
	if r, err := p.decode(value); err == nil && r.Kind == lease.Hello {
		call = "Hello" // separately, since no test cares when these arrive
	}
	err := p.called(call)
	if p.dead != nil {
		err = p.dead
	}
	if err != nil && !errors.Is(err, errReported) {
		return err
	}
	if p.silent {
		p.held = append(p.held, report)
		return nil
	}
	if err == nil {
		p.write(value)
	}
	p.wg.Go(func() { report(err) })
	return nil
}

// errReported marks an error that Append reports later instead of returning it.
var errReported = errors.New("reported")

func (p *mockProducer) Purge() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.called("Purge")
}

func (p *mockProducer) Close() error {
	p.mu.Lock()
	for _, report := range p.held {
		p.wg.Go(func() { report(errors.New("purged")) })
	}
	p.held = nil
	p.mu.Unlock()
	p.wg.Wait()
	var err error
	p.once.Do(func() { err = p.closed("Producer") })
	return err
}

type mockReader struct {
	*mockKafka
	number int
	pos    int64
	once   sync.Once
}

func (r *mockReader) Assign(_ string, offsets []int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pos = offsets[0]
	return r.called("Assign")
}

func (r *mockReader) Poll(timeout time.Duration) (kafka.Record, bool, error) {
	r.mu.Lock()
	if err := r.called("Poll"); err != nil {
		r.mu.Unlock()
		return kafka.Record{}, false, err
	}
	if r.number > r.still && r.pos < int64(len(r.log)) {
		r.pos++
		rec := kafka.Record{Offset: r.pos - 1, Value: r.log[r.pos-1]}
		r.mu.Unlock()
		return rec, true, nil
	}
	more := r.more
	r.mu.Unlock()
	select { // a broker's long poll
	case <-more:
	case <-time.After(timeout):
	}
	return kafka.Record{}, false, nil
}

func (r *mockReader) Close() error {
	var err error
	r.once.Do(func() { err = r.closed("LogReader") })
	return err
}

type mockGroup struct {
	*mockKafka
	number int
	told   bool
	once   sync.Once
}

var errMockSilence = errors.New("nobody answers")

func (g *mockGroup) Reach(context.Context, string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.number <= g.deaf || g.away {
		return errMockSilence
	}
	return g.called("Group.Reach")
}

func (g *mockGroup) Join(string, bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.told = false
	return g.called("Join")
}

func (g *mockGroup) Leave() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.called("Leave")
}

func (g *mockGroup) Poll(timeout time.Duration) (kafka.GroupEvent, error) {
	g.mu.Lock()
	err, first := g.called("Group.Poll"), !g.told
	g.told = g.told || err == nil
	g.mu.Unlock()
	switch {
	case err != nil:
		return kafka.GroupEvent{}, err
	case first:
		return kafka.GroupEvent{Kind: kafka.GroupAssigned, Partitions: []int{0, 7, -1}}, nil // only partition 0 exists
	}
	time.Sleep(timeout)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.feeds && g.number > g.deaf {
		return kafka.GroupEvent{Kind: kafka.GroupRecord}, nil
	}
	return kafka.GroupEvent{}, nil
}

func (g *mockGroup) Close() error {
	var err error
	g.once.Do(func() { err = g.closed("GroupConsumer") })
	return err
}

type mockAdmin struct{ *mockKafka }

func (a *mockAdmin) Brokers(context.Context, bool) ([]kafka.BrokerInfo, error) {
	return []kafka.BrokerInfo{{ID: 1}}, a.did("Brokers")
}

func (a *mockAdmin) did(call string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.called(call)
}

func (a *mockAdmin) Topic(context.Context, string) (kafka.TopicInfo, error) {
	return kafka.TopicInfo{ID: a.ids, Partitions: 1, Replicas: 1}, a.did("Topic")
}

func (a *mockAdmin) CreateTopic(context.Context, kafka.TopicSpec) error { return a.did("CreateTopic") }

func (a *mockAdmin) Settings(context.Context, string) (map[string]string, error) {
	return nil, a.did("Settings")
}

func (a *mockAdmin) Offsets(context.Context, string, int) ([]kafka.OffsetRange, error) {
	err := a.did("Offsets")
	a.mu.Lock()
	defer a.mu.Unlock()
	return []kafka.OffsetRange{{End: int64(len(a.log))}}, err
}

func (a *mockAdmin) Log(context.Context, string, int) (kafka.LogInfo, error) {
	err := a.did("Log")
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.away {
		err = errMockSilence
	}
	return kafka.LogInfo{OffsetRange: kafka.OffsetRange{End: int64(len(a.log))}}, err
}

func (a *mockAdmin) Close() { _ = a.closed("Admin") }

// mocked runs a test with one Neli on a mock, in a bubble.
func mocked(t *testing.T, cfg Config, prepare func(*mockKafka), test func(*testing.T, *mockKafka, *Neli)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		k := newMockKafka()
		prepare(k)
		cfg.Provider, cfg.LeaderGroupID = k, "g"
		n, err := New(cfg)
		require.NoError(t, err)
		defer func() {
			require.NoError(t, n.Close())
			require.Zero(t, k.open, "every client is closed")
		}()
		test(t, k, n)
	})
}

var errPassing = errors.New("passing")

func nothing(*mockKafka) {}

func TestNewFailsWithTheErrorOfItsClient(t *testing.T) {
	for _, call := range []string{"Producer", "Admin", "LogReader", "GroupConsumer"} {
		k := newMockKafka()
		k.fail(call, errors.New("no such property: foo"))
		_, err := New(Config{Provider: k, LeaderGroupID: "g", Nomination: NominationAssigned})
		require.ErrorContains(t, err, "no such property: foo")
		require.Zero(t, k.open, "%s: the clients made before are closed", call)
	}
}

// A property that all clients refuse is reported once, together with the other faults. Nothing is
// reported about properties that the library derived from a faulty field.
func TestNewReportsACommonRefusalOnce(t *testing.T) {
	secret := "hunter2-secret"
	foo, bar := errors.New("no such property: foo"), errors.New("bar: not "+secret+"\n")
	for _, roles := range []int{1, -1} {
		k := newMockKafka()
		k.fail("Producer", errors.Join(foo, bar), errors.Join(foo, bar))
		k.fail("LogReader", errors.Join(foo, errors.New("message.timeout.ms is too large")))
		k.fail("GroupConsumer", fmt.Errorf("client refuses its properties: %w", errors.Join(foo)))
		_, err := New(Config{Provider: k, LeaderGroupID: "g", Nomination: NominationAssigned, Roles: roles,
			KafkaConfig: KafkaConfigMap{"foo": "1", "bar": "2", "sasl.password": secret, "security.protocol": "SASL_SSL"}})
		require.Error(t, err)
		want := []string{"neli: invalid configuration:", "KafkaConfig: no such property: foo", "KafkaConfig: bar: not " + redact.Mark}
		if roles < 0 {
			want = append(want, `Roles: "-1" must be between 1 and 1000000`)
		} else {
			want = append(want, "Kafka client: message.timeout.ms is too large")
		}
		require.ElementsMatch(t, want, strings.Split(err.Error(), "\n"))
		require.ErrorIs(t, err, foo)
		require.Zero(t, k.open, "the clients that could be made are closed")
	}
}

// A start is retried after any passing error.
func TestStartIsRetried(t *testing.T) {
	for _, call := range []string{"Topic", "Offsets", "Assign", "Settings", "Poll", "Join", "Group.Poll"} {
		mocked(t, Config{Nomination: NominationAssigned}, func(k *mockKafka) { k.fail(call, errPassing, errPassing, errPassing) },
			func(t *testing.T, k *mockKafka, n *Neli) {
				ok, err := n.Pulse(time.Minute)
				require.NoError(t, err, call)
				require.True(t, ok, call)
			})
	}
}

// A process that has left its group goes on polling: the client may have to wait until a rebalance
// ends before it can tell the coordinator, and it does so within a poll.
func TestClientPollsOnAfterLeavingItsGroup(t *testing.T) {
	mocked(t, Config{Nomination: NominationAssigned}, nothing, func(t *testing.T, k *mockKafka, n *Neli) {
		p, err := n.Background(func() { time.Sleep(time.Second) })
		require.NoError(t, err)
		require.Eventually(t, n.IsLeader, time.Minute, 100*time.Millisecond)
		require.NoError(t, p.Close()) // it no longer contends
		time.Sleep(time.Second)
		require.Equal(t, 1, k.count("Leave"))
		polls := k.count("Group.Poll")
		time.Sleep(time.Second)
		require.Greater(t, k.count("Group.Poll"), polls+10)
	})
}

// A claim that the producer refuses, or whose report fails, is repeated after T/4 ± T/8. A process
// whose records do not come back claims nothing.
func TestClaimIsRepeatedOnlyWhenItFailed(t *testing.T) {
	for _, err := range []error{errors.New("queue full"), errReported} {
		mocked(t, Config{Nomination: NominationOpen}, func(k *mockKafka) { k.fail("Append", err) },
			func(t *testing.T, k *mockKafka, n *Neli) {
				began := time.Now()
				ok, err := n.Pulse(time.Minute)
				require.NoError(t, err)
				require.True(t, ok)
				require.Equal(t, 2, k.count("Append"))
				require.GreaterOrEqual(t, time.Since(began), 5625*time.Millisecond)
				require.Less(t, time.Since(began), 7*time.Second)
			})
	}
	mocked(t, Config{Nomination: NominationOpen}, func(k *mockKafka) { k.silent = true },
		func(t *testing.T, k *mockKafka, n *Neli) {
			ok, err := n.Pulse(10 * time.Minute)
			require.NoError(t, err)
			require.False(t, ok)
			require.Zero(t, k.count("Append"))
			require.LessOrEqual(t, k.count("Hello"), 2*10*60/5+2, "one probe and one announcement in each T")
		})
}

// A reader that has become useless is replaced, and every lease is learned anew.
func TestReaderIsReplaced(t *testing.T) {
	mocked(t, Config{Nomination: NominationOpen}, func(k *mockKafka) { k.fail("Poll", kafka.ErrClientFatal) },
		func(t *testing.T, k *mockKafka, n *Neli) {
			ok, err := n.Pulse(time.Minute)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, 2, k.count("LogReader"))
			require.Equal(t, 1, k.count("LogReader.Close"))
		})
}

func TestFatalErrors(t *testing.T) {
	for _, f := range []struct {
		call string
		err  error
		want error
		says string
	}{
		{"Topic", kafka.ErrAuthentication, ErrAccess, "find the leader topic"},
		{"Topic", kafka.ErrAuthorization, ErrAccess, "DESCRIBE topic g.neli"},
		{"Group.Poll", kafka.ErrAuthorization, ErrAccess, "READ group g"},
		{"Group.Poll", kafka.ErrInstanceFenced, kafka.ErrInstanceFenced, "group.instance.id"},
		{"Poll", kafka.ErrAuthorization, ErrAccess, "READ topic g.neli"},
	} {
		mocked(t, Config{Nomination: NominationAssigned}, func(k *mockKafka) { k.fail(f.call, slices.Repeat([]error{f.err}, 10_000)...) },
			func(t *testing.T, _ *mockKafka, n *Neli) {
				began := time.Now()
				ok, err := n.Pulse(time.Minute)
				require.False(t, ok)
				require.ErrorIs(t, err, f.want, f.call)
				require.ErrorContains(t, err, f.says)
				require.Less(t, time.Since(began), time.Second)
				require.ErrorIs(t, n.Await(), f.want)
				require.Equal(t, StateFailed, n.State())
				_, err = n.Background(func() {})
				require.ErrorIs(t, err, f.want)
				require.NoError(t, n.Close())
				require.Equal(t, StateFailed, n.State(), "after Close it can still be seen why it leads no more")
				require.ErrorIs(t, n.Await(), f.want)
			})
	}
}

// A permanent refusal to write ends a Neli. A passing one does not.
func TestRefusedWrites(t *testing.T) {
	mocked(t, Config{Nomination: NominationOpen}, func(k *mockKafka) {
		for _, call := range []string{"Hello", "Append"} {
			k.fail(call, slices.Repeat([]error{errors.Join(errReported, kafka.ErrAuthorization)}, 100)...)
		}
	}, func(t *testing.T, _ *mockKafka, n *Neli) {
		_, err := n.Pulse(time.Minute)
		require.ErrorIs(t, err, ErrAccess)
		require.ErrorContains(t, err, "WRITE topic g.neli")
	})
	mocked(t, Config{Nomination: NominationOpen}, nothing, func(t *testing.T, k *mockKafka, n *Neli) {
		ok, err := n.Pulse(time.Minute)
		require.NoError(t, err)
		require.True(t, ok)
		k.mu.Lock()
		k.fail("Append", errors.Join(errReported, kafka.ErrAuthorization))
		k.mu.Unlock()
		time.Sleep(time.Minute)
		_, err = n.Pulse(0)
		require.NoError(t, err)
	})
}

// When the topic turns out to be another one, the queued records are purged before anything else is done.
func TestRecordsForAReplacedTopicArePurged(t *testing.T) {
	mocked(t, Config{Nomination: NominationOpen}, nothing, func(t *testing.T, k *mockKafka, n *Neli) {
		ok, err := n.Pulse(time.Minute)
		require.NoError(t, err)
		require.True(t, ok)
		k.mu.Lock()
		k.ids = "another"
		k.mu.Unlock()
		require.ErrorIs(t, n.Await(), ErrTopicChanged)
		require.Positive(t, k.count("Purge"))
		require.False(t, n.IsLeader())
	})
}

// since returns the calls from the nth on.
func (k *mockKafka) since(n int) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.calls[n:])
}

// The reader, not the watch, finds out that the topic was replaced, while the process leads and
// beats are due. The records are purged before any client is closed, and whatever is appended
// afterwards is purged too.
func TestReaderFindsTheTopicReplaced(t *testing.T) {
	for range 5 {
		var calls []string
		mocked(t, Config{Nomination: NominationAssigned, HeartbeatTimeout: 100 * time.Millisecond, HeartbeatInterval: time.Millisecond}, nothing,
			func(t *testing.T, k *mockKafka, n *Neli) {
				ok, err := n.Pulse(time.Minute)
				require.NoError(t, err)
				require.True(t, ok)
				time.Sleep(time.Second)
				require.True(t, n.IsLeader())
				k.mu.Lock()
				before := len(k.calls)
				k.ids = "another"
				k.fail("Poll", kafka.ErrOutOfRange)
				k.mu.Unlock()
				began := time.Now()
				require.ErrorIs(t, n.Await(), ErrTopicChanged)
				require.Less(t, time.Since(began), 200*time.Millisecond, "not by the watch, which looks every ten seconds")
				require.False(t, n.IsLeader())
				time.Sleep(time.Minute)
				calls = k.since(before)
			})
		topics := slices.DeleteFunc(slices.Clone(calls), func(c string) bool { return c != "Topic" })
		require.Len(t, topics, 1, "%q", calls)
		require.Less(t, slices.Index(calls, "Poll"), slices.Index(calls, "Topic"), "%q", calls)
		purge := slices.Index(calls, "Purge")
		require.Greater(t, purge, slices.Index(calls, "Topic"), "%q", calls)
		if late := slices.Index(calls[purge:], "Append"); late >= 0 { // it was in flight already, and is purged later
			late += purge
			again := late + max(0, slices.Index(calls[late:], "Purge"))
			require.Greater(t, again, late, "%q", calls)
			require.Less(t, again, slices.Index(calls, "Producer.Close"), "%q", calls)
			require.NotContains(t, calls[late+1:], "Append")
		}
		for _, client := range []string{"Producer", "LogReader", "GroupConsumer", "Admin"} {
			require.Greater(t, slices.Index(calls, client+".Close"), purge, "%s: %q", client, calls)
		}
	}
}
