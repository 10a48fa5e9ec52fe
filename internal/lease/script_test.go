package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
)

// Counterexamples by hand, to rules that random schedules hardly ever need. Each shows
// that two processes would lead one role at one time without the rule.

// script is a log, and processes that read it as slowly as the test wants.
type script struct {
	t   *testing.T
	now clock.Instant
	log []*Record
	x   *Lease
	z   *Lease
}

// newScript has x hold role 0 by the Claim at offset 0, of time 0; both have read it.
func newScript(t *testing.T) *script { return newScriptOf(t, time.Second) }

// newScriptOf gives z another lease than x's second.
func newScriptOf(t *testing.T, long time.Duration) *script {
	s := &script{t: t, now: clock.Alike(time.Hour)}
	for _, l := range []**Lease{&s.x, &s.z} {
		rules := Rules{Process: "x", T: time.Second, Rho: 0, History: 10}
		if l == &s.z {
			rules.Process, rules.T = "z", long
		}
		*l = New(rules)
		(*l).Begin(0, true, s.now)
	}
	s.wait(clock.Wait(time.Second, 0))
	s.put(s.claim(s.x, 0))
	s.read(s.x, s.z)
	return s
}

func (s *script) wait(d time.Duration) { s.now = s.now.Add(d) }

func (s *script) claim(l *Lease, roles ...int32) *Record {
	s.t.Helper()
	r, ok := l.Claim(roles, s.now)
	require.True(s.t, ok, "may claim")
	return &r
}

func (s *script) put(r *Record) { s.log = append(s.log, r) }

// read lets processes read all that is in the log.
func (s *script) read(all ...*Lease) {
	for _, l := range all {
		for o := l.Offset() + 1; o < int64(len(s.log)); o++ {
			require.False(s.t, l.Read(o, s.log[o], s.now).Rewound)
		}
	}
}

// onlyXLeads wants x, and only x, to lead a role.
func (s *script) onlyXLeads(role int32) {
	s.t.Helper()
	_, x := s.x.Leads(role, s.now)
	_, z := s.z.Leads(role, s.now)
	require.True(s.t, x, "x leads")
	require.False(s.t, z, "two leaders")
}

func TestAnInvalidClaimIsEvidence(t *testing.T) {
	s := newScript(t)
	s.wait(time.Second / 2)
	late := s.claim(s.x, 1)
	s.put(s.claim(s.z, 1))
	s.read(s.z)
	s.put(late)
	s.read(s.x) // of x all that it claims is z's already, but it lives
	s.wait(clock.Wait(time.Second, 0) - time.Second/2)
	s.put(s.claim(s.z, 0))
	s.read(s.z)
	s.onlyXLeads(0)
}

func TestAClaimOfOtherRolesIsEvidence(t *testing.T) {
	s := newScript(t)
	s.wait(time.Second / 2)
	s.put(s.claim(s.x, 1))
	s.read(s.x)
	s.wait(clock.Wait(time.Second, 0) - time.Second/2)
	s.put(s.claim(s.z, 0)) // z has not read that x lives
	s.read(s.z)
	s.onlyXLeads(0)
}

func TestAReleaseNamesItsToken(t *testing.T) {
	s := newScript(t)
	s.x.Forget([]int32{0})
	release := s.x.Release([]int32{0}, s.now)[0]
	s.put(&release)
	s.read(s.x, s.z)
	s.put(s.claim(s.x, 0))
	s.read(s.x, s.z)
	s.put(&release) // the producer's, twice
	s.read(s.z)
	if r, ok := s.z.Claim([]int32{0}, s.now); ok {
		s.put(&r)
		s.read(s.z)
	}
	s.onlyXLeads(0)
}

func TestAForgottenRoleIsNotLed(t *testing.T) {
	s := newScript(t)
	s.x.Forget([]int32{0})
	_, leads := s.x.Leads(0, s.now)
	require.False(t, leads, "x leads what it forgot")
	require.Equal(t, 1, s.x.Holding(), "until others know")
	beat, ok := s.x.Beat(s.now)
	require.True(t, ok)
	s.put(&beat)
	s.read(s.x)
	_, leads = s.x.Leads(0, s.now)
	require.False(t, leads, "x leads what it forgot")
	for _, r := range s.x.Unreleased(s.now) {
		s.put(&r)
	}
	s.read(s.x, s.z)
	require.False(t, s.x.Owing())
	require.True(t, s.z.MayClaim(0, s.now))
}

// A record of x that is no evidence comes late, when two processes that know nothing have
// begun after what it had read. One of them has claimed without it. Whoever has read it
// must judge that Claim as everybody does.
func TestOnlyEvidenceMovesLast(t *testing.T) {
	for _, kind := range []Kind{Snapshot, Release, Hello} {
		t.Run(string(kind), func(t *testing.T) {
			s := newScript(t)
			s.put(s.claim(s.x, 1))
			s.read(s.x, s.z)
			late := s.x.Word(kind, s.now)
			switch kind {
			case Snapshot:
				late = s.x.Snapshot(s.now)[0]
			case Release:
				s.x.Forget([]int32{1})
				late = s.x.Release([]int32{1}, s.now)[0]
			case Beat, Claim, Hello, Ping, Pong:
			}
			word := s.z.Word(Hello, s.now)
			s.put(&word)
			begin := func(name string) *Lease {
				l := New(Rules{Process: name, T: time.Second, History: 10})
				l.Begin(int64(len(s.log)), false, s.now)
				return l
			}
			f, g := begin("f"), begin("g")
			s.wait(clock.Wait(clock.Tmax, 0))
			fresh := s.claim(f, 2)
			s.put(&late)
			s.put(fresh)
			s.read(s.z, f, g)
			require.True(t, g.Known() && f.Known(), "by the fresh Claim")
			require.Equal(t, s.z.fold.hash, g.fold.hash, "folds differ")
		})
	}
}

