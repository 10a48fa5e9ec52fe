package quorum

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const manyRoles = 100_000

// many is a process that leads a hundred thousand roles, alone on three logs.
func many(t *testing.T) (*script, *actor) {
	t.Helper()
	s := newScript(t, 3)
	a := s.start("a")
	a.Want(manyRoles, func(int32) bool { return true })
	s.silence()
	for range 30 {
		a.read()
		s.append(a.Tick(s.at())...)
		s.append(a.Contest(a.Free(manyRoles, s.at()), s.at())...)
		s.wait(5 * time.Millisecond)
		s.beat(a)
	}
	for role := range int32(manyRoles) {
		_, ok := a.Leads(role, s.at())
		require.True(t, ok, "role %d", role)
	}
	a.Tick(s.at())
	a.Changed()
	return s, a
}

// beat sends a Beat to each log and lets it come back.
func (s *script) beat(a *actor) {
	for log := range s.logs {
		if r, ok := a.Beat(log, s.at()); ok {
			s.append(Out{log, r})
		}
	}
	a.read()
}

// A step costs no more than what it changes, however many roles are led: nothing of it
// grows with them. What it allocates stands for what it does, as it is counted.
func TestWorkIsPerChangedRole(t *testing.T) {
	s, a := many(t)
	quiet := testing.AllocsPerRun(20, func() {
		s.wait(time.Millisecond)
		s.beat(a)
		a.Tick(s.at())
		for line := range a.InUse() {
			a.V(line)
		}
	})
	t.Logf("%v allocations for three Beats, their reading and a step", quiet)
	require.Less(t, quiet, 100.0)
	require.Empty(t, a.Changed())

	one := testing.AllocsPerRun(20, func() {
		s.wait(time.Millisecond)
		a.Forget([]int32{7})
		s.append(a.Release([]int32{7}, s.at())...)
		a.read()
		s.append(a.Contest([]int32{7}, s.at())...)
		a.read()
		s.append(a.Tick(s.at())...)
		a.read()
		a.Changed()
	})
	t.Logf("%v allocations for one role given up and won again", one)
	require.Less(t, one, 400.0)
}
