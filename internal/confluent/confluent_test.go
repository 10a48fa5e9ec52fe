//go:build cgo && !neli_nolibrdkafka

package confluent

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/goneli/neli/kafka"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// These tests run librdkafka against its own mock cluster. The mock's timing of groups is unreal,
// so what depends on it is tested with a real broker.

const confluentTopic = "beats"

// patience bounds each wait, also on a busy machine.
const patience = time.Minute

// confluentBed is one mock cluster with a producer. At the end it checks that no goroutine is left.
type confluentBed struct {
	t       *testing.T
	cluster *ck.MockCluster
	props   map[string]string
}

var client kafka.Provider = confluent{}

func newConfluentBed(t *testing.T, partitions int) *confluentBed {
	t.Helper()
	// registered first, so it runs last
	t.Cleanup(func() { goleak.VerifyNone(t) })
	cluster, err := ck.NewMockCluster(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	if err := cluster.CreateTopic(confluentTopic, partitions, 1); err != nil {
		t.Fatal(err)
	}
	return &confluentBed{t: t, cluster: cluster, props: map[string]string{"bootstrap.servers": cluster.BootstrapServers()}}
}

func (b *confluentBed) with(extra ...string) map[string]string {
	return confluentProps(b.props, extra...)
}

func confluentProps(props map[string]string, extra ...string) map[string]string {
	all := map[string]string{}
	for name, value := range props {
		all[name] = value
	}
	for pair := range slices.Chunk(extra, 2) {
		all[pair[0]] = pair[1]
	}
	return all
}

func (b *confluentBed) producer(extra ...string) *confluentProducer {
	b.t.Helper()
	p, err := client.Producer(b.with(append([]string{"linger.ms", "0", "acks", "all"}, extra...)...), slog.New(slog.DiscardHandler))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { closeConfluent(b.t, p) })
	return p.(*confluentProducer)
}

func confluentReaderProps(props map[string]string) map[string]string {
	return confluentProps(props, "group.id", "not-joined", "enable.auto.commit", "false", "auto.offset.reset", "error",
		"fetch.wait.max.ms", "50", "fetch.error.backoff.ms", "50")
}

func (b *confluentBed) reader() kafka.LogReader {
	b.t.Helper()
	r, err := client.LogReader(confluentReaderProps(b.props), slog.New(slog.DiscardHandler))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { closeConfluent(b.t, r) })
	return r
}

func closeConfluent(t *testing.T, c interface{ Close() error }) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Errorf("closing %T: %v", c, err)
	}
}

// put appends a record and waits for the report.
func (b *confluentBed) put(p kafka.Producer, partition int, value string) {
	b.t.Helper()
	reported := make(chan error, 1)
	if err := p.Append(confluentTopic, partition, []byte(value), func(err error) { reported <- err }); err != nil {
		b.t.Fatal(err)
	}
	if err := <-reported; err != nil {
		b.t.Fatal(err)
	}
}

// confluentPoll returns the next record, and ignores passing errors.
func confluentPoll(t *testing.T, r kafka.LogReader) kafka.Record {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		record, ok, err := r.Poll(100 * time.Millisecond)
		if ok {
			return record
		}
		if err != nil {
			t.Logf("passing: %v", err)
		}
	}
	t.Fatalf("no record within %v", patience)
	return kafka.Record{}
}

// confluentPollError returns the first error of the kind, and ignores others.
func confluentPollError(t *testing.T, kind error, poll func() error) error {
	t.Helper()
	var last error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if err := poll(); errors.Is(err, kind) {
			return err
		} else if err != nil {
			last = err
		}
	}
	t.Fatalf("no error of kind %q within %v; last: %v", kind, patience, last)
	return nil
}

