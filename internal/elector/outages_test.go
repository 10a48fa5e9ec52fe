package elector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// outages is three members and an observer, and what each had counted at the last mark.
type outages struct {
	t       *testing.T
	w       *world
	o       *actor
	members []*actor
	before  map[*actor]Stats
}

func newOutages(t *testing.T, roles int) *outages { return newOutagesFor(t, roles, 0.0005) }

// newOutagesFor is newOutages with an observer whose clock may be off by rho.
func newOutagesFor(t *testing.T, roles int, rho float64) *outages {
	w := newWorld(1)
	u := &outages{t: t, w: w, o: w.start("o", roles, func(s *Settings) { s.Observer, s.Rho = true, rho })}
	for _, name := range []string{"a", "b", "c"} {
		u.members = append(u.members, w.start(name, roles, stays))
	}
	w.pass(20 * time.Second)
	u.mark()
	return u
}

func (u *outages) all() []*actor { return append([]*actor{u.o}, u.members...) }

func (u *outages) mark() {
	u.before = map[*actor]Stats{}
	for _, a := range u.all() {
		u.before[a] = a.Stats(u.w.instant())
	}
}

// leader returns the member that leads role 0.
func (u *outages) leader() *actor {
	for _, a := range u.members {
		if leads := a.leads(1); !a.dead && len(leads) > 0 {
			return a
		}
	}
	u.t.Fatal("nobody leads")
	return nil
}

// evidence returns when a process read the newest evidence of the holder of role 0.
func (u *outages) evidence(by *actor) time.Duration {
	g, held := by.Holder(0, u.w.instant())
	require.True(u.t, held)
	return time.Duration(g.Heard.Mono)
}

// until lets time pass until a condition holds, and returns when it did.
func (u *outages) until(holds func() bool) time.Duration {
	for range 60_000 {
		if holds() {
			return time.Duration(u.w.instant().Mono)
		}
		u.w.pass(time.Millisecond)
	}
	u.t.Fatal("it never happens")
	return 0
}

// counted returns how many seconds without a leader a process has counted since the mark, and how
// many vacancies of which total length.
func (u *outages) counted(a *actor) (leaderless float64, vacancies uint64, sum float64) {
	s := a.Stats(u.w.instant())
	b := u.before[a]
	require.InDelta(u.t, s.Leaderless-b.Leaderless, s.Vacancies.Sum-b.Vacancies.Sum, 1e-6, "%s: nothing is vacant now, so both have all", a.set.Name)
	return s.Leaderless - b.Leaderless, s.Vacancies.Count - b.Vacancies.Count, s.Vacancies.Sum - b.Vacancies.Sum
}

// A crashed leader's role has no leader from that leader's last record to the successor's Claim.
// Each process that is left counts that time, the successor too.
func TestACrashCountsFromTheLastEvidence(t *testing.T) {
	u := newOutages(t, 1)
	u.w.pass(300 * time.Millisecond)
	was := u.leader()
	last := u.evidence(u.o)
	was.dead = true
	u.w.pass(1900 * time.Millisecond)
	for _, a := range u.all() {
		if a != was {
			leaderless, vacancies, _ := u.counted(a)
			require.Zero(t, leaderless+float64(vacancies), "it may still be heard")
			require.InDelta(t, time.Duration(u.w.instant().Mono)-last, a.Stats(u.w.instant()).Silence, float64(5*time.Millisecond), "but two beats are missing")
		}
	}
	won := u.until(func() bool { _, held := u.o.Holder(0, u.w.instant()); return held && u.evidence(u.o) > last })
	u.w.pass(10 * time.Millisecond)
	require.InDelta(t, 5.0, (won - last).Seconds(), 0.2, "a lease")
	for _, a := range u.all() {
		if a != was {
			leaderless, vacancies, _ := u.counted(a)
			require.InDelta(t, (won - last).Seconds(), leaderless, 0.005, a.set.Name)
			require.EqualValues(t, 1, vacancies)
			require.Zero(t, a.Stats(u.w.instant()).Silence)
		}
	}
}

// A process counts the whole time even if another process finds the leader silent earlier and claims.
func TestACrashCountsAtAProcessThatNoticesLast(t *testing.T) {
	u := newOutagesFor(t, 1, 0.05)
	was := u.leader()
	last := u.evidence(u.o)
	was.dead = true
	won := u.until(func() bool { _, held := u.o.Holder(0, u.w.instant()); return held && u.evidence(u.o) > last })
	leaderless, vacancies, _ := u.counted(u.o)
	require.EqualValues(t, 1, vacancies)
	require.InDelta(t, (won - last).Seconds(), leaderless, 0.005)
}

