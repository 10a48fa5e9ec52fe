//go:build cgo && !neli_nolibrdkafka

package confluent

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/internal/absent"
)

func TestNewRefusesProperties(t *testing.T) {
	_, err := New(t.Context(), kafka.ConfigMap{"bootstrap.server": "x"})
	require.ErrorContains(t, err, "bootstrap.server")
	o := &Opener{config: kafka.ConfigMap{"acks": 1}}
	_, err = o.Open("id")()
	require.ErrorContains(t, err, "acks")
}

// The client refuses these properties only if it is transactional. New must find that out before the first term.
func TestNewRefusesPropertiesThatOpenWouldRefuse(t *testing.T) {
	for name, value := range map[string]kafka.ConfigValue{"acks": 1, "enable.idempotence": false, "message.timeout.ms": 60_000, "transaction.timeout.ms": 1} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := New(ctx, kafka.ConfigMap{"bootstrap.servers": "127.0.0.1:1", "log_level": 0, name: value})
		require.NoError(t, ctx.Err(), name)
		require.ErrorContains(t, err, name)
	}
}

func TestProduceRefusesANilRecord(t *testing.T) {
	o := &Opener{config: kafka.ConfigMap{"bootstrap.servers": "127.0.0.1:1", "log_level": 0}}
	c, err := o.Open("id")()
	require.NoError(t, err)
	defer c.Close()
	err = c.Produce(t.Context(), []*kafka.Message{nil})
	require.ErrorIs(t, err, fence.ErrPermanent)
	require.ErrorContains(t, err, "record 1 of 1 is nil")
}

// full is a client whose queue has room for a given number of records.
type full struct {
	transactional
	room int
}

func (c *full) Produce(*kafka.Message, chan kafka.Event) error {
	if c.room == 0 {
		return kafka.NewError(kafka.ErrQueueFull, "", false)
	}
	c.room--
	return nil
}

func TestTooLargeCommitNamesItsLimits(t *testing.T) {
	topic := "invoices"
	record := &kafka.Message{TopicPartition: kafka.TopicPartition{Topic: &topic}}
	err := (&client{kafka: &full{room: 2}}).Produce(t.Context(), []*kafka.Message{record, record, record})
	require.ErrorIs(t, err, fence.ErrPermanent)
	require.ErrorContains(t, err, "a Commit of 3 records is too large: the client has room for 2 of them (queue.buffering.max.messages, queue.buffering.max.kbytes)")
}

func TestNewWaitsUntilItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	time.AfterFunc(100*time.Millisecond, func() { cancel(gone) })
	_, err := New(ctx, kafka.ConfigMap{"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
	require.ErrorIs(t, err, gone)
}

// Without properties there is no broker to ask, so New waits until its context ends. nil means the
// same as an empty map.
func TestNewTreatsNilLikeNoProperties(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	time.AfterFunc(100*time.Millisecond, func() { cancel(gone) })
	_, err := New(ctx, nil)
	require.ErrorIs(t, err, gone)
}

// The client does not notice a cancellation, but resume does.
func TestInitEndsWithItsContext(t *testing.T) {
	o := &Opener{config: kafka.ConfigMap{"bootstrap.servers": "127.0.0.1:1", "log_level": 0}}
	c, err := o.Open("id")()
	require.NoError(t, err)
	defer c.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	time.AfterFunc(100*time.Millisecond, func() { cancel(gone) })
	require.ErrorIs(t, c.Init(ctx), gone)
}

// slowCommit is a client whose commit takes until answer is closed, or its time is up.
type slowCommit struct {
	transactional
	answer chan struct{}
	calls  atomic.Int32
	until  time.Time
	purged atomic.Bool
	closed chan struct{}
}

func newSlowCommit() *slowCommit {
	return &slowCommit{answer: make(chan struct{}), closed: make(chan struct{})}
}

func (c *slowCommit) CommitTransaction(ctx context.Context) error {
	c.calls.Add(1)
	c.until, _ = ctx.Deadline()
	select {
	case <-c.answer:
		return nil
	case <-ctx.Done():
		return kafka.NewError(kafka.ErrTimedOut, "", false)
	}
}

func (c *slowCommit) Purge(int) error { c.purged.Store(true); return nil }

func (c *slowCommit) Close() { close(c.closed) }

// A commit is a single call, however long the coordinator takes. Commit ends when the context does,
// but the client is closed only when the call has returned.
func TestCommitIsASingleCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newSlowCommit()
		c := &client{kafka: slow, limit: 15 * time.Second}
		time.AfterFunc(14*time.Second, func() { close(slow.answer) })
		require.NoError(t, c.Commit(t.Context()))
		require.EqualValues(t, 1, slow.calls.Load())
		c.Close()
		<-slow.closed
	})
}