// A reader that is assigned a topic reads at once, even if it connected long before, and does not
// wait until the client next looks for unknown topics. Without look, about one round in five takes
// 0.8 s. A round in which the machine stalls proves nothing: a record passes through about ten threads,
// each of which may stall.
func TestConfluentReadsAtOnce(t *testing.T) {
	b := newConfluentBed(t, 1)
	b.put(b.producer(), 0, "x")
	for counted, tried := 0, 0; counted < 5; tried++ {
		if tried == 500 {
			t.Fatal("the machine is too busy")
		}
		r := b.reader()
		if _, ok, err := r.Poll(200 * time.Millisecond); ok || err != nil {
			t.Fatalf("not assigned: %v, %v", ok, err)
		}
		var took time.Duration
		stall := longestStall(func() {
			took = confluentElapsed(func() {
				if err := r.Assign(confluentTopic, []int64{0}); err != nil {
					t.Fatal(err)
				}
				confluentPoll(t, r)
			})
		})
		switch {
		case stall > 40*time.Millisecond:
			continue
		case took > 500*time.Millisecond:
			t.Errorf("the first record came after %v", took)
		}
		counted++
	}
}

// longestStall returns the longest time for which this process stood still while fn ran.
func longestStall(fn func()) (longest time.Duration) {
	done, out := make(chan struct{}), make(chan time.Duration)
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		longest, last, running := time.Duration(0), time.Now(), true
		for running {
			select {
			case <-tick.C:
			case <-done:
				running = false
			}
			now := time.Now()
			longest, last = max(longest, now.Sub(last)), now
		}
		out <- longest
	}()
	defer func() { close(done); longest = <-out }()
	fn()
	return longest
}

func TestConfluentAssignDropsFetchedRecords(t *testing.T) {
	b := newConfluentBed(t, 2)
	p, r := b.producer(), b.reader()
	for i := range 200 {
		b.put(p, i%2, "x")
	}
	for round := range 10 {
		if err := r.Assign(confluentTopic, []int64{0, 0}); err != nil {
			t.Fatal(err)
		}
		for range 5 + round {
			confluentPoll(t, r) // a hundred more are fetched already
		}
		want := []int64{int64(50 + round), 0}
		if err := r.Assign(confluentTopic, want); err != nil {
			t.Fatal(err)
		}
		for next := slices.Clone(want); next[0]+next[1] < 150; {
			record := confluentPoll(t, r)
			if record.Offset != next[record.Partition] {
				t.Fatalf("round %d: partition %d: read offset %d, want %d", round, record.Partition, record.Offset, next[record.Partition])
			}
			next[record.Partition]++
		}
	}
}

func TestConfluentAssignRefusesLogicalOffsets(t *testing.T) {
	b := newConfluentBed(t, 1)
	if err := b.reader().Assign(confluentTopic, []int64{int64(ck.OffsetEnd)}); err == nil {
		t.Error("a logical offset was accepted")
	}
}

func TestConfluentAdmin(t *testing.T) {
	b := newConfluentBed(t, 3)
	p := b.producer()
	a, err := client.Admin(p)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	// Only Offsets: the other calls need a controller, which the mock cluster lacks.
	b.put(p, 1, "x")
	b.put(p, 1, "x")
	ranges, err := a.Offsets(ctx, confluentTopic, 3)
	if want := []kafka.OffsetRange{{Start: 0, End: 0}, {Start: 0, End: 2}, {Start: 0, End: 0}}; !slices.Equal(ranges, want) || err != nil {
		t.Errorf("offsets: %v, %v, want %v", ranges, err, want)
	}
	if _, err := a.Offsets(ctx, confluentTopic, 4); !errors.Is(err, kafka.ErrUnknownTopic) {
		t.Errorf("offsets of a partition that does not exist: %v", err)
	}

	// A call ends with its context, or when the admin is closed.
	if err := b.cluster.SetBrokerDown(1); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if took := confluentElapsed(func() { _, err = a.Topic(short, confluentTopic) }); err == nil || took > patience/2 {
		t.Errorf("without a broker: %v after %v", err, took)
	}
	time.AfterFunc(100*time.Millisecond, a.Close)
	if took := confluentElapsed(func() { _, err = a.Topic(context.Background(), confluentTopic) }); err == nil || took > patience/2 {
		t.Errorf("closed meanwhile: %v after %v", err, took)
	}
	if _, err := a.Brokers(ctx, true); err == nil {
		t.Error("a closed admin answered")
	}
}

