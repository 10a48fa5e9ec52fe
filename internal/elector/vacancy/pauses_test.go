package vacancy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSharingOutAPart(t *testing.T) {
	const lease = 10 * time.Second
	require.Equal(t, 300*time.Millisecond, AssignTime(100_000, 100_000, 20, lease))
	require.Equal(t, lease/2, AssignTime(100_000, 100_000, 1000, lease))
	require.Equal(t, lease/20, AssignTime(10_000, 100_000, 1000, lease), "a tenth of all")
}