func TestCommitIsGivenUpAfterTheTransactionsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, began := newSlowCommit(), time.Now()
		c := &client{kafka: slow, limit: 15 * time.Second}
		require.ErrorContains(t, c.Commit(t.Context()), kafka.ErrTimedOut.String())
		require.Equal(t, 15*time.Second, time.Since(began))
		require.EqualValues(t, 1, slow.calls.Load())
		c.Close()
		<-slow.closed
	})
}

func TestCommitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, began, gone := newSlowCommit(), time.Now(), errors.New("gone")
		c := &client{kafka: slow, limit: 15 * time.Second}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(gone) })
		require.ErrorIs(t, c.Commit(ctx), gone)
		c.Close()
		require.Equal(t, time.Second, time.Since(began), "neither waits for the coordinator")
		require.True(t, slow.purged.Load())
		synctest.Wait()
		select {
		case <-slow.closed:
			require.Fail(t, "closed during a call")
		default:
		}
		<-slow.closed
		require.Equal(t, 15*time.Second, time.Since(began))
		require.EqualValues(t, 1, slow.calls.Load())
	})
}

func TestCommitLimitIsTheTransactionsTimeout(t *testing.T) {
	for _, c := range []struct {
		value kafka.ConfigValue
		want  time.Duration
	}{{nil, time.Minute}, {15_000, 15 * time.Second}, {"7000", 7 * time.Second}} {
		config := kafka.ConfigMap{}
		if c.value != nil {
			config["transaction.timeout.ms"] = c.value
		}
		require.Equal(t, c.want, commitLimit(config))
	}
}

func TestClassifyNamesTheMissingRight(t *testing.T) {
	c := &client{id: "neli/invoicing/0"}
	err := c.classify(kafka.NewError(kafka.ErrTransactionalIDAuthorizationFailed, "", true))
	require.ErrorIs(t, err, fence.ErrPermanent)
	require.ErrorContains(t, err, "WRITE on TransactionalId neli/invoicing/0")
	err = c.classify(kafka.NewError(kafka.ErrTopicAuthorizationFailed, "", false))
	require.ErrorIs(t, err, fence.ErrPermanent)
	require.ErrorContains(t, err, "WRITE on the topic")
	err = c.classify(kafka.NewError(kafka.ErrFenced, "", true))
	require.NotErrorIs(t, err, fence.ErrPermanent)
	require.NoError(t, c.classify(nil))
}

// A broker may forget a topic for a moment. A topic that stays unknown counts as missing.
func TestTopicThatStaysUnknownIsAPermanentError(t *testing.T) {
	c := &client{id: "neli/invoicing/0", absent: &absent.Topics{}}
	topic := "invoices"
	for _, code := range unknown {
		c.absent.Known(slices.Values([]string{topic}))
		at, err := kafka.TopicPartition{Topic: &topic}, kafka.NewError(code, "", false)
		require.NotErrorIs(t, c.refused(at, err, time.Now()), fence.ErrPermanent)
		lasting := c.refused(at, err, time.Now().Add(-absent.Patience))
		require.ErrorIs(t, lasting, fence.ErrPermanent)
		require.ErrorContains(t, lasting, topic)
	}
}

// Brokers may be far away: an answer may take longer than New's first wait.
func TestNewReachesADistantBroker(t *testing.T) {
	broker, err := kafka.NewMockCluster(1)
	require.NoError(t, err)
	defer broker.Close()
	require.NoError(t, broker.SetRoundtripDuration(1, time.Second))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err = New(ctx, kafka.ConfigMap{"bootstrap.servers": broker.BootstrapServers(), "log_level": 0})
	require.NoError(t, err)
}

