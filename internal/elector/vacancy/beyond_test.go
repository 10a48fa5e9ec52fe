package vacancy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// There may be fewer roles when it is time to think of a vacancy than when it was listed.
func TestVacanciesBeyondRAreForgotten(t *testing.T) {
	var c Claims
	c.Init()
	c.AddFor(ToRank, at(time.Second).Mono, []int32{7, 8, 9})
	require.Empty(t, c.Due(ToAssign, at(time.Hour), 10))
	require.Equal(t, []int32{7}, c.Due(ToRank, at(time.Second), 8))
	require.Empty(t, c.pending)
	require.False(t, c.IsListed(9))
}
