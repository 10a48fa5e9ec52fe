//go:build unix

package main

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// A leader reads and deletes while Kafka takes its batch. Leaders of a slot follow each other, and each of them may be killed
// before or after any step, be told that its term is over, or hear of a failure though Kafka has committed. The rows must be
// published once, and those of a key in their order.
func TestReadingAheadLosesNoRowAndRepeatsNone(t *testing.T) {
	t.Parallel()
	var total figures
	for seed := range uint64(400) {
		synctest.Test(t, func(t *testing.T) {
			s := &slotWorld{t: t, random: rand.New(rand.NewPCG(seed, 26)), table: map[int64]string{}, left: 60}
			for leaders := 0; s.left > 0 || len(s.table) > 0; leaders++ {
				require.Less(t, leaders, 1000, "seed %d: rows stay in the table", seed)
				s.lead()
			}
			s.check(seed)
			total.kills += s.kills
			total.beside += s.beside
			total.unknown += s.unknown
		})
	}
	t.Logf("%+v", total)
	require.Greater(t, total.kills, 1000)
	require.Greater(t, total.beside, 1000, "nothing was read while a batch was published")
	require.Greater(t, total.unknown, 100)
}

// The note of a single row may be too large because it names a batch of earlier rows. Then the row must be tried alone.
func TestRowWithATooLargeNoteIsTriedAlone(t *testing.T) {
	t.Parallel()
	turn := &turn{relay: &relay{log: slog.New(slog.DiscardHandler), metrics: newMeters(prometheus.NewRegistry())}, rows: 8}
	turn.log = turn.relay.log
	turn.publisher = &headers{store: &store{}} // has no database: setting a row aside would panic
	require.NoError(t, turn.refused(t.Context(), &refusal{rows: []row{{ref: ref{id: 1}}}, more: true, why: errFake}))
	require.Equal(t, 1, turn.rows)
	require.Panics(t, func() { _ = turn.refused(t.Context(), &refusal{rows: []row{{ref: ref{id: 1}}}, why: errFake}) }, "the test sees nothing")
}

// figures are counts of what has happened.
type figures struct{ kills, beside, unknown int }

// slotWorld has a slot's rows, and the records that Kafka has of them.
type slotWorld struct {
	t      *testing.T
	mu     sync.Mutex
	random *rand.Rand
	figures

	table map[int64]string // keys by id
	keys  []string         // by id
	left  int              // rows to insert
	log   []int64          // committed rows
	note  note             // the last committed note
}

// lead runs one term, with one writer.
func (s *slotWorld) lead() {
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	l := &fakeLeader{slotWorld: s, cancel: cancel, steps: 1 + s.random.IntN(30)}
	r := &relay{wake: newWakeups(), poll: time.Second, most: limits{3, 1 << 20}, memory: newMemory(limits{3, 1 << 20}, 0), metrics: newMeters(prometheus.NewRegistry())}
	turn := &turn{relay: r, now: term{l, 0, 1}, log: slog.New(slog.DiscardHandler), rows: 3}
	_ = turn.work(ctx, l, note{slices.Clone(s.note.rows), s.note.position})
	synctest.Wait() // a goroutine that should have ended may not have run yet
	require.Zero(s.t, l.calls, "a call outlives the work")
	require.True(s.t, r.memory.free.TryAcquire(batches<<20), "a batch that is forgotten keeps its room")
}

func (s *slotWorld) check(seed uint64) {
	last := map[string]int64{}
	seen := map[int64]bool{}
	for _, id := range s.log {
		require.False(s.t, seen[id], "seed %d: row %d is published twice", seed, id)
		seen[id] = true
		key := s.keys[id-1]
		require.Less(s.t, last[key], id, "seed %d: key %s is not in order", seed, key)
		last[key] = id
	}
	require.Len(s.t, seen, len(s.keys), "seed %d: rows are lost", seed)
}

// insert makes up to seven new rows visible.
func (s *slotWorld) insert() {
	for range min(s.left, s.random.IntN(8)) {
		s.left--
		key := string(rune('a' + s.random.IntN(3)))
		s.keys = append(s.keys, key)
		s.table[int64(len(s.keys))] = key
	}
}

// fakeLeader is the term and the writer of a process that may end at any step.
type fakeLeader struct {
	*slotWorld
	cancel     context.CancelFunc
	steps      int // steps until it is killed or its term ends
	dead, over bool
	asked      bool // Valid was true, and no batch has begun since
	publishing bool
	calls      int
}

var errFake = errors.New("no answer")

func (l *fakeLeader) Valid() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = !l.over && !l.dead
	return l.asked
}

// step reports whether the process still lives.
func (l *fakeLeader) step() bool {
	l.mu.Lock()
	takes := time.Duration(l.random.IntN(3)) * time.Millisecond
	l.mu.Unlock()
	time.Sleep(takes) // in synctest's bubble
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.steps--; l.steps == 0 {
		if l.dead = l.random.IntN(3) > 0; l.dead {
			l.kills++
		}
		l.over = true
		l.cancel()
	}
	return !l.dead
}

func (l *fakeLeader) call(by int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls += by
}

func (l *fakeLeader) next(_ context.Context, published, underway []ref, most limits) (look, error) {
	l.call(1)
	defer l.call(-1)
	if !l.step() {
		return look{}, errFake
	}
	seen := l.read(published, underway, most)
	if !l.step() {
		return look{}, errFake
	}
	return seen, nil
}

func (l *fakeLeader) first(context.Context, []ref, []ref) (ref, error) { return ref{}, errFake }

// read is one transaction of the database.
func (l *fakeLeader) read(published, underway []ref, most limits) (seen look) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range published {
		require.Contains(l.t, l.log, r.id, "a row is deleted that is not published")
		delete(l.table, r.id)
	}
	l.insert()
	if l.publishing {
		l.beside++
	}
	for id := int64(1); id <= int64(len(l.keys)) && len(seen.rows) < most.rows; id++ {
		if key, there := l.table[id]; there && !slices.Contains(underway, ref{id: id}) {
			seen.rows = append(seen.rows, row{ref: ref{id: id}, key: key, topic: "t"})
		}
	}
	if len(l.table) == 0 && l.left == 0 { // this term has nothing more to do
		l.over = true
		l.cancel()
	}
	seen.last = int64(len(l.keys))
	return seen
}

func (l *fakeLeader) publish(_ context.Context, rows []row, published []ref, at position) error {
	l.call(1)
	defer l.call(-1)
	if err := l.begin(); err != nil {
		l.t.Error(err)
		return err
	}
	if !l.step() {
		return errFake
	}
	l.mu.Lock()
	fails := l.random.IntN(12)
	if fails != 0 {
		for _, r := range rows {
			l.log = append(l.log, r.id)
		}
		l.note = note{slices.Concat(published, refsOf(rows)), at}
	}
	l.mu.Unlock()
	lives := l.step()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.publishing = false
	if fails == 1 {
		l.unknown++
	}
	if !lives || fails < 2 {
		return errFake
	}
	return nil
}

func (l *fakeLeader) begin() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.publishing {
		return errors.New("two batches at once")
	}
	if !l.asked {
		return errors.New("a batch is begun without asking Valid")
	}
	l.asked, l.publishing = false, true
	return nil
}
