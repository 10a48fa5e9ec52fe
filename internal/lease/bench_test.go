package lease

import (
	"runtime"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
)

func BenchmarkFoldBeat(b *testing.B) {
	l, now := filled(100_000)
	r := &Record{Kind: Beat, Session: Session{"p7", 1}, Read: 99, T: time.Second}
	o := l.read
	b.ReportAllocs()
	for b.Loop() {
		o++
		r.Read = o - 1
		l.Read(o, r, now)
	}
}

func BenchmarkFoldClaimOf1000(b *testing.B) {
	l, now := filled(100_000)
	r := &Record{Kind: Claim, Session: Session{"p7", 1}, T: time.Second, Roles: make([]int32, 1000)}
	for i := range r.Roles {
		r.Roles[i] = int32(i * 97)
	}
	o := l.read
	b.ReportAllocs()
	for b.Loop() {
		o++
		r.Read = o - 1
		l.Read(o, r, now)
	}
}

func BenchmarkLeads(b *testing.B) {
	l, now := filled(100_000)
	for b.Loop() {
		l.Leads(99_000, now)
	}
}

// BenchmarkMemory measures the memory of a Lease that knows 100,000 roles, held by 100 sessions.
func BenchmarkMemory(b *testing.B) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for b.Loop() {
		before := heap()
		l, _ := filled(100_000)
		b.ReportMetric(float64(heap()-before)/(1<<20), "MB/lease")
		runtime.KeepAlive(l)
	}
}

// filled returns a lease with n roles, held by a hundred sessions.
func filled(n int) (*Lease, clock.Instant) {
	l := New(Rules{Process: "me", T: time.Second, Rho: 0.0005, History: 1000})
	now := clock.Instant{Mono: 1e15, Wall: 1e15, Raw: 1e15}
	l.Begin(0, true, now)
	l.Read(0, &Record{Kind: Claim, Session: Session{"p0", 1}, Read: -1, T: time.Second, Fresh: true, Roles: []int32{0}}, now)
	for o := int64(1); o <= 100; o++ {
		var roles []int32
		for role := int32(o); int(role) < n; role += 100 {
			roles = append(roles, role)
		}
		l.Read(o, &Record{Kind: Claim, Session: Session{"p" + string(rune('0'+o)), 1}, Read: o - 1, T: time.Second, Roles: roles}, now)
	}
	return l, now
}
