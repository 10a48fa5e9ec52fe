package elector

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Roles that were won are put together by token, in the order in which the tokens come.
func TestWinsAreByToken(t *testing.T) {
	var w wins
	for role, token := range []int64{7, 7, 9, 7, 9} {
		w.add(token, int32(role))
	}
	require.Equal(t, wins{{7, []int32{0, 1, 3}}, {9, []int32{2, 4}}}, w)
}
