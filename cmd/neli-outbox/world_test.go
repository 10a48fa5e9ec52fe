//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/internal/said"
	"github.com/goneli/neli/lab/dbtest"
	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/nursery"
)

// stepLimit is how long a step may take on a busy machine.
const stepLimit = 3 * time.Minute

// asProgram makes the test binary act as the program.
const asProgram = "OUTBOX_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "1" {
		main()
		return
	}
	os.Exit(m.Run())
}

// world has a database, a broker and the relays between them.
type world struct {
	t        testing.TB
	database *dbtest.Postgres
	kafka    *kafkatest.Cluster
	nursery  *nursery.Nursery

	dsn       string
	topicName string
	store     *store
	timeout   time.Duration // T of the relays
	command   []string      // starts a relay, without its flags
	flags     []string
}

// beside returns another world on the same servers, with its own table, group and topic.
func (w *world) beside(name string, slots int, flags ...string) *world {
	other := *w
	_, err := w.store.pool.Exec(w.t.Context(), "CREATE DATABASE "+name)
	require.NoError(w.t, err)
	other.dsn = strings.Replace(w.database.DSN, "dbname=postgres", "dbname="+name, 1)
	other.store = openStore(w.t, other.dsn, slots)
	other.topicName = name
	other.topic(name, nil)
	other.flags = append(append([]string{}, w.flags...), append(flags, "--group", name)...)
	return &other
}

// newWorld creates a table of that many slots and a topic t. flags are those of the relays.
func newWorld(t testing.TB, options kafkatest.Options, slots int, flags ...string) *world {
	kafkatest.Require(t)
	w := &world{t: t, command: os.Args[:1], database: dbtest.StartPostgres(t, "max_connections=60"), kafka: kafkatest.Run(t, options)}
	w.dsn, w.topicName = w.database.DSN, "t"
	w.store = openStore(t, w.dsn, slots)
	w.topic("t", nil)
	var err error
	w.nursery, err = nursery.New("")
	require.NoError(t, err)
	t.Cleanup(w.nursery.Close)
	w.timeout = 2 * time.Second
	if text := os.Getenv("NELI_OUTBOX_TIMEOUT"); text != "" { // a busy machine needs a longer lease
		w.timeout, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	w.flags = append([]string{"relay", "--bootstrap", w.kafka.Bootstrap(), "--listen", "", "--timeout", w.timeout.String(), "--poll", "200ms"}, flags...)
	return w
}

// ca writes a file with the certificate of a secure cluster.
func (w *world) ca() string {
	file := filepath.Join(w.t.TempDir(), "ca.pem")
	require.NoError(w.t, os.WriteFile(file, []byte(w.kafka.CAPEM()), 0o600))
	return file
}

func (w *world) client(more ...kgo.Opt) *kgo.Client {
	client, err := kgo.NewClient(append(more, kgo.SeedBrokers(seeds(w.kafka.Bootstrap())...))...)
	require.NoError(w.t, err)
	w.t.Cleanup(client.Close)
	return client
}

func (w *world) topic(name string, settings map[string]*string) {
	admin := kadm.NewClient(w.client())
	_, err := admin.CreateTopic(w.t.Context(), 4, -1, settings, name)
	require.NoError(w.t, err)
	require.Eventually(w.t, func() bool { // all brokers know it a moment later
		ends, err := admin.ListEndOffsets(w.t.Context(), name)
		return err == nil && ends.Error() == nil && len(ends[name]) == 4
	}, time.Minute, 10*time.Millisecond)
}

// program is a relay.
type program struct {
	*nursery.Process
	out *said.Text
}

// start starts a program with flags that add to or replace the world's. environment is added as well.
func (w *world) start(environment []string, flags ...string) *program {
	args := slices.Concat(w.command, w.flags, flags)
	cmd := exec.Command(args[0], args[1:]...)
	p := &program{out: &said.Text{}}
	cmd.Stdout, cmd.Stderr = p.out, p.out
	cmd.Env = append(append(os.Environ(), asProgram+"=1", "OUTBOX_DATABASE="+w.dsn), environment...)
	var err error
	p.Process, err = w.nursery.Start(cmd)
	require.NoError(w.t, err)
	w.t.Cleanup(func() {
		p.Kill()
		if w.t.Failed() {
			w.t.Logf("%d said:\n%s", p.Pid(), p.out)
		}
	})
	return p
}

// says waits until the program has printed a text.
func (p *program) says(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(p.out.String(), text) }, stepLimit, 10*time.Millisecond, "%s\n%v", text, p.out)
}

// ends waits until the program has ended.
func (p *program) ends(t *testing.T) string {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(stepLimit):
		t.Fatalf("it does not end:\n%s", p.out)
	}
	return p.out.String()
}

// stop interrupts the program, which must end without an error.
func (p *program) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, p.Signal(syscall.SIGTERM))
	out := p.ends(t)
	require.Equal(t, "exit status 0", p.State(), out)
}

