package clock

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A holder with the slowest possible ordinary clock must stop before a claimant with the fastest
// possible raw clock has waited.
func TestHoldEndsBeforeWait(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lease := time.Duration(rapid.Int64Range(int64(10*time.Millisecond), int64(Tmax)).Draw(t, "T"))
		rho := rapid.Float64Range(0, 0.2).Draw(t, "ρ")
		holder := float64(Hold(lease)) / ((1 - rho) * (1 - Sigma)) // in true time
		claimant := float64(Wait(lease, rho)) / (1 + rho)
		if holder > claimant {
			t.Fatalf("led for %v, claimed after %v", time.Duration(holder), time.Duration(claimant))
		}
		if slack := claimant - holder; slack > float64(2*time.Millisecond) {
			t.Fatalf("waits %v longer than it must", time.Duration(slack))
		}
	})
}

func TestAgeIsTheLongestOfAllClocks(t *testing.T) {
	then := Instant{Mono: 100, Wall: 1000, Raw: 7, Boot: 200}
	for name, c := range map[string]struct {
		now  Instant
		want time.Duration
	}{
		"all alike":               {then.Add(30), 30},
		"wall clock set forward":  {Instant{Mono: 130, Wall: 1900, Boot: 230}, 900},
		"wall clock set back":     {Instant{Mono: 130, Wall: 500, Boot: 230}, 30},
		"suspended":               {Instant{Mono: 110, Wall: 1010, Boot: 290}, 90},
		"suspended, without Boot": {Instant{Mono: 110, Wall: 1090}, 90},
		"a glance":                {Instant{Mono: 130, Wall: 1030}, 30},
		"before":                  {Instant{Mono: 90, Wall: 990, Boot: 190}, -10},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, c.now.Age(then)) })
	}
}

func TestNeverStaysNever(t *testing.T) {
	require.Equal(t, Mono(Never), Mono(Never).Add(time.Hour))
	require.Equal(t, Mono(Never), Instant{Mono: 5, Raw: 7}.MonoOf(Never))
	require.Equal(t, Mono(8), Instant{Mono: 5, Raw: 7}.MonoOf(10))
	require.Equal(t, Mono(5), Mono(3).Add(2))
	require.Zero(t, Instant{Mono: 1}.Add(5).Raw, "Add makes up a reading of a clock that was not read")
}

func TestSystemReadsAllClocks(t *testing.T) {
	c := System()
	a := c.Now()
	b := c.Now()
	require.NotZero(t, a.Raw)
	if runtime.GOOS == "linux" {
		require.NotZero(t, a.Boot, "the kernel's boot clock is not read")
	}
	require.GreaterOrEqual(t, b.Raw, a.Raw)
	require.GreaterOrEqual(t, b.Mono, a.Mono)
	require.GreaterOrEqual(t, b.Age(a), time.Duration(0))
	require.Positive(t, c.Glance().Mono)
}

// During a suspension the monotonic clock stands still, so a glance without the wall clock would not notice it.
func TestGlanceReadsBothOrdinaryClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := System().Glance()
		time.Sleep(time.Hour)
		b := System().Glance()
		require.Equal(t, time.Hour, b.Mono.Sub(a.Mono), "the monotonic clock of a glance")
		require.Equal(t, time.Hour, b.Wall.Sub(a.Wall), "the wall clock of a glance")
		require.Equal(t, time.Now().UTC(), b.Time().UTC())
	})
}

// In simulated time there is only one clock. The kernel's clocks would hardly move.
func TestSystemInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := System()
		a := c.Now()
		time.Sleep(time.Hour)
		b := c.Now()
		require.Equal(t, time.Hour, b.Age(a))
		require.Equal(t, time.Hour, b.Raw.Sub(a.Raw))
		require.Zero(t, b.Boot)
	})
}
