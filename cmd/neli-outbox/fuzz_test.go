//go:build unix

package main

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// memoryOfRelay is all the memory that a relay has in this test.
const memoryOfRelay = 128 << 20

// testOddRowsAndTables publishes rows of any size and kind by one relay with little memory, while ids go back and the
// table is restored. Each good row is published unless an earlier row of its key is set aside. Rows of a key keep their
// order, and the relay does not end. The test types the commands that the relay asks for. NELI_ROUNDS=50 makes 50
// rounds of it.
func testOddRowsAndTables(fence string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		rounds := 3
		if n, err := strconv.Atoi(os.Getenv("NELI_ROUNDS")); err == nil {
			rounds = n
		}
		f := &fuzz{world: w, random: rand.New(rand.NewPCG(4, uint64(len(fence)))), bad: map[string]bool{}, want: map[string][]string{}}
		f.large() // a backlog: each slot reads batches of the largest size at once
		confined := littleMemory(t)
		w.command = confined.start(buildRelay(t))
		f.relay = w.start(nil, "--fence", fence)
		for round := range rounds {
			f.rows(20)
			f.settle()
			f.disturb(round)
		}
		f.rows(10)
		f.settle()
		require.True(t, f.relay.Running(), "the relay has ended: %s", f.relay.State())
		f.relay.stop(t)
		t.Logf("at its peak the relay had %d of %d MB", confined.peak(t)>>20, memoryOfRelay>>20)
		f.check(fence)
	}
}

// fuzz is a table, its relay, and the rows that must be published.
type fuzz struct {
	*world
	random *rand.Rand
	relay  *program
	n      int
	bad    map[string]bool     // keys that have a bad row
	want   map[string][]string // names of the rows that must be published, by key
	typed  int                 // how often the table was repaired
}

func (f *fuzz) exec(statement string, args ...any) {
	f.t.Helper()
	_, err := f.store.pool.Exec(f.t.Context(), statement, args...)
	require.NoError(f.t, err)
}

// add inserts a row. Its payload begins with its name. good says that a relay can publish it.
func (f *fuzz) add(topic, key string, size int, headers any, good bool) {
	f.n++
	name := fmt.Sprintf("row %d.", f.n)
	payload := append([]byte(name), make([]byte, size)...)
	for i := len(name); i < len(payload); i += 8 {
		copy(payload[i:], fmt.Sprintf("%08x", f.random.Uint32())) // cannot be compressed much
	}
	for deadline := time.Now().Add(stepLimit); ; f.rest(50 * time.Millisecond) {
		_, err := f.store.pool.Exec(f.t.Context(), "INSERT INTO outbox (topic, key, payload, headers) VALUES ($1, $2, $3, $4)", topic, key, payload, headers)
		if err == nil {
			break
		}
		require.ErrorContains(f.t, err, "outbox_pkey", "a row that is set aside may have the id")
		require.False(f.t, time.Now().After(deadline), "no relay says how to repair the table")
		f.repair()
	}
	f.bad[key] = f.bad[key] || !good
	if !f.bad[key] {
		f.want[key] = append(f.want[key], name)
	}
}

// large adds a backlog of large rows, and rows larger than all the memory of the relay.
func (f *fuzz) large() {
	for i := range 48 {
		f.add(f.topicName, fmt.Sprint("large ", i%16), 900_000, nil, true)
	}
	f.exec(fmt.Sprintf(`BEGIN; SET LOCAL statement_timeout = 0; INSERT INTO outbox (topic, key, payload) VALUES
		('%[1]s', 'huge', convert_to(repeat('x', 300000000), 'UTF8')), ('%[1]s', repeat('k', 300000000), 'x'); COMMIT`, f.topicName))
	f.bad["huge"] = true
}

// rows adds rows of all kinds. Three in four are good.
func (f *fuzz) rows(n int) {
	pick := func(from ...string) string { return from[f.random.IntN(len(from))] }
	for range n {
		key := fmt.Sprint(pick("a", "b", "", "ä", strings.Repeat("k", 3000)), f.random.IntN(8))
		sizes := []int{0, 10, 1000, 100_000, 500_000, 990_000}
		switch size := sizes[f.random.IntN(len(sizes))]; f.random.IntN(30) {
		case 0:
			f.add(f.topicName, "bad "+key, 1_000_000+f.random.IntN(20_000_000), nil, false)
		case 1:
			long := sha256.Sum256([]byte(key))
			f.add("none", strings.Repeat(fmt.Sprintf("%x", long), 100), 10, nil, false)
		case 2:
			f.add(pick("no topic", f.topicName+".outbox", strings.Repeat("t", 70_000), ".."), "bad "+key, 10, nil, false)
		case 3:
			f.add(f.topicName, "bad "+key, 10, fmt.Sprintf(`{"h":%q}`, strings.Repeat("v", 2_000_000)), false)
		case 4:
			f.add(f.topicName, key, 10, `{"h":"v","n":1e300,"":{"a":[null]}}`, true)
		default:
			f.add(f.topicName, key, size, nil, true)
		}
	}
}

