package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
)

// Hand-made counterexamples to rules that random schedules rarely need. Without the rule, two
// processes would lead one role at the same time.

// script is a log, and processes that read it when the test says so.
type script struct {
	t   *testing.T
	now clock.Instant
	log []*Record
	x   *Lease
	z   *Lease
}

// newScript lets x win role 0 with a Claim at offset 0 and time 0. Both processes have read it.
func newScript(t *testing.T) *script { return newScriptOf(t, time.Second) }

// newScriptOf gives z a lease of its own. x's is one second.
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

// read lets processes read to the end of the log.
func (s *script) read(all ...*Lease) {
	for _, l := range all {
		for o := l.Offset() + 1; o < int64(len(s.log)); o++ {
			require.False(s.t, l.Read(o, s.log[o], s.now).Rewound)
		}
	}
}

// newcomer returns a process that begins to read at the end of the log, and does not know the fold.
func (s *script) newcomer(name string) *Lease {
	l := New(Rules{Process: name, T: time.Second, History: 10})
	l.Begin(int64(len(s.log)), false, s.now)
	return l
}

// onlyXLeads asserts that x leads a role and z does not.
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
	s.read(s.x) // z holds the roles of x's Claim already, but the Claim shows that x is alive
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
	s.put(s.claim(s.z, 0)) // z has not read x's second Claim
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
	s.put(&release) // twice, as a producer may do
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
	require.Equal(t, 1, s.x.Holding(), "a forgotten role stays held until its Release is read")
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

// Two processes begin without knowing the fold, and one of them claims. A late record of x, which
// is no evidence, precedes the Claim. The process that reads that record must judge the Claim as
// the other one does.
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
			f, g := s.newcomer("f"), s.newcomer("g")
			s.wait(clock.Wait(clock.Tmax, 0))
			fresh := s.claim(f, 2)
			s.put(&late)
			s.put(fresh)
			s.read(s.z, f, g)
			require.True(t, g.Known() && f.Known(), "does not adopt the fresh Claim")
			require.Equal(t, s.z.fold.hash, g.fold.hash, "folds differ")
		})
	}
}

// A process that does not know the fold has heard that no lease is longer than its own. Then a
// record of a newer version appears.
func TestANewerVersionMayHoldForTmax(t *testing.T) {
	s := newScript(t)
	f := s.newcomer("f")
	word := s.z.Word(Hello, s.now)
	s.put(&word)
	s.read(f)
	f.ReadNewer(int64(len(s.log)), s.now)
	s.wait(clock.Wait(clock.Tmax, 0) - time.Nanosecond)
	require.False(t, f.MayClaim(0, s.now), "claims what a newer version may hold")
	s.wait(time.Nanosecond)
	require.True(t, f.MayClaim(0, s.now))

	// A process that begins later learns of it from a Snapshot.
	s.x.ReadNewer(int64(len(s.log)), s.now)
	s.put(&Record{}) // for the offset only
	word = s.x.Word(Hello, s.now)
	g := s.newcomer("g")
	s.put(&word)
	s.read(g)
	s.wait(clock.Wait(clock.Tmax, 0) - time.Nanosecond)
	require.False(t, g.MayClaim(0, s.now), "claims what a newer version may hold")
}

// x has a short lease and z a long one. A process that begins now and hears only x must still wait for z's lease.
func TestLongestCoversAllHolders(t *testing.T) {
	s := newScriptOf(t, clock.Tmax)
	s.put(s.claim(s.z, 1))
	s.read(s.x, s.z)
	f := s.newcomer("f")
	beat, ok := s.x.Beat(s.now)
	require.True(t, ok)
	s.put(&beat)
	s.read(s.x, s.z, f)
	s.wait(clock.Wait(time.Second, 0))
	_, leads := s.z.Leads(1, s.now)
	require.True(t, leads)
	require.False(t, f.MayClaim(1, s.now), "two leaders")
}

// A process that begins now hears both leases, the short one last.
func TestTheLeaseThatEndsLastCounts(t *testing.T) {
	s := newScriptOf(t, clock.Tmax)
	s.put(s.claim(s.z, 1))
	s.read(s.x, s.z)
	f := s.newcomer("f")
	s.wait(clock.Tmax / 2)
	beat, ok := s.z.Beat(s.now)
	require.True(t, ok)
	s.put(&beat)
	s.put(&Record{Kind: Beat, Session: s.x.Session(), Read: 0, Seq: 9, T: time.Second}) // x's record, which arrives late
	s.read(s.x, s.z, f)
	s.wait(clock.Wait(clock.Tmax/2, 0))
	_, leads := s.z.Leads(1, s.now)
	require.True(t, leads)
	require.False(t, f.MayClaim(1, s.now), "two leaders")
}

func TestAFailedClaimMayBeSentAgain(t *testing.T) {
	s := newScript(t)
	r := s.claim(s.z, 1)
	require.False(t, s.z.MayClaim(1, s.now), "claims again, with a Claim in flight")
	require.True(t, s.z.MayClaim(2, s.now))
	s.z.Failed(r.Session, r.Seq)
	require.True(t, s.z.MayClaim(1, s.now), "a failed Claim counts as in flight")
	again := s.claim(s.z, 1)
	s.put(again)
	s.put(r) // the record had arrived although its append failed
	s.read(s.x, s.z)
	token, leads := s.z.Leads(1, s.now)
	require.True(t, leads)
	require.EqualValues(t, 1, token, "the second Claim had not read the first one")
	require.Equal(t, s.x.fold.hash, s.z.fold.hash)
}

// A Claim that does not come back is given up. A session that holds nothing is then replaced.
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
	require.True(t, leads, "the lost Claim had not read this one")

	s.put(s.claim(s.x, 3)) // x holds role 0 and keeps its session
	id = s.x.Session()
	s.claim(s.x, 4)
	s.x.GiveUpClaims(s.now)
	require.Equal(t, id, s.x.Session())
	require.True(t, s.x.MayClaim(4, s.now))
}

func TestLongestShortensTheWait(t *testing.T) {
	s := newScript(t)
	f := s.newcomer("f")
	word := s.z.Word(Hello, s.now)
	s.put(&word)
	s.read(f)
	s.wait(clock.Wait(time.Second, 0))
	require.True(t, f.MayClaim(0, s.now), "waits longer than the longest lease in use")
}
