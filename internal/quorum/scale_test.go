package quorum

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/lease"
)

const manyRoles = 100_000

// many returns a process that leads a hundred thousand roles, alone on three logs.
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

// beat sends a Beat to each log, and reads it back.
func (s *script) beat(a *actor) {
	for log := range s.logs {
		if r, ok := a.Beat(log, s.at()); ok {
			s.append(Out{log, r})
		}
	}
	a.read()
}

// With very many roles, the part of a contest that a process has read says little about its
// outcome. A process that holds the roles on one log waits until it has had time to read the
// others.
func TestContestWaitsForLogsToBeRead(t *testing.T) {
	s := newScript(t, 3)
	a := s.start("a")
	require.Zero(t, a.Reading(), "waits for the Claim of a single role")
	a.Want(manyRoles, func(int32) bool { return true })
	require.Equal(t, simT/4, a.Reading())
	a.RoundTrip(2 * time.Millisecond)
	s.silence()
	a.read()
	s.append(a.Contest(a.Free(manyRoles, s.at()), s.at())...)
	a.readOn(0)
	for _, d := range []time.Duration{50 * time.Millisecond, 150 * time.Millisecond} {
		s.wait(d)
		for _, o := range a.Tick(s.at()) {
			require.NotEqual(t, lease.Release, o.Record.Kind, "gives the roles back, though two logs are still unread")
		}
	}
	a.read()
	_, leads := a.Leads(0, s.at())
	require.True(t, leads)
}

// The cost of a step depends on what it changes, not on the number of roles led. The test counts
// allocations, which stand for the work done.
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
