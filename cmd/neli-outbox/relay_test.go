//go:build unix

package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/lab/kafkatest"
)

// Tests of whole relays share a database server and a broker.
func TestRelay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kafkatest.Options{Secure: true}, 1)
	t.Run("the database comes later", func(t *testing.T) {
		own := *w
		own.t = t
		testDatabaseComesLater(t, own.beside("later", 2))
	})
	for name, test := range map[string]func(*testing.T, *world){
		"rows come with their headers":                          testRowsComeWithTheirHeaders,
		"a leader killed before it deleted":                     testKilledBeforeItDeleted,
		"a leader killed beside its deletion":                   testKilledBesideItsDeletion,
		"a former leader's late records are dropped":            testLateRecords,
		"a row that is too large, in transactions":              testTooLarge("transactions"),
		"a row that is too large, by header":                    testTooLarge("header"),
		"a row for a topic that is not there, in transactions":  testNoTopic("transactions"),
		"a row for a topic that is not there, by header":        testNoTopic("header"),
		"a topic that is made later, in transactions":           testLateTopic("transactions"),
		"a topic that is made later, by header":                 testLateTopic("header"),
		"a compacted topic, by header":                          testCompacted,
		"the schema is missing":                                 testNoSchema,
		"passwords are not told":                                testPasswords,
		"rights are named":                                      testRights,
		"metrics and the page are served":                       testServes,
		"notes of what was published are found, however far":    testNotes,
		"too few partitions for the slots":                      testPartitions,
		"odd rows and tables, in transactions":                  testOddRowsAndTables("transactions"),
		"odd rows and tables, by header":                        testOddRowsAndTables("header"),
		"a relay is woken by the database, and polls otherwise": testWoken,
		"what is left of a lost row is found":                   testTraces,
		"rows that have waited long, in transactions":           testOldRows("transactions"),
		"rows that have waited long, by header":                 testOldRows("header"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := *w
			own.t = t
			slots := 2
			if strings.HasPrefix(name, "odd") {
				slots = 4
			}
			test(t, own.beside("w"+strings.Map(letters, name), slots))
		})
	}
}

func letters(r rune) rune {
	if r >= 'a' && r <= 'z' {
		return r
	}
	return -1
}

// Rows wait as long as Kafka or all relays are down. A record has the time of its row.
func testOldRows(fence string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		_, err := w.store.pool.Exec(t.Context(), `INSERT INTO outbox (topic, key, payload, created) VALUES ($1, 'k', 'old', now() - interval '1 day')`, w.topicName)
		require.NoError(t, err)
		p := w.start(nil, "--fence", fence)
		w.awaitEmpty(stepLimit)
		p.stop(t)
		records := w.published()
		require.Equal(t, []string{"k old"}, payloads(records))
		require.Greater(t, time.Since(records[0].Timestamp), 23*time.Hour)
	}
}

func testRowsComeWithTheirHeaders(t *testing.T, w *world) {
	p := w.start(nil)
	for i := range 3 {
		_, err := w.store.pool.Exec(t.Context(), `INSERT INTO outbox (topic, key, payload, headers) VALUES ($1, 'k', $2, '{"type":"paid"}')`, w.topicName, fmt.Append(nil, i))
		require.NoError(t, err)
	}
	_, err := w.store.pool.Exec(t.Context(), `INSERT INTO outbox (topic, key) VALUES ($1, 'k')`, w.topicName)
	require.NoError(t, err)
	w.awaitEmpty(stepLimit)
	p.stop(t)
	records := w.published()
	require.Equal(t, []string{"k 0", "k 1", "k 2", "k "}, payloads(records))
	require.Equal(t, "paid", valueOf(records[0], "type"))
	require.Equal(t, "4", valueOf(records[3], idHeader))
	require.Nil(t, records[3].Value, "a tombstone")
}

// inTerm runs the work of a term of slot 0 in the test, as a leader does.
func inTerm(t *testing.T, p publisher, token int64, work func(ctx context.Context, w writer, published []ref)) {
	t.Helper()
	err := p.term(t.Context(), term{always{}, 0, token}, func(ctx context.Context, w writer, last note) error {
		work(ctx, w, last.rows)
		return nil
	})
	require.NoError(t, err)
}

func (w *world) opts() []kgo.Opt { return []kgo.Opt{kgo.SeedBrokers(seeds(w.kafka.Bootstrap())...)} }

