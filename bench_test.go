package neli

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// benchBed is a Neli over a lease arbiter and a log in memory, without
// goroutines: pump does their work.
type benchBed struct {
	n    *Neli
	arb  *leaseArbiter
	log  *benchLog
	next []int64 // offsets
}

// benchLog keeps what was appended until it is pumped.
type benchLog struct {
	appended []benchAppend
}

type benchAppend struct {
	partition int
	value     []byte
	report    func(error)
}

func (l *benchLog) open(context.Context) (int, string, error) { return 0, "", nil }
func (l *benchLog) next(context.Context, time.Duration) (logEntry, bool, error) {
	return logEntry{}, false, nil
}
func (l *benchLog) append(p int, value []byte, report func(error)) error {
	l.appended = append(l.appended, benchAppend{p, value, report})
	return nil
}

// sent returns what was appended since the last call, but for Hellos.
func (l *benchLog) sent(t testing.TB) []record {
	return slices.DeleteFunc(l.all(t), func(r record) bool { return r.kind == kindHello })
}

// hellos returns the Hellos that were appended since the last call.
func (l *benchLog) hellos(t testing.TB) []record {
	return slices.DeleteFunc(l.all(t), func(r record) bool { return r.kind != kindHello })
}

func (l *benchLog) all(t testing.TB) (out []record) {
	t.Helper()
	for _, a := range l.appended {
		r, err := decode(a.value, "bench")
		require.NoError(t, err)
		out = append(out, r)
	}
	l.appended = nil
	return out
}
func (l *benchLog) watch(context.Context) error { return nil }
func (l *benchLog) doubt()                      {}
func (l *benchLog) close()                      {}

// newBenchBed makes a bed of m partitions, all of them free.
func newBenchBed(b testing.TB, m int) *benchBed {
	b.Helper()
	set, err := Config{LeaderGroupID: "bench", Nomination: Open, Roles: m, HeartbeatTimeout: time.Minute}.resolve()
	require.NoError(b, err)
	bed := &benchBed{n: newNeli(set, clock), log: &benchLog{}, next: make([]int64, m)}
	bed.arb = newLeaseArbiter(set, bed.log, nil, bed.n.now, bed.n.alive)
	bed.n.arb = bed.arb
	bed.arb.intend(bed.n.posture)
	bed.arb.setUp(m)
	for p := range m {
		bed.arb.take(logEntry{partition: p, offset: 0, jump: true})
		bed.deliver(p, []byte("the head of a log"))
		bed.deliver(p, record{kind: kindRelease, group: "bench", member: "before", token: 0, read: 0, seq: 1}.encode())
	}
	return bed
}

func (bed *benchBed) deliver(p int, value []byte) {
	bed.arb.take(logEntry{partition: p, offset: bed.next[p], value: value})
	bed.next[p]++
}

// pump steps and delivers what was appended.
func (bed *benchBed) pump() {
	bed.arb.stepAll()
	batch := bed.log.appended
	bed.log.appended = nil
	for _, a := range batch {
		a.report(nil)
		bed.deliver(a.partition, a.value)
	}
}

// lead makes this process the leader of everything, as its application knows.
func (bed *benchBed) lead(b testing.TB) {
	b.Helper()
	bed.n.contend()
	deadline := time.Now().Add(time.Minute)
	for held := 0; held < len(bed.next); {
		require.True(b, time.Now().Before(deadline), "%d of %d are held", held, len(bed.next))
		bed.pump()
		held = 0
		for p := range bed.next {
			if bed.arb.held(p) {
				held++
			}
		}
	}
	ok, err := bed.n.Pulse(0)
	require.NoError(b, err)
	require.True(b, ok)
}

// BenchmarkClock is what IsLeader cannot cost less than.
func BenchmarkClock(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		clock()
	}
}

func BenchmarkIsLeader(b *testing.B) {
	b.Run("leader", func(b *testing.B) {
		bed := newBenchBed(b, 1)
		bed.lead(b)
		b.ReportAllocs()
		for b.Loop() {
			if !bed.n.IsLeader() {
				b.Fatal("does not lead")
			}
		}
	})
	b.Run("follower", func(b *testing.B) {
		bed := newBenchBed(b, 1)
		b.ReportAllocs()
		for b.Loop() {
			if bed.n.IsLeader() {
				b.Fatal("leads")
			}
		}
	})
	b.Run("1000 held", func(b *testing.B) {
		bed := newBenchBed(b, 1000)
		bed.lead(b)
		b.ReportAllocs()
		for b.Loop() {
			if !bed.n.IsLeader() {
				b.Fatal("does not lead")
			}
		}
	})
	b.Run("of the last of 1000", func(b *testing.B) {
		bed := newBenchBed(b, 1000)
		bed.lead(b)
		b.ReportAllocs()
		for b.Loop() {
			if !bed.n.IsLeaderOf(999) {
				b.Fatal("does not lead")
			}
		}
	})
}

