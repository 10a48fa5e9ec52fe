//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/pause"
)

// Relays are killed and suspended, the broker hangs, and the database crashes, while sessions insert rows. Each row whose
// commit has returned is published once, and rows of one key in the order of their commits. NELI_OUTBOX_ROWS=1000000
// inserts more rows.
//
// Partitions always have a leader, as transactions need it (KAFKA-20734): a hanging broker is not given up.
func TestNothingIsLostOrReordered(t *testing.T) {
	r := newTrial(t, kafkatest.Options{BrokerProps: map[string]string{"broker.session.timeout.ms": "120000"}}, rowsWanted(), "transactions", "header")
	r.disturb(r.inserted, r.kill, r.suspend, r.failOver, r.hang, r.kill)
	r.check()
	require.Zero(t, r.unwritten(), "each partition had a leader")
}

// This is TestNothingIsLostOrReordered for relays by headers. The only broker crashes as well.
func TestHeadersLoseNothingWhenTheOnlyBrokerCrashes(t *testing.T) {
	r := newTrial(t, kafkatest.Options{}, rowsWanted(), "header")
	r.disturb(r.inserted, r.crash, r.kill, r.hang, r.crash)
	r.check()
}

func rowsWanted() int64 {
	if n, err := strconv.ParseInt(os.Getenv("NELI_OUTBOX_ROWS"), 10, 64); err == nil {
		return n
	}
	return 10_000
}

// trial has a world for each fence, all on the same servers, with their relays and what their sessions have inserted.
type trial struct {
	*world // for the servers
	worlds []*world
	all    []*commits
	relays [][]*program
	watch  []func() *standstills
	rows   int64 // how many to insert in each world

	random   *rand.Rand
	began    time.Time
	enough   chan struct{} // closed when no more rows are needed
	sessions sync.WaitGroup
	kills, suspensions, failOvers, hangs,
	crashes int
}

func newTrial(t *testing.T, options kafkatest.Options, rows int64, fences ...string) *trial {
	servers := newWorld(t, options, 1)
	r := &trial{world: servers, rows: rows, random: rand.New(rand.NewPCG(2, 3)), began: time.Now(), enough: make(chan struct{})}
	for _, fence := range fences {
		w := servers.beside(fence, 6, "--fence", fence)
		r.worlds = append(r.worlds, w)
		c := &commits{asked: map[string]time.Time{}, returned: map[string]time.Time{}, places: map[string]place{}, open: map[string]bool{}}
		r.all = append(r.all, c)
		for i := range 4 {
			r.sessions.Go(func() { c.insert(w, i, rows, r.enough) })
		}
		r.relays = append(r.relays, []*program{w.start(nil), w.start(nil), w.start(nil)})
		r.watch = append(r.watch, w.watch())
	}
	return r
}

// inserted reports whether there are enough rows.
func (r *trial) inserted() bool {
	for _, c := range r.all {
		if c.count.Load() < r.rows {
			return false
		}
	}
	return true
}

// disturb causes each disturbance in turn, until it is done.
func (r *trial) disturb(done func() bool, disturbances ...func()) {
	r.rest(3 * r.timeout)
	for {
		for _, disturbance := range disturbances {
			disturbance()
			r.rest(time.Second)
		}
		if done() {
			break
		}
	}
	for _, of := range r.relays {
		for _, p := range of {
			require.True(r.t, p.Running(), "a relay has ended by itself: %s", p.out)
		}
	}
}

// kill kills a relay of each world, and starts another one.
func (r *trial) kill() {
	for i, w := range r.worlds {
		which := r.random.IntN(len(r.relays[i]))
		r.relays[i][which].Kill()
		r.relays[i][which] = w.start(nil)
	}
	r.kills += len(r.worlds)
}

// suspend suspends a relay of each world until others have taken over.
func (r *trial) suspend() {
	var stopped []*program
	for _, of := range r.relays {
		p := of[r.random.IntN(len(of))]
		require.NoError(r.t, p.Signal(syscall.SIGSTOP))
		stopped = append(stopped, p)
	}
	r.rest(r.timeout * 5 / 2)
	for _, p := range stopped {
		require.NoError(r.t, p.Signal(syscall.SIGCONT))
	}
	r.suspensions += len(stopped)
}

// crash kills the only broker.
func (r *trial) crash() {
	ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Minute)
	defer cancel()
	broker := r.kafka.Brokers()[0]
	broker.Kill()
	require.NoError(r.t, broker.Restart(ctx))
	r.crashes++
}

// hang suspends the only broker for longer than a batch may take.
func (r *trial) hang() {
	broker := r.kafka.Brokers()[0]
	require.NoError(r.t, broker.Suspend())
	r.rest(publishTimeout + 2*time.Second)
	require.NoError(r.t, broker.Resume())
	r.hangs++
}

// failOver kills the database.
func (r *trial) failOver() {
	r.database.Kill()
	r.rest(time.Second)
	r.database.Start()
	r.failOvers++
}

// check ends the sessions, waits until all rows are published, and compares.
func (r *trial) check() {
	close(r.enough)
	r.sessions.Wait()
	inserted := time.Since(r.began)
	for i, w := range r.worlds {
		w.awaitEmpty(10 * time.Minute)
		w.noneSetAside()
		r.t.Logf("%s: %d rows, inserted within %v, published within %v; %v", w.topicName, len(r.all[i].returned), inserted, time.Since(r.began), r.watch[i]())
		records := w.published()
		if w.topicName == "header" {
			taken, late, repeated := admitted(w.t, records)
			r.t.Logf("readers drop %d late and %d repeated records", late, repeated)
			records = taken
		}
		r.all[i].check(w, records)
	}
	r.t.Logf("%d relays killed, %d suspended, %d crashes of brokers, %d suspensions, %d crashes of the database", r.kills, r.suspensions, r.crashes, r.hangs, r.failOvers)
}