// Who knows nothing has heard that no lease is longer than its own; then something of a
// newer version comes.
func TestANewerVersionMayHoldForTmax(t *testing.T) {
	s := newScript(t)
	f := New(Rules{Process: "f", T: time.Second, History: 10})
	f.Begin(int64(len(s.log)), false, s.now)
	word := s.z.Word(Hello, s.now)
	s.put(&word)
	s.read(f)
	f.ReadNewer(int64(len(s.log)), s.now)
	s.wait(clock.Wait(clock.Tmax, 0) - time.Nanosecond)
	require.False(t, f.MayClaim(0, s.now), "claims what a newer version may hold")
	s.wait(time.Nanosecond)
	require.True(t, f.MayClaim(0, s.now))

	// It is told so, if it begins later.
	s.x.ReadNewer(int64(len(s.log)), s.now)
	s.put(&Record{}) // its place
	word = s.x.Word(Hello, s.now)
	g := New(Rules{Process: "g", T: time.Second, History: 10})
	g.Begin(int64(len(s.log)), false, s.now)
	s.put(&word)
	s.read(g)
	s.wait(clock.Wait(clock.Tmax, 0) - time.Nanosecond)
	require.False(t, g.MayClaim(0, s.now), "claims what a newer version may hold")
}

// x has a short lease and z a long one. Who begins now, and hears of x, waits for z.
func TestLongestIsOfAll(t *testing.T) {
	s := newScriptOf(t, clock.Tmax)
	s.put(s.claim(s.z, 1))
	s.read(s.x, s.z)
	f := New(Rules{Process: "f", T: time.Second, History: 10})
	f.Begin(int64(len(s.log)), false, s.now)
	beat, ok := s.x.Beat(s.now)
	require.True(t, ok)
	s.put(&beat)
	s.read(s.x, s.z, f)
	s.wait(clock.Wait(time.Second, 0))
	_, leads := s.z.Leads(1, s.now)
	require.True(t, leads)
	require.False(t, f.MayClaim(1, s.now), "two leaders")
}

// Both are heard, the one with the short lease last.
func TestTheLeaseThatEndsLastCounts(t *testing.T) {
	s := newScriptOf(t, clock.Tmax)
	s.put(s.claim(s.z, 1))
	s.read(s.x, s.z)
	f := New(Rules{Process: "f", T: time.Second, History: 10})
	f.Begin(int64(len(s.log)), false, s.now)
	s.wait(clock.Tmax / 2)
	beat, ok := s.z.Beat(s.now)
	require.True(t, ok)
	s.put(&beat)
	s.put(&Record{Kind: Beat, Session: s.x.Session(), Read: 0, Seq: 9, T: time.Second}) // late
	s.read(s.x, s.z, f)
	s.wait(clock.Wait(clock.Tmax/2, 0))
	_, leads := s.z.Leads(1, s.now)
	require.True(t, leads)
	require.False(t, f.MayClaim(1, s.now), "two leaders")
}

func TestAFailedClaimMayBeSentAgain(t *testing.T) {
	s := newScript(t)
	r := s.claim(s.z, 1)
	require.False(t, s.z.MayClaim(1, s.now), "it is under way")
	require.True(t, s.z.MayClaim(2, s.now))
	s.z.Failed(r.Session, r.Seq)
	require.True(t, s.z.MayClaim(1, s.now), "a Claim that failed is still under way")
	again := s.claim(s.z, 1)
	s.put(again)
	s.put(r) // all the same
	s.read(s.x, s.z)
	token, leads := s.z.Leads(1, s.now)
	require.True(t, leads)
	require.EqualValues(t, 1, token, "the other one had not read this")
	require.Equal(t, s.x.fold.hash, s.z.fold.hash)
}

// A Claim that nothing is heard of is given up: by a new session, if nothing is held.
func TestAClaimIsGivenUp(t *testing.T) {
	s := newScript(t)
	id := s.z.Session()
	lost := s.claim(s.z, 1)
	s.wait(time.Second / 4)
	s.z.GiveUpClaims(s.now.Add(-time.Second / 2))
	require.False(t, s.z.MayClaim(1, s.now), "not yet")
	s.z.GiveUpClaims(s.now)
	require.NotEqual(t, id, s.z.Session())
	s.put(s.claim(s.z, 1))
	s.put(lost)
	s.read(s.x, s.z)
	_, leads := s.z.Leads(1, s.now)
	require.True(t, leads, "the lost one had not read this one")

	s.put(s.claim(s.x, 3)) // x holds role 0 and keeps its session
	id = s.x.Session()
	s.claim(s.x, 4)
	s.x.GiveUpClaims(s.now)
	require.Equal(t, id, s.x.Session())
	require.True(t, s.x.MayClaim(4, s.now))
}

func TestLongestShortensTheWait(t *testing.T) {
	s := newScript(t)
	f := New(Rules{Process: "f", T: time.Second, History: 10})
	f.Begin(int64(len(s.log)), false, s.now)
	word := s.z.Word(Hello, s.now)
	s.put(&word)
	s.read(f)
	s.wait(clock.Wait(time.Second, 0))
	require.True(t, f.MayClaim(0, s.now), "waits longer than the longest lease that there is")
}