// idsOf returns the ids of rows.
func idsOf(refs []ref) []int64 {
	ids, _ := columns(refs)
	return ids
}

// all returns a batch of all rows, after deleting the published ones.
func all(t *testing.T, ctx context.Context, w writer, published []ref) []row {
	t.Helper()
	seen, err := w.next(ctx, published, nil, plenty)
	require.NoError(t, err)
	return seen.rows
}

func testKilledBeforeItDeleted(t *testing.T, w *world) {
	p, err := (&config{group: w.topicName}).publisher(t.Context(), w.store, 2, w.opts(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	w.insert("b", "1") // of slot 0
	inTerm(t, p, 1, func(ctx context.Context, wr writer, published []ref) {
		require.Empty(t, published)
		require.NoError(t, wr.publish(ctx, all(t, ctx, wr, nil), nil, position{}))
	})
	w.insert("b", "2")
	inTerm(t, p, 2, func(ctx context.Context, wr writer, published []ref) {
		require.Equal(t, []int64{1}, idsOf(published))
		rows := all(t, ctx, wr, published)
		require.Equal(t, []string{"b 2"}, keysOf(rows))
		require.NoError(t, wr.publish(ctx, rows, nil, position{}))
	})
	require.Equal(t, []string{"b 1", "b 2"}, payloads(w.published()))
	inTerm(t, p, 3, func(ctx context.Context, wr writer, _ []ref) { // ignores the note
		require.NoError(t, wr.publish(ctx, all(t, ctx, wr, nil), nil, position{}))
	})
	require.Equal(t, []string{"b 1", "b 2", "b 2"}, payloads(w.published()), "the note is what prevents this")
}

// The writer has published two batches, and the deletion of the first one was under way.
func testKilledBesideItsDeletion(t *testing.T, w *world) {
	p, err := (&config{group: w.topicName}).publisher(t.Context(), w.store, 2, w.opts(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	w.insert("b", "1") // of slot 0
	inTerm(t, p, 1, func(ctx context.Context, wr writer, _ []ref) {
		first := all(t, ctx, wr, nil)
		require.NoError(t, wr.publish(ctx, first, nil, position{}))
		w.insert("b", "2")
		seen, err := wr.next(ctx, nil, refsOf(first), plenty)
		require.NoError(t, err)
		require.Equal(t, []string{"b 2"}, keysOf(seen.rows))
		require.NoError(t, wr.publish(ctx, seen.rows, refsOf(first), position{}))
	})
	inTerm(t, p, 2, func(ctx context.Context, wr writer, published []ref) {
		require.Equal(t, []int64{1, 2}, idsOf(published))
		require.Empty(t, all(t, ctx, wr, published))
	})
	require.Equal(t, []string{"b 1", "b 2"}, payloads(w.published()))
}

func testLateRecords(t *testing.T, w *world) {
	p := newHeaders(w.store, w.topicName, 2, w.opts(), slog.New(slog.DiscardHandler))
	w.insert("b", "1")
	w.insert("b", "2")
	inTerm(t, p, 5, func(ctx context.Context, former writer, _ []ref) {
		rows := all(t, ctx, former, nil)
		inTerm(t, p, 9, func(ctx context.Context, present writer, _ []ref) {
			require.NoError(t, present.publish(ctx, all(t, ctx, present, nil)[:1], nil, position{}))
		})
		require.NoError(t, former.publish(ctx, rows, nil, position{}), "Kafka takes them")
		_, err := former.next(ctx, refsOf(rows), nil, plenty)
		require.ErrorIs(t, err, fence.ErrStale, "row 2 would be lost: readers drop its record")
	})
	taken, late, repeated := admitted(t, w.published())
	require.Equal(t, []string{"b 1"}, payloads(taken))
	require.Equal(t, 2, late)
	require.Zero(t, repeated)
	inTerm(t, p, 9, func(ctx context.Context, present writer, _ []ref) {
		require.NoError(t, present.publish(ctx, all(t, ctx, present, nil), nil, position{}))
	})
	taken, late, repeated = admitted(t, w.published())
	require.Equal(t, []string{"b 1", "b 2"}, payloads(taken))
	require.Equal(t, []int{2, 1}, []int{late, repeated})
}

func testTooLarge(rule string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		small := "3000"
		w.topicName += "small"
		w.topic(w.topicName, map[string]*string{"max.message.bytes": &small})
		noise := make([]byte, 4000)
		for i := range noise {
			noise[i] = byte(i*i>>3 ^ i*7919>>5)
		}
		for _, key := range []string{"a", "b", "c"} {
			w.insert(key, "1")
		}
		w.insert("b", string(fmt.Appendf(nil, "%x", noise)))
		for _, key := range []string{"a", "b", "c"} {
			w.insert(key, "2")
		}
		p := w.start(nil, "--fence", rule, "--max-record-bytes", "2500")
		p.says(t, "a row cannot be published and is set aside; its key waits")
		published := func() (out []string) {
			records := w.published()
			if rule == "header" {
				records, _, _ = admitted(t, records)
			}
			return payloads(records)
		}
		require.Eventually(t, func() bool { return len(published()) == 5 }, stepLimit, 50*time.Millisecond, "of 7, that row and the next of its key wait")
		require.NotContains(t, published(), "b 2")
		var why string
		require.NoError(t, w.store.pool.QueryRow(t.Context(), "SELECT failed FROM outbox WHERE failed IS NOT NULL").Scan(&why))
		require.Contains(t, why, "MESSAGE_TOO_LARGE")
		_, err := w.store.pool.Exec(t.Context(), "UPDATE outbox SET payload = 'short', failed = NULL WHERE failed IS NOT NULL")
		require.NoError(t, err)
		w.awaitEmpty(stepLimit)
		p.stop(t)
		var ofB []string
		for _, payload := range published() {
			if payload[0] == 'b' {
				ofB = append(ofB, payload)
			}
		}
		require.Equal(t, []string{"b 1", "b short", "b 2"}, ofB)
	}
}

func testNoTopic(rule string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		w.insert("a", "1")
		_, err := w.store.pool.Exec(t.Context(), insertRow, "none", "b", "1")
		require.NoError(t, err)
		w.insert("c", "1")
		p := w.start(nil, "--fence", rule)
		p.says(t, "a row cannot be published and is set aside; its key waits")
		w.awaitEmpty(stepLimit)
		p.stop(t)
		records := w.published()
		if rule == "header" {
			records, _, _ = admitted(t, records)
		}
		require.ElementsMatch(t, []string{"a 1", "c 1"}, payloads(records))
	}
}

// A topic is made after its row, and a broker may not know it for a moment. That does not set the row aside.
func testLateTopic(rule string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		w.topicName += "late"
		w.insert("a", "1")
		p := w.start(nil, "--fence", rule)
		p.says(t, "a batch is not published, as far as is known")
		w.topic(w.topicName, nil)
		w.awaitEmpty(stepLimit)
		w.noneSetAside()
		p.stop(t)
		require.Equal(t, []string{"a 1"}, payloads(w.published()))
	}
}

func testCompacted(t *testing.T, w *world) {
	compact := "compact"
	w.topicName += "compact"
	w.topic(w.topicName, map[string]*string{"cleanup.policy": &compact})
	w.insert("a", "1")
	p := w.start(nil, "--fence", "header")
	p.says(t, "the topic is compacted")
	p.stop(t)
	require.Empty(t, w.published())
}

func testNoSchema(t *testing.T, w *world) {
	_, err := w.store.pool.Exec(t.Context(), "DROP TABLE outbox")
	require.NoError(t, err)
	out := w.start(nil).ends(t)
	require.Contains(t, out, "neli-outbox: the table outbox is not as `neli-outbox schema` prints it: there is no table outbox in the search path")
	shown := w.start(nil, "--help").ends(t)
	require.Contains(t, shown, "--fence")
}

func testDatabaseComesLater(t *testing.T, w *world) {
	w.insert("a", "1")
	w.database.Kill()
	p := w.start(nil)
	p.says(t, "the database does not answer, retrying")
	w.database.Start()
	w.awaitEmpty(stepLimit)
	p.stop(t)
}

func testPasswords(t *testing.T, w *world) {
	for _, statement := range []string{
		"CREATE ROLE clerk LOGIN PASSWORD 'right'",
		`DO $$ BEGIN EXECUTE format('COPY (SELECT unnest(ARRAY[''local all clerk scram-sha-256'', ''local all all trust''])) TO %L', current_setting('hba_file')); END $$`,
		"SELECT pg_reload_conf()",
	} {
		_, err := w.store.pool.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	as := strings.Replace(w.dsn, "user=test", "user=clerk password=", 1)
	require.Eventually(t, func() bool { // the server reads its settings again a moment later
		conn, err := pgx.Connect(t.Context(), strings.Replace(as, "password=", "password=wrong", 1))
		if err == nil {
			_ = conn.Close(t.Context())
		}
		return err != nil && strings.Contains(err.Error(), "password authentication failed")
	}, stepLimit, 10*time.Millisecond)
	for name, c := range map[string]struct {
		environment []string
		flags       []string
		want        string
	}{
		"wrong":      {[]string{"OUTBOX_DATABASE=" + strings.Replace(as, "password=", "password=sesame", 1)}, nil, "password authentication failed"},
		"unreadable": {[]string{"OUTBOX_DATABASE=postgres://clerk:sesame@h:port/x"}, nil, "--database: cannot parse"},
		"public":     {nil, []string{"--database", "postgres://clerk:sesame@localhost/x"}, "arguments are public"},
		"Kafka's": {[]string{"OUTBOX_SASL_PASSWORD=sesame"}, []string{"--bootstrap", w.kafka.SecureBootstrap(), "--tls-ca", w.ca(),
			"--sasl-mechanism", "SCRAM-SHA-512", "--sasl-user", "clerk"}, "SASL_AUTHENTICATION_FAILED"},
		"none":      {nil, []string{"--sasl-user", "clerk"}, "--sasl-user and --sasl-mechanism belong together"},
		"mechanism": {[]string{"OUTBOX_SASL_PASSWORD=sesame"}, []string{"--sasl-user", "clerk", "--sasl-mechanism", "GSSAPI"}, "must be PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"},
	} {
		t.Run(name, func(t *testing.T) {
			out := w.start(c.environment, c.flags...).ends(t)
			require.Contains(t, out, c.want)
			require.NotContains(t, out, "sesame")
		})
	}
}

func testRights(t *testing.T, w *world) {
	require.NoError(t, w.kafka.AddUser(t.Context(), "relay", "sesame"))
	allow := func(kind, name, operation string) {
		require.NoError(t, w.kafka.Allow(t.Context(), kafkatest.ACL{Principal: "User:relay", ResourceType: kind, Name: name, Operation: operation}))
	}
	allow("topic", w.topicName+".neli", "all")
	run := func(want string, flags ...string) {
		t.Helper()
		p := w.start([]string{"OUTBOX_SASL_PASSWORD=sesame"}, append(flags, "--bootstrap", w.kafka.SecureBootstrap(), "--tls-ca", w.ca(),
			"--sasl-mechanism", "SCRAM-SHA-512", "--sasl-user", "relay")...)
		if want != "" {
			require.Contains(t, p.ends(t), want)
			return
		}
		w.awaitEmpty(stepLimit)
		p.stop(t)
	}
	w.insert("a", "1")
	run("the topic " + w.topicName + ".outbox: TOPIC_AUTHORIZATION_FAILED")
	allow("topic", w.topicName+".outbox", "all")
	run("the principal needs WRITE on TransactionalId neli/" + w.topicName + "/")
	require.NoError(t, w.kafka.Allow(t.Context(), kafkatest.ACL{Principal: "User:relay", ResourceType: "transactional_id",
		Name: "neli/" + w.topicName + "/", Prefixed: true, Operation: "write"}))
	w.insert("b", "1")                            // of another slot
	aside := func(want string, flags ...string) { // a row may name any topic, and none ends the relay
		t.Helper()
		run("", flags...)
		var reasons []string
		require.NoError(t, w.store.pool.QueryRow(t.Context(), "SELECT array_agg(failed) FROM outbox").Scan(&reasons))
		require.Len(t, reasons, 2)
		for _, reason := range reasons {
			require.Contains(t, reason, want)
		}
		_, err := w.store.pool.Exec(t.Context(), "UPDATE outbox SET failed = NULL")
		require.NoError(t, err)
	}
	aside("the principal needs WRITE on the topic: " + w.topicName)
	allow("topic", w.topicName, "write")
	run("")
	w.insert("a", "2")
	w.insert("b", "2")
	aside("the principal needs DESCRIBE_CONFIGS on topic "+w.topicName, "--fence", "header")
	allow("topic", w.topicName, "describe_configs")
	run("", "--fence", "header")
	require.ElementsMatch(t, []string{"a 1", "a 2", "b 1", "b 2"}, payloads(w.published()))
}

func testServes(t *testing.T, w *world) {
	addrs, err := kafkatest.FreeAddrs(1)
	require.NoError(t, err)
	w.insert("a", "12345")
	p := w.start(nil, "--listen", addrs[0])
	w.awaitEmpty(stepLimit)
	get := func(path string) string {
		resp, err := http.Get("http://" + addrs[0] + path)
		require.NoError(t, err)
		defer resp.Body.Close()
		require.Equal(t, http.StatusOK, resp.StatusCode)
		var out strings.Builder
		require.NoError(t, resp.Write(&out))
		return out.String()
	}
	shown := get("/metrics")
	for _, line := range []string{"outbox_rows_published_total 1", "outbox_bytes_published_total 6", "outbox_rows_set_aside_total 0", "outbox_delay_seconds_count 1", "neli_roles_led{"} {
		require.Contains(t, shown, line)
	}
	require.Contains(t, get("/leader"), w.topicName)
	p.stop(t)
}

// made creates the topic, and waits until all brokers know it.
func (p *progress) made(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return p.create(t.Context(), slog.New(slog.DiscardHandler)) == nil }, time.Minute, 10*time.Millisecond)
}