func (w *world) rest(d time.Duration) { require.NoError(w.t, pause.For(w.t.Context(), d)) }

// commits is what the sessions know about each row: when they asked for its commit, and when the commit returned.
type commits struct {
	count           atomic.Int64
	mu              sync.Mutex
	asked, returned map[string]time.Time
	places          map[string]place // the places of rows whose commit has returned
	open            map[string]bool  // rows whose commit has failed: they may or may not exist
}

// insert inserts rows of random keys, a few in each transaction, until there are enough.
func (c *commits) insert(w *world, session int, rows int64, enough <-chan struct{}) {
	pool := w.pooled(1)
	random := rand.New(rand.NewPCG(7, uint64(session)))
	each := max(1, int(rows/10_000))
	for i := 0; ; i++ {
		select {
		case <-enough:
			return
		default:
		}
		if c.count.Load() >= rows {
			if pause.For(w.t.Context(), 20*time.Millisecond) != nil {
				return
			}
		}
		var names, keys []string
		for n := range 1 + random.IntN(2*each) {
			names = append(names, fmt.Sprintf("%d/%d/%d", session, i, n))
			keys = append(keys, fmt.Sprint("key ", random.IntN(200)))
		}
		slices.Sort(keys) // otherwise large transactions could deadlock
		var before time.Time
		var places []place
		err := pgx.BeginFunc(w.t.Context(), pool, func(tx pgx.Tx) error {
			rows, _ := tx.Query(w.t.Context(), `INSERT INTO outbox (topic, key, payload)
				SELECT $1, key, convert_to(name, 'UTF8') FROM unnest($2::text[], $3::text[]) AS rows (key, name)
				RETURNING convert_from(payload, 'UTF8'), slot, id`, w.topicName, keys, names)
			var err error
			places, err = pgx.CollectRows(rows, pgx.RowToStructByPos[place])
			before = time.Now()
			return err
		})
		c.note(names, places, before, time.Now(), err)
	}
}

func (c *commits) note(names []string, places []place, before, after time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		if err != nil {
			c.open[name] = true
			continue
		}
		c.asked[name], c.returned[name] = before, after
		c.count.Add(1)
	}
	if err == nil {
		for _, p := range places {
			c.places[p.Name] = p
		}
	}
}

// check compares the published rows with the committed ones.
func (c *commits) check(w *world, records []*kgo.Record) {
	t := w.t
	t.Helper()
	times := map[string]int{}
	var rows []row
	for _, r := range records {
		name := string(r.Value)
		times[name]++
		if _, known := c.returned[name]; known {
			rows = append(rows, row{key: string(r.Key), payload: r.Value})
		} else {
			require.True(t, c.open[name], "nobody has inserted %q", name)
		}
	}
	for name, n := range times {
		require.Equal(t, 1, n, "%q is published more than once", name)
	}
	var lost []place
	for name := range c.returned {
		if times[name] == 0 {
			lost = append(lost, c.places[name])
		}
	}
	require.Empty(t, lost, "%d of %d rows are lost:\n%s", len(lost), len(c.returned), w.tracesOf(lost))
	require.Empty(t, inversions(rows, c.asked, c.returned), "of one key, these are not in the order of their commits")
}

// testASuspendedRelayKeepsNoLocks suspends a relay while the database sends it rows, which are more than sockets
// buffer. The server cannot end that statement, since it notices its own time-out only when it has sent the rows. So it
// must not hold the locks of deleted rows meanwhile. Otherwise the next leader would wait for them as long as the relay
// is suspended.
func (s server) testASuspendedRelayKeepsNoLocks(t *testing.T) {
	next := s.store(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), stepLimit)
	defer cancel()
	_, err := next.pool.Exec(ctx, `INSERT INTO outbox (topic, key, payload) SELECT 't', i::text, convert_to(repeat('x', 1000000), 'UTF8') FROM generate_series(1, 30) i`)
	require.NoError(t, err)
	gone := refsOf(next.reads(t, nil, nil, limits{2, 1 << 30}))
	cfg := next.pool.Config()
	cfg.MaxConns = 1
	var suspended atomic.Bool
	resumed := make(chan struct{})
	dial := cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return suspendable{conn, &suspended, resumed}, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	require.NoError(t, err)
	former := &store{pool: pool}
	_, err = former.next(ctx, 0, []ref{{0, 0}}, nil, limits{1, 1}, &floor{}) // prepares the statements
	require.NoError(t, err)

	suspended.Store(true)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = former.next(ctx, 0, gone, nil, plenty, &floor{})
	}()
	defer func() { close(resumed); <-ended; pool.Close() }()
	require.Eventually(t, func() bool {
		var blocked bool
		err := next.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'ClientWrite')").Scan(&blocked)
		return err == nil && blocked
	}, stepLimit/2, 10*time.Millisecond, "the server never waits for the client: the test sees nothing")

	limited, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	seen, err := next.next(limited, 0, gone, nil, limits{1, 1}, &floor{})
	require.NoError(t, err, "the next leader waits for a suspended one")
	require.EqualValues(t, 3, seen.rows[0].id)
	var left int
	require.NoError(t, next.pool.QueryRow(ctx, "SELECT count(*) FROM outbox WHERE id < 3").Scan(&left))
	require.Zero(t, left)
}

// suspendable is a connection whose process reads nothing while it is suspended.
type suspendable struct {
	net.Conn
	suspended *atomic.Bool
	resumed   <-chan struct{}
}

func (s suspendable) Read(b []byte) (int, error) {
	if s.suspended.Load() {
		<-s.resumed
	}
	return s.Conn.Read(b)
}