func BenchmarkPulseLeader(b *testing.B) {
	for _, m := range []int{1, 1000} {
		b.Run(fmt.Sprintf("%d held", m), func(b *testing.B) {
			bed := newBenchBed(b, m)
			bed.lead(b)
			b.ReportAllocs()
			for b.Loop() {
				if ok, err := bed.n.Pulse(10 * time.Millisecond); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
}

// A follower waits for its timeout; here it is 0, so that only the work shows.
func BenchmarkPulseFollower(b *testing.B) {
	for _, m := range []int{1, 1000} {
		b.Run(fmt.Sprintf("%d followed", m), func(b *testing.B) {
			bed := newBenchBed(b, m)
			b.ReportAllocs()
			for b.Loop() {
				if ok, err := bed.n.Pulse(0); ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
}

func benchBeat(token, read int64) record {
	return record{kind: kindBeat, group: "bench", member: newID(), name: "host-17_4711_1750000000", token: token, read: read, seq: 1 << 20}
}

// BenchmarkFold folds a beat that is decoded already.
func BenchmarkFold(b *testing.B) {
	l := lease{leaseRules: leaseRules{group: "bench", term: threshold{time.Hour, true}, wait: 2 * time.Hour, every: time.Minute, newID: newID}}
	now := clock()
	l.start(0, now)
	r := benchBeat(0, 0)
	l.consume(record{kind: kindClaim, group: "bench", member: r.member, token: noToken, read: -1, seq: 1}, 0, now)
	o := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		o++
		r.read = o - 1
		l.consume(r, o, now)
	}
	require.Equal(b, o, l.last, "a beat was not folded")
}

// BenchmarkTake is all that a record costs but for Kafka: decode, fold, decide,
// publish.
func BenchmarkTake(b *testing.B) {
	for _, m := range []int{1, 1000} {
		b.Run(fmt.Sprintf("beat of another, %d partitions", m), func(b *testing.B) {
			bed := newBenchBed(b, m)
			claim := record{kind: kindClaim, group: "bench", member: "another", token: noToken, read: 1, seq: 2}
			bed.deliver(0, claim.encode())
			value := benchBeat(2, 2).encode()
			b.ReportAllocs()
			for b.Loop() {
				bed.deliver(0, value)
			}
			require.Equal(b, bed.next[0]-1, bed.arb.leases[0].last, "a beat was not folded")
		})
	}
	b.Run("rubbish", func(b *testing.B) {
		bed := newBenchBed(b, 1)
		b.ReportAllocs()
		for b.Loop() {
			bed.deliver(0, []byte("20,000 rubbish records"))
		}
	})
}

// BenchmarkStepAll looks at a thousand leases of which none has anything to do.
func BenchmarkStepAll(b *testing.B) {
	bed := newBenchBed(b, 1000)
	bed.lead(b)
	b.ReportAllocs()
	for b.Loop() {
		bed.arb.stepAll()
	}
	require.Empty(b, bed.log.appended)
}

func BenchmarkDecode(b *testing.B) {
	value := benchBeat(1<<30, 1<<31).encode()
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decode(value, "bench"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	r := benchBeat(1<<30, 1<<31)
	b.ReportAllocs()
	for b.Loop() {
		r.encode()
	}
}

// BenchmarkMemoryPerPartition reports what the arbiter keeps for each partition
// that is followed, and for each that is held.
func BenchmarkMemoryPerPartition(b *testing.B) {
	const m = 10_000
	for _, c := range []struct {
		name string
		lead bool
	}{{"followed", false}, {"held", true}} {
		b.Run(c.name, func(b *testing.B) {
			var bytes uint64
			for b.Loop() {
				before := heapInUse()
				bed := newBenchBed(b, m)
				if c.lead {
					bed.lead(b)
				}
				bed.log.appended = nil
				bytes = heapInUse() - before
				runtime.KeepAlive(bed)
			}
			b.ReportMetric(float64(bytes)/m, "bytes/partition")
		})
	}
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}
