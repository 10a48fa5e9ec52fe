package neli

import (
	"fmt"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/stretchr/testify/require"
)

// These benchmarks measure the calls that an application makes all the time. internal/lease
// measures the cost of a record, and internal/term the check of a term.

// onLed makes a Neli that leads a number of roles of ten partitions, or none.
func onLed(t testing.TB, roles int, leads bool) (*Neli, *roleArbiter) {
	partitions := min(10, roles)
	n, a := onRoles(t, partitions, roles)
	n.contend()
	if leads {
		for p := range partitions {
			a.claim(int64(1+p), a.span(p, roles)...)
		}
	}
	_, err := n.Pulse(0)
	require.NoError(t, err)
	return n, a
}

// renew makes the evidence young, as Beats do.
func (a *roleArbiter) renew() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for p := range a.partitions {
		a.tab.Renew(p, clock.Glance())
	}
}

// hot are the calls that must cost a leader neither a lock nor an allocation.
func hot(n *Neli, roles int) map[string]func() bool {
	return map[string]func() bool{
		"IsLeader":   n.IsLeader,
		"IsLeaderOf": func() bool { return n.IsLeaderOf(roles - 1) },
		"Token":      func() bool { _, ok := n.Token(roles - 1); return ok },
		"Pulse":      func() bool { ok, err := n.Pulse(time.Millisecond); return ok && err == nil },
	}
}

func BenchmarkLeader(b *testing.B) {
	for _, roles := range []int{1, 100_000} {
		n, a := onLed(b, roles, true)
		for name, call := range hot(n, roles) {
			b.Run(fmt.Sprintf("%s/%d roles", name, roles), func(b *testing.B) {
				a.renew()
				b.ReportAllocs()
				for b.Loop() {
					if !call() {
						b.Fatal("does not lead")
					}
				}
			})
		}
	}
}

// A follower's Pulse waits for its timeout. The timeout is 0 here, so that only the work is measured.
func BenchmarkFollower(b *testing.B) {
	for _, roles := range []int{1, 100_000} {
		n, _ := onLed(b, roles, false)
		calls := hot(n, roles)
		calls["Pulse"] = func() bool { ok, err := n.Pulse(0); return ok || err != nil }
		for name, call := range calls {
			b.Run(fmt.Sprintf("%s/%d roles", name, roles), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if call() {
						b.Fatal("leads")
					}
				}
			})
		}
	}
}

// A check of leadership allocates nothing, however many roles are led.
func TestLeadershipChecksAllocateNothing(t *testing.T) {
	for _, roles := range []int{1, 100_000} {
		n, a := onLed(t, roles, true)
		for name, call := range hot(n, roles) {
			a.renew()
			require.True(t, call(), "%s with %d roles", name, roles)
			require.Zero(t, testing.AllocsPerRun(1000, func() { call() }), "%s with %d roles", name, roles)
		}
		follower, _ := onLed(t, roles, false)
		for name, call := range hot(follower, roles) {
			if name != "Pulse" { // Pulse would wait
				require.Zero(t, testing.AllocsPerRun(1000, func() { call() }), "%s of a follower with %d roles", name, roles)
			}
		}
	}
}