func (w *world) insert(key, payload string) {
	_, err := w.store.pool.Exec(w.t.Context(), insertRow, w.topicName, key, payload)
	require.NoError(w.t, err)
}

// awaitEmpty waits until all rows are published.
func (w *world) awaitEmpty(within time.Duration) {
	w.t.Helper()
	for deadline := time.Now().Add(within); !w.empty(); w.rest(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatal(w.rowsLeft())
		}
	}
}

// empty reports whether all rows are published.
func (w *world) empty() bool {
	var left bool
	err := w.store.pool.QueryRow(w.t.Context(), "SELECT EXISTS (SELECT FROM outbox WHERE failed IS NULL)").Scan(&left)
	return err == nil && !left
}

// rowsLeft says which rows are not published, and what the database's sessions do.
func (w *world) rowsLeft() string {
	var out strings.Builder
	out.WriteString("rows are left")
	for what, query := range map[string]string{
		"of slots":  "SELECT string_agg(format('%s: %s from %s, %s set aside', slot, n, first, aside), '; ') FROM (SELECT slot, count(*) n, min(id) first, count(failed) aside FROM outbox GROUP BY slot ORDER BY slot) AS s",
		"set aside": "SELECT string_agg(DISTINCT failed, '; ') FROM outbox",
		"sessions":  "SELECT string_agg(concat_ws(' ', pid, application_name, state, wait_event_type, wait_event, now()-query_start, left(query, 60)), '; ') FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
	} {
		var answer *string
		err := w.store.pool.QueryRow(w.t.Context(), query).Scan(&answer)
		if answer == nil {
			answer = new(string)
		}
		fmt.Fprintf(&out, "\n%s: %s %v", what, *answer, err)
	}
	return out.String()
}

// noneSetAside fails the test if a relay has set a row aside, since awaitEmpty does not wait for such rows.
func (w *world) noneSetAside() {
	w.t.Helper()
	var reasons []string
	require.NoError(w.t, w.store.pool.QueryRow(w.t.Context(),
		"SELECT array_agg(slot || '/' || id || ': ' || failed) FROM outbox WHERE failed IS NOT NULL").Scan(&reasons))
	require.Empty(w.t, reasons, "rows were set aside")
}

// published reads the committed records of the topic, in the order of each partition.
func (w *world) published() []*kgo.Record {
	w.t.Helper()
	return readTopic(w.t, w.kafka.Bootstrap(), w.topicName, kgo.ReadCommitted())
}

// readTopic reads a topic up to its present end, in the order of each partition.
func readTopic(t testing.TB, bootstrap, topic string, isolation kgo.IsolationLevel) (records []*kgo.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(seeds(bootstrap)...), kgo.FetchIsolationLevel(isolation), kgo.KeepControlRecords(),
		kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	require.NoError(t, err)
	require.NoError(t, ends.Error(), "a partition whose end is not known would not be read")
	require.NotEmpty(t, ends[topic])
	positions := map[int32]int64{}
	behind := func() (yes bool) {
		ends.Each(func(o kadm.ListedOffset) { yes = yes || positions[o.Partition] < o.Offset })
		return yes
	}
	for behind() {
		fetches := client.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			positions[r.Partition] = r.Offset + 1
			if !r.Attrs.IsControl() {
				records = append(records, r)
			}
		})
	}
	return records
}

// valueOf returns a record's header, "" if it has none.
func valueOf(r *kgo.Record, header string) string {
	for _, h := range r.Headers {
		if h.Key == header {
			return string(h.Value)
		}
	}
	return ""
}

// admitted returns the records that a reader accepts if it looks at tokens and ids. It also returns how many the reader
// drops: late records of a former leader, and repeated ones.
func admitted(t testing.TB, records []*kgo.Record) (taken []*kgo.Record, late, repeated int) {
	t.Helper()
	var filter fence.Filter
	highest := map[string]int64{}
	for _, r := range records {
		ok, err := filter.Admit(r.Topic, r.Partition, []byte(valueOf(r, fence.Header)))
		require.NoError(t, err)
		var id int64
		_, err = fmt.Sscan(valueOf(r, idHeader), &id)
		require.NoError(t, err)
		switch {
		case !ok:
			late++
		case id <= highest[string(r.Key)]:
			repeated++
		default:
			highest[string(r.Key)] = id
			taken = append(taken, r)
		}
	}
	return taken, late, repeated
}

func payloads(records []*kgo.Record) (out []string) {
	for _, r := range records {
		out = append(out, string(r.Key)+" "+string(r.Value))
	}
	return out
}

// pooled returns a pool for the world's writers, which survives restarts of the database.
func (w *world) pooled(conns int) *pgxpool.Pool {
	pool, err := pgxpool.New(w.t.Context(), fmt.Sprintf("%s pool_max_conns=%d", w.dsn, conns))
	require.NoError(w.t, err)
	w.t.Cleanup(pool.Close)
	return pool
}

// seeds returns the addresses of a list.
func seeds(bootstrap string) []string { return strings.Split(bootstrap, ",") }
