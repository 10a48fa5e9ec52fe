package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
)

// hello puts a Hello of a process into the log.
func (s *script) hello(l *Lease) {
	r := l.Word(Hello, s.now)
	s.put(&r)
}

func TestFirstMemberKnowsTheFoldAtOnce(t *testing.T) {
	s := &script{t: t, now: clock.Alike(time.Hour)}
	a, b := s.newOrigin("a"), s.newOrigin("b")
	s.hello(a)
	s.read(b)
	require.False(t, b.Known(), "completes the origin by another process's record, which may be older than its own beginning")
	e := a.Read(0, s.log[0], s.now)
	require.True(t, e.Known && e.Origin && !e.Won, "knows the fold by its own record")
	s.put(s.claim(a, 0))
	s.read(a, b)
	_, leads := a.Leads(0, s.now)
	require.True(t, leads, "leads a free role at once")
	s.hello(b)
	s.read(a, b)
	require.True(t, b.Known())
	require.Equal(t, a.fold.hash, b.fold.hash)
	require.False(t, b.MayClaim(0, s.now))
}

// A process knows nothing if it has not read all records from offset 0, or none of its present session.
func TestOriginNeedsAllRecordsAndOneOfTheSession(t *testing.T) {
	s := &script{t: t, now: clock.Alike(time.Hour)}
	s.hello(s.newOrigin("x"))
	for name, begin := range map[string]func(*Lease){
		"not from offset 0": func(l *Lease) {
			l.Begin(1, false, s.now)
			s.hello(l)
		},
		"a former session's record": func(l *Lease) {
			s.hello(l)
			l.Begin(0, true, s.now)
		},
		"not the origin": func(l *Lease) {
			s.hello(l)
			l.Origin(false)
		},
		"dropped records": func(l *Lease) {
			for o := int64(len(s.log)); o <= maxKept+1; o++ {
				s.put(&Record{Kind: Beat, Session: Session{"x", 1}, Read: o - 1, T: time.Second, Longest: Unsaid})
			}
			s.hello(l)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.log = s.log[:1]
			l := s.newOrigin("n")
			begin(l)
			s.read(l)
			assert.False(t, l.Known(), "knows what it has not read")
		})
	}
}

// newScriptByOrigin lets x and z win roles 0 and 1 in a log without a fresh Claim. z has the longest lease.
func newScriptByOrigin(t *testing.T) *script {
	s := &script{t: t, now: clock.Alike(time.Hour)}
	s.x, s.z = s.newOrigin("x"), New(Rules{Process: "z", T: clock.Tmax, History: 10})
	s.z.Begin(0, true, s.now)
	s.z.Origin(true)
	s.hello(s.x)
	s.hello(s.z)
	s.read(s.x, s.z)
	s.put(s.claim(s.x, 0))
	s.put(s.claim(s.z, 1))
	s.read(s.x, s.z)
	return s
}

// A holder whose records lie in the log may lead for all of its T from now.
func TestHoldersFoundByOriginAreWaitedFor(t *testing.T) {
	s := newScriptByOrigin(t)
	l := s.newOrigin("n")
	s.hello(l)
	s.read(l)
	require.True(t, l.Known() && l.fold.hash == s.z.fold.hash)
	require.True(t, l.MayClaim(2, s.now))
	require.False(t, l.MayClaim(0, s.now), "two leaders")
	s.wait(clock.Wait(time.Second, 0))
	require.True(t, l.MayClaim(0, s.now))
	s.wait(clock.Wait(clock.Tmax, 0) - clock.Wait(time.Second, 0) - time.Nanosecond)
	require.False(t, l.MayClaim(1, s.now), "two leaders")
	s.wait(time.Nanosecond)
	require.True(t, l.MayClaim(1, s.now))
}

// The sender of a record of a newer version may hold any role.
func TestNewerVersionsFoundByOriginAreWaitedFor(t *testing.T) {
	s := newScriptByOrigin(t)
	l := s.newOrigin("n")
	s.read(l)
	l.ReadNewer(int64(len(s.log)), s.now)
	s.put(&Record{}) // for the offset only
	s.hello(l)
	s.read(l)
	require.True(t, l.Known())
	s.wait(clock.Wait(clock.Tmax, 0) - time.Nanosecond)
	require.False(t, l.MayClaim(2, s.now), "claims what a newer version may hold")
	s.wait(time.Nanosecond)
	require.True(t, l.MayClaim(2, s.now))
}
