package term

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/stretchr/testify/require"
)

const million = 1_000_000

// ledTable returns a table whose application leads all units.
func ledTable(tb testing.TB, partitions, units int) *Table {
	t := New(func(now, v clock.Instant) bool {
		age := now.Age(v)
		return 0 <= age && age < time.Hour
	}, clock.Glance)
	t.Open(partitions, partitions)
	of := make([][]int, partitions)
	for u := range units {
		of[u%partitions] = append(of[u%partitions], u)
	}
	for p := range of {
		t.Renew(p, clock.Glance())
		t.Start(of[p], int64(p), int64(p))
	}
	told := 0
	for cs := t.Collect(clock.Glance()); len(cs) > 0; cs = t.Collect(clock.Glance()) {
		for _, c := range cs {
			told += len(c.Units)
		}
	}
	require.Equal(tb, units, told)
	return t
}

// BenchmarkGlance measures reading the clock, which is part of Leads.
func BenchmarkGlance(b *testing.B) {
	for b.Loop() {
		clock.Glance()
	}
}

func BenchmarkLeads(b *testing.B) {
	for _, units := range []int{1, million} {
		t := ledTable(b, min(units, 100), units)
		b.Run(fmt.Sprint(units), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, _, ok := t.Leads(units - 1); !ok {
					b.Fatal("does not lead")
				}
			}
		})
		b.Run(fmt.Sprint("any of ", units), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := t.LeadsAny(units); !ok {
					b.Fatal("does not lead")
				}
			}
		})
	}
}

func BenchmarkRenew(b *testing.B) {
	t := ledTable(b, 100, million)
	b.ReportAllocs()
	for b.Loop() {
		t.Renew(7, clock.Glance())
	}
}

// BenchmarkTerm measures the life of one unit beside a million that nothing happens to.
func BenchmarkTerm(b *testing.B) {
	t := ledTable(b, 100, million)
	unit, id := []int{4711}, int64(1000)
	b.ReportAllocs()
	for b.Loop() {
		id++
		t.End(unit, Superseded, false)
		t.Start(unit, id, id)
		for len(t.Collect(clock.Glance())) > 0 {
		}
	}
}

func BenchmarkStartAndCollectAMillion(b *testing.B) {
	for b.Loop() {
		ledTable(b, 100, million)
	}
}

func BenchmarkMemory(b *testing.B) {
	for _, c := range []struct {
		name string
		held int // one of this many units is held
	}{{"all held", 1}, {"one in a hundred", 100}} {
		b.Run(c.name, func(b *testing.B) {
			var bytes uint64
			for b.Loop() {
				before := heapInUse()
				t := New(func(now, v clock.Instant) bool { return true }, clock.Glance)
				t.Open(100, 100)
				t.Renew(0, clock.Glance())
				var us []int
				for u := 0; u < million; u += c.held {
					us = append(us, u)
				}
				for p := range 100 {
					t.Renew(p, clock.Glance())
				}
				t.Start(us, 1, 1)
				for len(t.Collect(clock.Glance())) > 0 {
				}
				us = nil
				bytes = heapInUse() - before
				runtime.KeepAlive(t)
			}
			b.ReportMetric(float64(bytes)/million, "bytes/unit")
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