// While the log takes no records, a leader leads on for its lease, and nobody can know more. The time
// after that counts once records show that nobody else has claimed meanwhile.
func TestAnOutageOfTheBrokerCountsFromTheEndOfTheLease(t *testing.T) {
	for _, d := range []time.Duration{3 * time.Second, 8 * time.Second, 30 * time.Second, 5 * time.Minute} {
		t.Run(d.String(), func(t *testing.T) {
			u := newOutages(t, 1)
			was := u.leader()
			var over time.Duration
			for _, a := range u.members {
				over = max(over, u.evidence(a)+5*time.Second)
			}
			for end := u.w.now + d; u.w.now < end; u.w.pass(10 * time.Millisecond) {
				u.w.lag = end - u.w.now // what is appended is in the log when the broker is back
			}
			for _, a := range u.members {
				if s := a.Stats(u.w.instant()); d > 6*time.Second {
					require.Zero(t, s.Silence, "it does not know of anything")
					require.InDelta(t, d, s.CutOff, float64(time.Second), a.set.Name)
				}
			}
			u.w.lag = 0
			won := u.until(func() bool {
				return len(u.o.Standings(u.w.instant())) > 0 && u.o.Stats(u.w.instant()).Held == 1 && u.evidence(u.o) > over-5*time.Second
			})
			u.w.pass(100 * time.Millisecond)
			want := max(0, won-over).Seconds()
			if d < 4*time.Second {
				require.Equal(t, was, u.leader())
				want = 0
			}
			for _, a := range u.members {
				leaderless, _, _ := u.counted(a)
				require.Zero(t, a.Stats(u.w.instant()).CutOff)
				require.LessOrEqual(t, leaderless, want+0.3, a.set.Name)
				require.GreaterOrEqual(t, leaderless, want-5, "a record that it sent within T before the end shows the rest")
			}
		})
	}
}

// A process that was suspended, or cut off, does not count the time in which it read nothing. It
// reports for how long it has read nothing.
func TestOutagesExcludeTimeWithoutReads(t *testing.T) {
	for _, d := range []time.Duration{4 * time.Second, 20 * time.Second, 3 * time.Minute} {
		for _, crash := range []bool{false, true} {
			u := newOutages(t, 1)
			was := u.leader()
			follower := u.members[0]
			if follower == was {
				follower = u.members[1]
			}
			from := len(u.w.logs[0])
			follower.deaf = true
			u.w.pass(time.Second)
			was.dead = crash
			u.w.pass(d)
			if d > 10*time.Second {
				require.InDelta(t, d+time.Second, follower.Stats(u.w.instant()).CutOff, float64(5*time.Second))
			}
			follower.deaf = false
			for o := from; o < len(u.w.logs[0]); o++ {
				follower.read(0, int64(o))
			}
			u.w.pass(10 * time.Second)
			leaderless, _, _ := u.counted(follower)
			if crash {
				others, _, _ := u.counted(u.o)
				require.InDelta(t, 5, others, 0.2)
				require.LessOrEqual(t, leaderless, others+0.01, "%v", d)
			} else {
				require.Zero(t, leaderless, "%v", d)
			}
		}
	}
}

// A holder that seems silent only because this process was asleep is no outage.
func TestSuspendedFollowerCountsNoOutage(t *testing.T) {
	u := newOutages(t, 1)
	was := u.leader()
	follower := u.members[0]
	if follower == was {
		follower = u.members[1]
	}
	for range 3 {
		from := len(u.w.logs[0])
		follower.deaf, follower.tick = true, follower.tick+1 // it does nothing at all
		u.w.pass(7 * time.Second)
		follower.deaf = false
		follower.do(follower.Tick) // it wakes up, and has read nothing yet
		u.w.pass(time.Millisecond)
		for o := from; o < len(u.w.logs[0]); o++ {
			follower.read(0, int64(o))
		}
		u.w.pass(5 * time.Second)
	}
	leaderless, _, _ := u.counted(follower)
	require.Less(t, leaderless, 0.01, "it read on a millisecond after it woke up")
}
