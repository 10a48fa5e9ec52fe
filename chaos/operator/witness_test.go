package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/testkit/witness"
)

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// The jobs' lines show when none ran, and whether two ran at once.
func TestStints(t *testing.T) {
	all, err := readStints(strings.NewReader("1000000 7 a\n11000000 7 a\n21000000 7 a\n500000000 9 b\n600000000 9 b\n"))
	require.NoError(t, err)
	require.Equal(t, []stint{
		{Span: witness.Span{From: ms(1), To: ms(21)}, token: 7, name: "a"},
		{Span: witness.Span{From: ms(500), To: ms(600)}, token: 9, name: "b"},
	}, all)
	require.Zero(t, overlaps(all))
	require.Equal(t, []witness.Span{{From: ms(21), To: ms(500)}}, idle(all, witness.Span{From: ms(5), To: ms(610)}))
	require.Empty(t, idle(all, witness.Span{From: ms(5), To: ms(20)}))

	all, err = readStints(strings.NewReader("1000000 7 a\n900000000 7 a\n500000000 9 b\n600000000 9 b\n"))
	require.NoError(t, err)
	require.Equal(t, 1, overlaps(all), "by their lines")
	all, err = readStints(strings.NewReader("1000000 7 a\n2000000 9 b overlap\n"))
	require.NoError(t, err)
	require.Equal(t, 1, overlaps(all), "by the lock")
	_, err = readStints(strings.NewReader("rubbish\n"))
	require.ErrorContains(t, err, "rubbish")
}
