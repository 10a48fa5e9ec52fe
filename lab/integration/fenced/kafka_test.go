package fenced

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/lab/kafkatest"
)

// limited ends a test that waits too long. A transaction that nobody ends stays open for up to a minute, and readers wait for
// that.
func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestKafka tests each client on a real broker.
func TestKafka(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.Run(t, kafkatest.Options{Secure: true})
	plain := account{bootstrap: cluster.Bootstrap()}
	a := newAdmin(t, plain.bootstrap)
	for _, w := range writers {
		t.Run(w.name, func(t *testing.T) {
			t.Run("commits", func(t *testing.T) { testCommits(t, w, a, plain) })
			for _, by := range writers {
				t.Run("fenced by "+by.name, func(t *testing.T) { testFenced(t, w, by, a, plain) })
			}
			t.Run("compacted", func(t *testing.T) {
				topic := fresh("compacted")
				a.create(topic, map[string]string{"cleanup.policy": "compact"})
				err := w.check(limited(t), plain, topic)
				require.ErrorIs(t, err, fence.ErrCompacted)
				require.ErrorContains(t, err, topic+" has cleanup.policy=compact")
			})
			t.Run("rights", func(t *testing.T) { testRights(t, w, a, cluster) })
		})
	}
}

func testCommits(t *testing.T, w writer, a admin, who account) {
	topic := fresh("commits")
	a.create(topic, nil)
	require.NoError(t, w.check(limited(t), who, topic))
	err := w.lead(limited(t), who, fence.TransactionalID(topic, 0), topic, always{}, awake, func(ctx context.Context, commit commitText) error {
		require.NoError(t, commit(ctx, "a"))
		return commit(ctx, "b")
	})
	require.NoError(t, err)
	var got []string
	require.NoError(t, a.read(limited(t), topic, 0, func(text string) { got = append(got, text) }))
	require.Equal(t, []string{"a", "b"}, got)
}

// testFenced checks a term that is taken over while it is about to act. It must get an error at once, and no later
// call may report success.
func testFenced(t *testing.T, w, by writer, a admin, who account) {
	for _, at := range []string{"begin", "produce", "commit"} {
		t.Run(at, func(t *testing.T) {
			topic := fresh("fenced")
			a.create(topic, nil)
			id := fence.TransactionalID(topic, 0)
			ctx := limited(t)
			armed := false
			later := func(what string) {
				if what != at || !armed {
					return
				}
				armed = false
				require.NoError(t, by.lead(ctx, who, id, topic, always{}, awake, func(ctx context.Context, commit commitText) error {
					return commit(ctx, "later")
				}))
			}
			term := &ends{}
			err := w.lead(ctx, who, id, topic, term, func() pause { return later }, func(ctx context.Context, commit commitText) error {
				require.NoError(t, commit(ctx, "former"))
				armed = true
				err := commit(ctx, "late")
				require.ErrorIs(t, err, fence.ErrRefused)
				require.Equal(t, err, commit(ctx, "late again"))
				term.over = true
				return err
			})
			require.ErrorIs(t, err, fence.ErrStale)
			var got []string
			require.NoError(t, a.read(ctx, topic, 0, func(text string) { got = append(got, text) }))
			require.Equal(t, []string{"former", "later"}, got)
		})
	}
}

// ends is a term that a test can end.
type ends struct{ over bool }

func (e *ends) Valid() bool { return !e.over }

// testRights checks which rights a principal needs, and which errors it gets without them.
func testRights(t *testing.T, w writer, a admin, cluster *kafkatest.Cluster) {
	topic := fresh("rights")
	a.create(topic, nil)
	ctx := limited(t)
	who := account{cluster.SecureBootstrap(), fresh("user"), "s3same-0pen", cluster.CAPEM()}
	require.NoError(t, cluster.AddUser(ctx, who.user, who.password))
	write := func() error {
		return w.lead(ctx, who, fence.TransactionalID(topic, 0), topic, always{}, awake, func(ctx context.Context, commit commitText) error {
			return commit(ctx, "x")
		})
	}
	allow := func(kind, name string, prefixed bool) {
		require.NoError(t, cluster.Allow(ctx, kafkatest.ACL{Principal: "User:" + who.user, ResourceType: kind, Name: name, Prefixed: prefixed, Operation: "write"}))
	}
	err := write()
	require.ErrorIs(t, err, fence.ErrPermanent)
	require.ErrorContains(t, err, "WRITE on TransactionalId "+fence.TransactionalID(topic, 0))
	allow("transactional_id", "neli/"+topic+"/", true)
	err = write()
	require.ErrorIs(t, err, fence.ErrPermanent)
	require.ErrorContains(t, err, "WRITE on the topic")
	require.Contains(t, err.Error(), topic)
	allow("topic", topic, false)
	require.NoError(t, write())
}

// TestUnverified checks that brokers that do not verify transactions are refused, and that the error
// names the version that does.
func TestUnverified(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]kafkatest.Options{
		"switched off": {BrokerProps: map[string]string{"transaction.partition.verification.enable": "false"}},
		"too old":      {Version: "3.3.2"},
	} {
		cluster := kafkatest.Run(t, options)
		for _, w := range writers {
			t.Run(name+"/"+w.name, func(t *testing.T) {
				err := w.check(limited(t), account{bootstrap: cluster.Bootstrap()})
				require.ErrorIs(t, err, fence.ErrUnverified)
				require.ErrorContains(t, err, "Apache Kafka 3.6 or newer")
			})
		}
	}
}

// TestExpiredID checks that a Producer that was refused once does nothing more. Once the coordinator has forgotten an
// id, it cannot fence a former leader: with confluent-kafka-go the former leader could abort, begin again, write and
// commit under another producer id.
func TestExpiredID(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.Run(t, kafkatest.Options{BrokerProps: map[string]string{
		"transactional.id.expiration.ms":                             "5000", // a slow broker must not forget who is about to write
		"transaction.remove.expired.transaction.cleanup.interval.ms": "300",
	}})
	who := account{bootstrap: cluster.Bootstrap()}
	a := newAdmin(t, who.bootstrap)
	for _, w := range writers {
		t.Run(w.name, func(t *testing.T) {
			topic := fresh("expired")
			a.create(topic, nil)
			id, ctx := fence.TransactionalID(topic, 0), limited(t)
			term := &ends{}
			err := w.lead(ctx, who, id, topic, term, awake, func(ctx context.Context, commit commitText) error {
				require.NoError(t, commit(ctx, "former"))
				require.NoError(t, w.lead(ctx, who, id, topic, always{}, awake, func(ctx context.Context, commit commitText) error {
					return commit(ctx, "later")
				}))
				require.Eventually(t, func() bool { return a.forgotten(id) }, time.Minute, 100*time.Millisecond)
				err := commit(ctx, "late")
				require.ErrorIs(t, err, fence.ErrRefused)
				for range 3 {
					require.Equal(t, err, commit(ctx, "late again"))
				}
				term.over = true
				return err
			})
			require.ErrorIs(t, err, fence.ErrStale)
			var got []string
			require.NoError(t, a.read(ctx, topic, 0, func(text string) { got = append(got, text) }))
			require.Equal(t, []string{"former", "later"}, got)
		})
	}
}