func confluentElapsed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func TestConfluentAdminNeedsAProducer(t *testing.T) {
	if _, err := client.Admin(nil); err == nil {
		t.Error("got an admin without a producer")
	}
}

// A broker that accepts connections and never answers is the worst case for Close.
func TestConfluentCloseIsBounded(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	addr := confluentServe(t, nil, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	props := map[string]string{"bootstrap.servers": addr, "message.timeout.ms": "60000"}
	group := confluentProps(props, "group.id", "g")
	delete(group, "message.timeout.ms")

	p, err := client.Producer(props, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	r, err := client.LogReader(confluentReaderProps(group), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	g, err := client.GroupConsumer(group, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Append(confluentTopic, 0, nil, func(error) {})
	_ = r.Assign(confluentTopic, []int64{0})
	_ = g.Join(confluentTopic, false)
	_, _, _ = r.Poll(50 * time.Millisecond)
	_, _ = g.Poll(50 * time.Millisecond)

	for _, c := range []interface{ Close() error }{p, r, g} {
		var err error
		if took := confluentElapsed(func() { err = c.Close() }); took > confluentCloseBound+patience/2 {
			t.Errorf("closing %T took %v", c, took)
		}
		// librdkafka takes up to 5 s, and on a busy machine longer than the bound.
		if err != nil && !strings.Contains(err.Error(), "did not close within") {
			t.Errorf("closing %T: %v", c, err)
		}
		_ = c.Close() // closing again must do no harm
	}
	if _, _, err := r.Poll(0); err == nil {
		t.Error("a closed reader was polled")
	}
	if _, err := g.Poll(0); err == nil {
		t.Error("a closed group consumer was polled")
	}
	if r.Assign(confluentTopic, []int64{0}) == nil || g.Join(confluentTopic, false) == nil {
		t.Error("a closed consumer was used")
	}
}

// confluentServe answers connections until the test ends, over TLS if config is given.
func confluentServe(t *testing.T, config *tls.Config, serve func(net.Conn)) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				if config != nil {
					conn = tls.Server(conn, config)
				}
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		serving.Wait()
	})
	return listener.Addr().String()
}

// A consumer gets a refused authentication as an event. A producer gets it as an event that no
// call returns, but reports and admin calls must return it all the same.
func TestConfluentAuthenticationRefused(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	addr := confluentServe(t, &tls.Config{Certificates: []tls.Certificate{confluentCertificate(t)}},
		func(c net.Conn) { _ = c.(*tls.Conn).Handshake() })
	props := map[string]string{"bootstrap.servers": addr, "security.protocol": "ssl"}

	r, err := client.LogReader(confluentReaderProps(props), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer closeConfluent(t, r)
	confluentPollError(t, kafka.ErrAuthentication, func() error { _, _, err := r.Poll(100 * time.Millisecond); return err })

	p, err := client.Producer(confluentProps(props, "message.timeout.ms", "5000"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer closeConfluent(t, p)
	a, err := client.Admin(p)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // the handshake must have failed by then
	defer cancel()
	if _, err := a.Topic(ctx, confluentTopic); !errors.Is(err, kafka.ErrAuthentication) {
		t.Errorf("admin: %v", err)
	}
	reported := make(chan error, 1)
	if err := p.Append(confluentTopic, 0, nil, func(err error) { reported <- err }); err != nil {
		t.Fatal(err)
	}
	if err := <-reported; !errors.Is(err, kafka.ErrAuthentication) {
		t.Errorf("report: %v", err)
	}
}

func confluentCertificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestConfluentRefusesProperties(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	props := map[string]string{"group.id": "g", "security.protocol": "n0ne"}
	for what, err := range map[string]error{
		"producer": confluentSecond(client.Producer(props, slog.New(slog.DiscardHandler))),
		"reader":   confluentSecond(client.LogReader(props, slog.New(slog.DiscardHandler))),
		"group":    confluentSecond(client.GroupConsumer(props, slog.New(slog.DiscardHandler))),
	} {
		if err == nil || !strings.Contains(err.Error(), "security.protocol") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func confluentSecond[T any](_ T, err error) error { return err }

func TestConfluentLogs(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	l := confluent{}.logs(log, nil)
	l.events <- ck.LogEvent{Name: "rdkafka#producer-1", Tag: "ERROR", Level: 3, Message: "all is lost"}
	l.events <- ck.LogEvent{Name: "rdkafka#producer-1", Tag: "FAIL", Level: 3, Message: "[thrd:b:1]: b:1: connection refused"}
	l.events <- ck.LogEvent{Name: "rdkafka#producer-1", Tag: "CONF", Level: 7, Message: "configured"}
	l.close()
	for _, want := range []string{
		`level=WARN msg="Kafka client" text="all is lost" client=rdkafka#producer-1 tag=ERROR`,
		`level=DEBUG msg="Kafka client" text="[thrd:b:1]: b:1: connection refused" client=rdkafka#producer-1 tag=FAIL`,
		`level=DEBUG msg="Kafka client" text=configured client=rdkafka#producer-1 tag=CONF`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	timedOut := errors.New("timed out")
	if err := l.explain(timedOut); !errors.Is(err, timedOut) || err.Error() != "timed out (b:1: connection refused)" {
		t.Errorf("a time-out is explained as %v", err)
	}
}

// The library asks the client for statistics, which say how long brokers have throttled it. They
// must not disturb anything else that Poll returns.
func TestConfluentStatistics(t *testing.T) {
	var s confluentStats
	s.count(`{"brokers":{"b:1/1":{"throttle":{"min":0,"max":900,"sum":1200,"cnt":7}},"b:2/2":{"throttle":{"sum":34}},"GroupCoordinator":{}}}`)
	s.count(`{"brokers":{"b:1/1":{"throttle":{"sum":1}}}}`)
	s.count(`{"brokers":[]}`)
	s.count("rubbish")
	if want := 1235 * time.Millisecond; s.Throttled() != want {
		t.Errorf("throttled %v, want %v", s.Throttled(), want)
	}

	b := newConfluentBed(t, 1)
	b.props["statistics.interval.ms"] = "10"
	p, r := b.producer(), b.reader()
	if err := r.Assign(confluentTopic, []int64{0}); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		b.put(p, 0, fmt.Sprint(i))
		if got := confluentPoll(t, r); got.Offset != int64(i) {
			t.Fatalf("read offset %d, want %d", got.Offset, i)
		}
		if took := confluentElapsed(func() { _, _, _ = r.Poll(50 * time.Millisecond) }); took < 45*time.Millisecond {
			t.Errorf("a poll of nothing took %v", took)
		}
	}
	if p.Throttled() != 0 || r.Throttled() != 0 {
		t.Errorf("throttled %v and %v without a quota", p.Throttled(), r.Throttled())
	}
}

func TestConfluentErrors(t *testing.T) {
	if asConfluentError("x", nil) != nil || asConfluentError("x", ck.NewError(ck.ErrNoError, "", false)) != nil {
		t.Error("got an error for a success")
	}
	kinds := []error{kafka.ErrUnknownTopic, kafka.ErrTopicExists, kafka.ErrSettings, kafka.ErrTimestamp, kafka.ErrOutOfRange, kafka.ErrTruncated, kafka.ErrAuthentication, kafka.ErrAuthorization, kafka.ErrInstanceFenced, kafka.ErrClientFatal}
	for _, c := range []struct {
		err  ck.Error
		want []error // in the order of kinds
	}{
		{ck.NewError(ck.ErrUnknownTopic, "", false), []error{kafka.ErrUnknownTopic}},
		{ck.NewError(ck.ErrUnknownPartition, "", false), []error{kafka.ErrUnknownTopic}},
		{ck.NewError(ck.ErrUnknownTopicOrPart, "", false), []error{kafka.ErrUnknownTopic}},
		{ck.NewError(ck.ErrTopicAlreadyExists, "", false), []error{kafka.ErrTopicExists}},
		{ck.NewError(ck.ErrInvalidConfig, "", false), []error{kafka.ErrSettings}},
		{ck.NewError(ck.ErrPolicyViolation, "", false), []error{kafka.ErrSettings}},
		{ck.NewError(ck.ErrInvalidTimestamp, "", false), []error{kafka.ErrTimestamp}},
		{ck.NewError(ck.ErrAutoOffsetReset, "", false), []error{kafka.ErrOutOfRange}},
		{ck.NewError(ck.ErrLogTruncation, "", false), []error{kafka.ErrTruncated}},
		{ck.NewError(ck.ErrAutoOffsetReset, "Partition log truncation detected at offset 7 (leader epoch 3): broker end offset is 5 "+
			"(offset leader epoch 2). Reset to INVALID.: Local: Partition log truncation detected (broker 1)", false), []error{kafka.ErrTruncated}},
		{ck.NewError(ck.ErrAutoOffsetReset, "fetch failed due to requested offset not available on the broker: Broker: Offset out of range (broker 1)",
			false), []error{kafka.ErrOutOfRange}},
		{ck.NewError(ck.ErrAuthentication, "SASL authentication error: Authentication failed", false), []error{kafka.ErrAuthentication}},
		{ck.NewError(ck.ErrSsl, "SSL handshake failed: certificate verify failed", false), []error{kafka.ErrAuthentication}},
		{ck.NewError(ck.ErrTransport, "Receive failed: error:0A00045C:SSL routines::tlsv13 alert certificate required: SSL alert number 116", false), []error{kafka.ErrAuthentication}},
		{ck.NewError(ck.ErrGroupAuthorizationFailed, "", false), []error{kafka.ErrAuthorization}},
		{ck.NewError(ck.ErrFencedInstanceID, "", true), []error{kafka.ErrInstanceFenced, kafka.ErrClientFatal}},
		{ck.NewError(ck.ErrOutOfOrderSequenceNumber, "", true), []error{kafka.ErrClientFatal}},
		{ck.NewError(ck.ErrClusterAuthorizationFailed, "", true), []error{kafka.ErrAuthorization, kafka.ErrClientFatal}},
		// Passing, although their codes sound final: a broker that restarts, and a token service that is down.
		{ck.NewError(ck.ErrAuthentication, "SASL authentication error: SaslAuthenticateRequest failed: Local: Broker transport failure", false), nil},
		{ck.NewError(ck.ErrAuthentication, "Failed to acquire SASL OAUTHBEARER token: timed out", false), nil},
		{ck.NewError(ck.ErrAuthentication, "Failed to acquire SASL OAUTHBEARER token: Failed to connect to 127.0.0.1 port 1", false), nil},
		{ck.NewError(ck.ErrAuthentication, `Failed to acquire SASL OAUTHBEARER token: {"error":"invalid_client"}`, false), []error{kafka.ErrAuthentication}},
		{ck.NewError(ck.ErrAuthentication, `Failed to acquire SASL OAUTHBEARER token: Expected JSON JWT response with "exp" field`, false), []error{kafka.ErrAuthentication}},
		{ck.NewError(ck.ErrAuthentication, "Failed to acquire SASL OAUTHBEARER token: SSL certificate problem: self-signed certificate", false), []error{kafka.ErrAuthentication}},
		{ck.NewError(ck.ErrTransport, "Receive failed: error:0A000126:SSL routines::unexpected eof while reading", false), nil},
		{ck.NewError(ck.ErrAllBrokersDown, "", false), nil},
		{ck.NewError(ck.ErrMsgTimedOut, "", false), nil},
		{ck.NewError(ck.ErrMaxPollExceeded, "", false), nil},
	} {
		err := asConfluentError("trying", c.err)
		var got []error
		for _, kind := range kinds {
			if errors.Is(err, kind) {
				got = append(got, kind)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v is %v, want %v", err, got, c.want)
		}
		if !strings.HasPrefix(err.Error(), "trying: ") || !strings.HasSuffix(err.Error(), confluentNamed(c.err.Error())) {
			t.Errorf("%q lacks what was tried or the client's words", err)
		}
		var cause ck.Error // with errors.As, since the module's tests must build with the oldest Go that it names
		if !errors.As(err, &cause) || cause.Code() != c.err.Code() {
			t.Errorf("%q does not unwrap to the client's error", err)
		}
	}
}

// attempts counts attempts to connect, which librdkafka logs on request.
type attempts struct{ n atomic.Int64 }

func (*attempts) Enabled(context.Context, slog.Level) bool { return true }
func (a *attempts) WithAttrs([]slog.Attr) slog.Handler     { return a }
func (a *attempts) WithGroup(string) slog.Handler          { return a }
func (a *attempts) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(attr slog.Attr) bool {
		if attr.Key == "tag" && attr.Value.String() == "CONNECT" {
			a.n.Add(1)
		}
		return true
	})
	return nil
}

// Asking for the ends of a log whose broker is down must not keep a core busy.
func TestConfluentQuestionsToADeadBrokerAreRare(t *testing.T) {
	b := newConfluentBed(t, 1)
	seen := &attempts{}
	p, err := client.Producer(b.with("acks", "all", "debug", "broker", "reconnect.backoff.ms", "50", "reconnect.backoff.max.ms", "500"), slog.New(seen))
	require.NoError(t, err)
	defer closeConfluent(t, p)
	b.put(p, 0, "a")
	admin, err := client.Admin(p)
	require.NoError(t, err)
	defer admin.Close()
	_, err = admin.Log(t.Context(), confluentTopic, 0)
	require.NoError(t, err)
	require.NoError(t, b.cluster.SetBrokerDown(1))
	before := seen.n.Load()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err = admin.Log(ctx, confluentTopic, 0)
	require.Error(t, err)
	// Each attempt is logged in two or three lines, and there are two connections.
	require.Less(t, seen.n.Load()-before, int64(300), "lines about connecting in two seconds")
	require.NoError(t, b.cluster.SetBrokerUp(1))
}

// A member's Reach works before and after it joins, beside other calls, and fails after Close.
func TestConfluentReachWorksInAGroup(t *testing.T) {
	b := newConfluentBed(t, 1)
	g, err := client.GroupConsumer(confluentProps(b.props, "group.id", "g"), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer closeConfluent(t, g)
	ask := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		return g.Reach(ctx, confluentTopic)
	}
	require.Eventually(t, func() bool { return ask() == nil }, time.Minute, 10*time.Millisecond)
	require.NoError(t, g.Join(confluentTopic, true))
	require.Eventually(t, func() bool { return ask() == nil }, time.Minute, 10*time.Millisecond)
	require.NoError(t, b.cluster.SetBrokerDown(1))
	require.Eventually(t, func() bool { return ask() != nil }, time.Minute, 10*time.Millisecond)
	require.NoError(t, b.cluster.SetBrokerUp(1))
	require.Eventually(t, func() bool { return ask() == nil }, time.Minute, 10*time.Millisecond)
	require.NoError(t, b.cluster.SetBrokerDown(1))
	asked := make(chan error, 1)
	go func() { asked <- ask() }()
	closeConfluent(t, g)
	<-asked
	require.Error(t, ask())
	require.NoError(t, b.cluster.SetBrokerUp(1))
}

// taken is a client that takes a token.
type taken chan ck.OAuthBearerToken

func (c taken) SetOAuthBearerToken(t ck.OAuthBearerToken) error { c <- t; return nil }
func (taken) SetOAuthBearerTokenFailure(string) error           { return nil }

func TestConfluentAcceptsAFarExpiry(t *testing.T) {
	token := kafka.Token{Value: "t", Expires: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}
	l := confluentLogin{Login: kafka.Login{Token: func(context.Context) (kafka.Token, error) { return token, nil }}}
	c := make(taken, 1)
	l.keep(c)
	defer l.stop()
	require.Greater(t, (<-c).Expiration.UnixNano(), time.Now().UnixNano())
}