// says finds the command that the relay asks somebody to type.
var says = regexp.MustCompile(`type (SELECT outbox_renumber\(\d+\))`)

// repair types the command that the relay asks for.
func (f *fuzz) repair() {
	f.t.Helper()
	for _, text := range says.FindAllStringSubmatch(f.relay.out.String(), -1)[f.typed:] {
		f.exec(text[1])
		f.typed++
	}
}

// settle waits until no row can be published, and repairs the table meanwhile.
func (f *fuzz) settle() {
	f.t.Helper()
	for deadline := time.Now().Add(stepLimit); ; {
		require.True(f.t, f.relay.Running(), "the relay has ended: %s", f.relay.State())
		f.repair()
		var left int
		require.NoError(f.t, f.store.pool.QueryRow(f.t.Context(),
			"SELECT count(*) FROM outbox o WHERE NOT EXISTS (SELECT FROM outbox f WHERE f.digest = o.digest AND f.slot = o.slot AND f.failed IS NOT NULL)").Scan(&left))
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatal(left, f.rowsLeft())
		}
		f.rest(50 * time.Millisecond)
	}
}

// disturb changes the table in a way that makes ids go back.
func (f *fuzz) disturb(round int) {
	var last int64
	require.NoError(f.t, f.store.pool.QueryRow(f.t.Context(), "SELECT last_value FROM outbox_id").Scan(&last))
	back := max(1, last-f.random.Int64N(60))
	switch round % 3 {
	case 0: // somebody sets the sequence back
		f.exec("SELECT setval('outbox_id', $1)", back)
	case 1: // a switch to a logical replica: rows come, the sequence does not
		f.exec("DROP SEQUENCE outbox_id; CREATE SEQUENCE outbox_id")
	case 2: // a restored table: rows keep their ids, and the sequence is set back
		f.exec(fmt.Sprintf(`BEGIN; CREATE TABLE saved AS TABLE outbox; DROP TABLE outbox; SELECT setval('outbox_id', %d); %s;
			ALTER TABLE outbox DISABLE TRIGGER outbox_order; INSERT INTO outbox SELECT * FROM saved; ALTER TABLE outbox ENABLE TRIGGER outbox_order; DROP TABLE saved; COMMIT`, back, schema(4)))
	}
}

// check compares what is published with what should be. Renumbered rows may be published again.
func (f *fuzz) check(fence string) {
	records := f.published()
	if fence == "header" {
		records, _, _ = admitted(f.t, records)
	}
	got := map[string][]string{}
	for _, r := range records {
		name, _, _ := strings.Cut(string(r.Value[:min(20, len(r.Value))]), ".")
		if name += "."; !slices.Contains(got[string(r.Key)], name) {
			got[string(r.Key)] = append(got[string(r.Key)], name)
		}
	}
	for key, want := range f.want {
		if !f.bad[key] {
			require.Equal(f.t, want, got[key], "rows of key %.20q", key)
		}
	}
	require.Positive(f.t, f.typed, "no ids went back: the test sees nothing")
}

// buildRelay builds the relay as users do. This test's own program may have the race detector, which takes several times the
// memory that the relay is allowed.
func buildRelay(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "relay")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

// confinement is a group of processes that may use memoryOfRelay together.
type confinement struct{ dir, peakOf string }

func littleMemory(t *testing.T) confinement {
	t.Helper()
	root, limit, peak := "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes"
	if _, err := os.Stat(root); err != nil {
		root, limit, peak = "/sys/fs/cgroup", "memory.max", "memory.peak"
		_ = os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+memory"), 0)
	}
	dir, err := os.MkdirTemp(root, "outbox")
	if err == nil {
		t.Cleanup(func() { _ = os.Remove(dir) })
		err = os.WriteFile(filepath.Join(dir, limit), []byte(strconv.Itoa(memoryOfRelay)), 0)
	}
	if err != nil && os.Getenv("NELI_REQUIRE_ROOT") == "" {
		t.Skipf("needs a cgroup with a limit of memory: run go test -run TestRelay/odd as root on Linux (CI sets NELI_REQUIRE_ROOT=1, and then this fails): %v", err)
	}
	require.NoError(t, err)
	return confinement{dir, peak}
}

// start returns a command that starts a program in the group of processes.
func (c confinement) start(program string) []string {
	return []string{"sh", "-c", `echo $$ >"$0" && exec "$@"`, filepath.Join(c.dir, "cgroup.procs"), program}
}

// peak returns the most memory that the group used at any time.
func (c confinement) peak(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, c.peakOf))
	require.NoError(t, err)
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	return n
}