// The search for notes begins close to the end, and goes further back if transactions were aborted since.
func testNotes(t *testing.T, w *world) {
	p := &progress{opts: w.opts(), topic: progressTopic(w.topicName), slots: 2, transactions: true}
	p.made(t)
	var said strings.Builder
	require.NoError(t, p.create(t.Context(), slog.New(slog.NewTextHandler(&said, nil))), "it is there")
	require.Contains(t, said.String(), "the only replica")
	last, err := p.last(t.Context(), 1)
	require.NoError(t, err)
	require.Empty(t, last)
	client := w.client(kgo.TransactionalID("x"), kgo.RecordPartitioner(byKey{except: p.topic}))
	transaction := func(end kgo.TransactionEndTry, rows ...ref) {
		require.NoError(t, client.BeginTransaction())
		require.NoError(t, client.ProduceSync(t.Context(), p.record(1, note{rows, position{70_001, 1 << 50}})).FirstErr())
		require.NoError(t, client.EndTransaction(t.Context(), end))
	}
	transaction(kgo.TryCommit, ref{7, 1 << 50})
	transaction(kgo.TryCommit, ref{900, 1<<50 + 7}, ref{3, 1<<50 + 9}, ref{70_000, 0})
	for range 2 * closeToTheEnd {
		transaction(kgo.TryAbort, ref{5, 1})
	}
	last, err = p.last(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, note{[]ref{{3, 1<<50 + 9}, {900, 1<<50 + 7}, {70_000, 0}}, position{70_001, 1 << 50}}, last)

	require.NoError(t, client.BeginTransaction())
	require.NoError(t, client.ProduceSync(t.Context(), p.record(1, note{rows: []ref{{8, 8}}})).FirstErr())
	p.within = 500 * time.Millisecond
	_, err = p.last(t.Context(), 1)
	require.ErrorIs(t, err, errHanging)
	require.NoError(t, client.EndTransaction(t.Context(), kgo.TryAbort))
}

func testPartitions(t *testing.T, w *world) {
	p := &progress{opts: w.opts(), topic: progressTopic(w.topicName), slots: 1}
	p.made(t)
	require.Contains(t, w.start(nil).ends(t), "has 1 partitions, must have one for each of 2 slots")
}

func testWoken(t *testing.T, w *world) {
	p := w.start(nil, "--poll", "1h")
	w.insert("a", "1")
	w.awaitEmpty(stepLimit)
	require.Eventually(t, func() bool { // the row may have been published before the relay listens
		var ended int
		err := w.store.pool.QueryRow(t.Context(), "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query = 'LISTEN outbox' AND datname = current_database()").Scan(&ended)
		return err == nil && ended > 0
	}, stepLimit, 10*time.Millisecond)
	p.says(t, "is not told of new rows, polls")
	p.stop(t)
	p = w.start(nil, "--poll", "100ms")
	_, err := w.store.pool.Exec(t.Context(), "ALTER TABLE outbox DISABLE TRIGGER outbox_notify")
	require.NoError(t, err)
	p.says(t, "publishes")
	w.insert("a", "2")
	w.awaitEmpty(stepLimit)
	p.stop(t)
}

// always is a term that does not end.
type always struct{}

func (always) Valid() bool { return true }
