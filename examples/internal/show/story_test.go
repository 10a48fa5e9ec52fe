//go:build unix

package show

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// ends is the standard input of a member that fails when it is told to close.
type ends struct{ p *Process }

func (e ends) Write(b []byte) (int, error) {
	e.p.Err = errors.New("exit status 1")
	close(e.p.done)
	return len(b), nil
}

func (ends) Close() error { return nil }

// The demo fails if a member fails at its end.
func TestEndReturnsTheErrorsOfMembers(t *testing.T) {
	p := &Process{Name: "anna", done: make(chan struct{})}
	p.stdin = ends{p}
	s := &Story{Ctx: t.Context(), Watch: NewWatch(io.Discard, 0, 0), Members: []*Process{p}}
	require.EqualError(t, s.End(), "anna: exit status 1")
}