// A broker that shuts down may close a connection while the client logs in. That is not a refusal.
func TestBrokerShutdownDuringALoginIsNoRefusal(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for range 3 {
			conn, err := listener.Accept()
			if err != nil {
				break
			}
			leaveDuringLogin(conn)
		}
		cancel()
	}()
	o := &Opener{config: kafka.ConfigMap{"bootstrap.servers": listener.Addr().String(), "log_level": 0,
		"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "clerk", "sasl.password": "sesame"}}
	c, err := o.Open("id")()
	require.NoError(t, err)
	defer c.Close()
	err = c.Init(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, fence.ErrPermanent)
}

// If the password is wrong, New must return at once instead of asking until its context ends.
func TestRefusedLoginIsAnErrorAtOnce(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go refuseLogin(conn)
		}
	}()
	config := kafka.ConfigMap{"bootstrap.servers": listener.Addr().String(), "log_level": 0,
		"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "clerk", "sasl.password": "sesame"}
	for name, ask := range map[string]func(context.Context) error{
		"New":        func(ctx context.Context) error { _, err := New(ctx, config); return err },
		"AppendOnly": func(ctx context.Context) error { return (&Opener{config: config}).AppendOnly(ctx, "invoices") },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := ask(ctx)
			require.NoError(t, ctx.Err())
			require.ErrorContains(t, err, "Invalid username or password")
			require.NotContains(t, err.Error(), "sesame")
		})
	}
}

func TestOnlyARefusedLoginIsPermanent(t *testing.T) {
	late := kafka.NewError(kafka.ErrTimedOut, "", false)
	for text, permanent := range map[string]bool{
		"SASL authentication error: Authentication failed: Invalid username or password":                   true,
		"SASL authentication error: SaslAuthenticateRequest failed: Local: Broker transport failure":       false,
		"Failed to acquire SASL OAUTHBEARER token: Failed to connect to tokens.example.com port 443":       false,
		"Failed to acquire SASL OAUTHBEARER token: Expected JSON JWT response with \"access_token\" field": true,
	} {
		c := &client{watcher: &watcher{}}
		failed := kafka.NewError(kafka.ErrAuthentication, text, false)
		c.login.Store(&failed)
		err := c.classify(c.explain(late))
		require.Equal(t, permanent, errors.Is(err, fence.ErrPermanent), text)
		require.ErrorContains(t, err, text)
		require.ErrorIs(t, err, late)
	}
}

// leaveDuringLogin answers which requests a broker knows, and closes the connection when the client begins to log in.
func leaveDuringLogin(conn net.Conn) { answerLogin(conn, false) }

// refuseLogin refuses every password.
func refuseLogin(conn net.Conn) { answerLogin(conn, true) }

const apiVersions, saslHandshake, saslAuthenticate = 18, 17, 36

// answerLogin is a broker that knows only the requests of a login.
func answerLogin(conn net.Conn, refuse bool) {
	defer conn.Close()
	for {
		var size uint32
		if binary.Read(conn, binary.BigEndian, &size) != nil {
			return
		}
		request := make([]byte, size)
		if _, err := io.ReadFull(conn, request); err != nil {
			return
		}
		answer := slices.Clone(request[4:8]) // the correlation id
		switch key := binary.BigEndian.Uint16(request); {
		case key == apiVersions:
			answer = append(answer, versions(binary.BigEndian.Uint16(request[2:]))...)
		case !refuse:
			return
		case key == saslHandshake:
			answer = append(answer, 0, 0, 0, 0, 0, 1) // no error, one mechanism
			answer = append(answer, "\x00\x05PLAIN"...)
		default:
			const refused = "Authentication failed: Invalid username or password"
			answer = append(answer, 0, 58, 0, byte(len(refused))) // SASL_AUTHENTICATION_FAILED
			answer = append(answer, refused...)
			answer = append(answer, make([]byte, 4+8)...) // no bytes, no lifetime
		}
		if _, err := conn.Write(binary.BigEndian.AppendUint32(nil, uint32(len(answer)))); err != nil {
			return
		}
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

// versions answers that a broker knows the requests of a login in their first two versions, in the
// first form of that answer.
func versions(asked uint16) (answer []byte) {
	const unsupportedVersion = 35
	if asked > 0 {
		answer = binary.BigEndian.AppendUint16(answer, unsupportedVersion)
		return binary.BigEndian.AppendUint32(answer, 0)
	}
	answer = binary.BigEndian.AppendUint16(answer, 0)
	answer = binary.BigEndian.AppendUint32(answer, 3)
	for _, key := range []uint16{apiVersions, saslHandshake, saslAuthenticate} {
		answer = binary.BigEndian.AppendUint16(answer, key)
		answer = binary.BigEndian.AppendUint16(answer, 0) // the least version
		answer = binary.BigEndian.AppendUint16(answer, 1)
	}
	return answer
}
