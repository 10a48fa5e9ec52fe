package explore

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// counter adds one, or doubles, below a bound. It must never have the value never.
type counter struct{ n, below, never int }

func (c counter) Steps(step func(func() string, counter, string)) {
	c.to(step, "add one", c.n+1)
	c.to(step, "double", 2*c.n)
}

func (c counter) to(step func(func() string, counter, string), word string, n int) {
	if n < c.below {
		step(func() string { return word }, counter{n, c.below, c.never}, "")
	}
}

func (c counter) Look() string {
	if c.n == c.never {
		return fmt.Sprintf("it is %d", c.n)
	}
	return ""
}

func (c counter) Views() string { return fmt.Sprintln(c.n) }

func search(below, never int) *Search[counter] {
	return All(func() counter { return counter{1, below, never} }, func(c counter) []byte { return []byte{byte(c.n)} })
}

func TestEveryStateIsFoundOnce(t *testing.T) {
	s := search(50, 0)
	require.Empty(t, s.Fault)
	require.Equal(t, 49, s.States())
	require.Equal(t, 48+24, s.Moves)
	require.Equal(t, "no fault found", s.String())
}

func TestShortestWayIsReported(t *testing.T) {
	s := search(50, 20)
	require.Equal(t, "it is 20", s.Fault)
	require.Equal(t, "1\nadd one\n2\ndouble\n4\nadd one\n5\ndouble\n10\ndouble\n20\nFAULT: it is 20", s.String())
	require.Equal(t, "1\nFAULT: it is 1", search(50, 1).String())
}
