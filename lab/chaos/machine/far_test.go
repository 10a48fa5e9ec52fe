package machine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOnlyTheElectionIsFar(t *testing.T) {
	with, without := Options{Seed: 5}, Options{Seed: 6}
	require.Equal(t, "m2", FarHost(with))
	require.Empty(t, FarHost(without))
	for _, c := range []struct {
		from, to string
		want     time.Duration
	}{
		{"m2", "b1", 20 * time.Millisecond},
		{"b3", "m2", 20 * time.Millisecond},
		{"m2", "m5", 20 * time.Millisecond},
		{"m1", "b1", 0},
		{"b1", "b2", 0},
		{"m2", "store", 0},
		{"store", "m2", 0},
		{"runner", "m2", 0},
	} {
		require.Equal(t, c.want, distance(with, c.from, c.to), "%s to %s", c.from, c.to)
		require.Zero(t, distance(without, c.from, c.to), "%s to %s", c.from, c.to)
	}
}
