package neli_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/sim"
)

// sizeOf is the size that NELI_SCALE=members,partitions,roles wants, or else the given one.
func sizeOf(t *testing.T, size sim.Size) sim.Size {
	if v := os.Getenv("NELI_SCALE"); v != "" {
		_, err := fmt.Sscanf(v, "%d,%d,%d", &size.Members, &size.Partitions, &size.Roles)
		require.NoError(t, err, "NELI_SCALE=members,partitions,roles")
	}
	return size
}

// TestOutage: a broker that was busy, and stood still for 3 T, brings nobody down for long.
// The full size is NELI_SCALE=200,1,100000.
func TestOutage(t *testing.T) {
	for _, load := range []float64{0.16, 0.32, 0.64} {
		t.Run(fmt.Sprintf("load %v", load), func(t *testing.T) { sim.Outage(t, sizeOf(t, crowdSize), load) })
	}
}

// TestScale: what dead members led is led soon. The full size is NELI_SCALE=1000,1,100000.
func TestScale(t *testing.T) { sim.Scale(t, sizeOf(t, crowdSize)) }

// TestGather: who comes late has its share soon. The full size is NELI_SCALE=100,1,100000.
func TestGather(t *testing.T) { sim.Gather(t, sizeOf(t, crowdSize)) }

// TestRestart: who comes after all have closed in good order waits for nobody. The full size
// is NELI_SCALE=100,1,100000.
func TestRestart(t *testing.T) {
	for _, apart := range []time.Duration{0, 5 * time.Millisecond} {
		t.Run(fmt.Sprintf("%v apart", apart), func(t *testing.T) { sim.Restart(t, sizeOf(t, restartSize), apart) })
	}
}
