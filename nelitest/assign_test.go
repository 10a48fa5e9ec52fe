package nelitest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAssignSticky(t *testing.T) {
	for _, c := range []struct {
		name   string
		n      int
		has    [][]int
		target [][]int
	}{
		{"all new", 4, [][]int{{}, {}}, [][]int{{0, 1}, {2, 3}}},
		{"nothing to move", 3, [][]int{{2}, {0}, {1}}, [][]int{{2}, {0}, {1}}},
		{"one joins", 4, [][]int{{0, 1, 2, 3}, {}}, [][]int{{0, 1}, {2, 3}}},
		{"one left", 4, [][]int{{1}, {3}}, [][]int{{1, 0}, {3, 2}}},
		{"the remainder stays", 3, [][]int{{0}, {1, 2}}, [][]int{{0}, {1, 2}}},
		{"more members than partitions", 1, [][]int{{}, {0}}, [][]int{nil, {0}}},
		{"two claim the same", 2, [][]int{{0}, {0, 1}}, [][]int{{0}, {1}}},
		{"partitions that are gone", 1, [][]int{{5}, {0}}, [][]int{nil, {0}}},
		{"no partition", 0, [][]int{{}}, [][]int{nil}},
	} {
		target, _ := assignSticky(c.n, c.has)
		require.Equal(t, c.target, target, c.name)
	}
}

func TestAssignRange(t *testing.T) {
	require.Equal(t, [][]int{{0, 1, 2}, {3, 4}}, assignRange(5, 2))
	require.Equal(t, [][]int{{0}, nil}, assignRange(1, 2))
}

func TestAssignRoundRobin(t *testing.T) {
	require.Equal(t, [][]int{{0, 2, 4}, {1, 3}}, assignRoundRobin(5, 2))
	require.Equal(t, [][]int{{0}, nil}, assignRoundRobin(1, 2))
}

func TestQueue(t *testing.T) {
	var q queue[int]
	in, out := 0, 0
	for range 1000 {
		for range 3 {
			q.push(in)
			in++
		}
		for range 2 {
			require.Equal(t, out, q.first())
			require.Equal(t, out, q.pop())
			out++
		}
	}
	for q.len() > 0 {
		require.Equal(t, out, q.pop())
		out++
	}
	require.Equal(t, in, out)
}
