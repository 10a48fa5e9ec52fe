package elector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/term"
)

func TestAShardDecidesNothingBeforeReadingBegins(t *testing.T) {
	k := newRooms(1, 3, nil)
	s := k.shards[0]
	s.step(k.now.Add(time.Hour))
	require.Empty(t, k.out())
	require.Equal(t, clock.Mono(clock.Never), s.dueAt)
}

func TestAShardClaimsWhatItMayAndIsWoken(t *testing.T) {
	k := newRooms(1, 3, nil)
	k.begin()
	s := k.shards[0]
	s.step(k.now)
	said := k.ready.Append
	k.echo()
	require.Len(t, said, 1)
	require.Equal(t, lease.Hello, said[0].Record.Kind, "there may be leases that it has not read of")
	require.LessOrEqual(t, s.dueAt, k.now.MonoOf(s.lease.FreshAt()), "it is woken when there are none any more")
	for name, hinder := range map[string]func(){
		"an observer":                        func() { k.set.Observer = true },
		"one that is not nominated":          func() { s.nomination.nominated = false },
		"one whose application has hung":     func() { k.alive = false },
		"one that has stepped down":          func() { k.desired.Away = clock.Never },
		"one that is closing":                func() { k.desired.Closing = true },
		"one whose log is not known to work": func() { s.main.link = link{stalled: true} },
	} {
		link := s.main.link
		t.Run(name, func(t *testing.T) {
			hinder()
			k.now = at(3 * time.Second)
			s.claim(k.now)
			require.NotContains(t, kinds(k.out()), lease.Claim)
		})
		k.set.Observer, s.nomination.nominated, k.alive, s.main.link, k.now = false, true, true, link, at(0)
		k.desired.Away, k.desired.Closing = 0, false
	}
	k.now = at(3 * time.Second)
	s.main.link.good = k.now.Mono // a probe has come back
	s.claim(k.now)
	claims := k.out()
	require.Equal(t, []lease.Kind{lease.Claim}, kinds(claims))
	require.Equal(t, []int32{0, 1, 2}, claims[0].Roles)
	s.claim(k.now.Add(20 * time.Millisecond))
	require.Empty(t, k.out(), "what became of it is not known")
	k.read(0, k.from("b", 0, lease.Record{Kind: lease.Claim, Fresh: true, Roles: []int32{0}}))
	s.claims.add(k.now.Mono, []int32{2})
	_, ok := s.claimDue(k.now)
	require.False(t, ok, "it is not woken for others meanwhile")
}

// A process claims at once what was released in its favour, and later what was released in favour
// of another one.
func TestAShardComesSecondAfterTheSuccessor(t *testing.T) {
	for _, to := range []string{"a", "c", "gone"} {
		k := newRooms(1, 1, nil)
		k.begin()
		s := k.shards[0]
		k.joined("b", 0)
		k.joined("c", 1)
		k.members.leave("gone", k.now)
		k.read(0, k.from("b", 0, lease.Record{Kind: lease.Claim, Fresh: true, Roles: []int32{0}}))
		s.main.link.good = k.now.Mono
		r := k.from("b", 0, lease.Record{Kind: lease.Release, To: to, Ended: []lease.Grant{{Token: 0, Roles: []int32{0}}}})
		require.Equal(t, []int32{0}, k.read(0, r).Changed)
		require.Len(t, s.claims.vacant, 1)
		v := s.claims.vacant[0]
		if to == "c" {
			require.Equal(t, toShare, v.what, "c takes it")
			require.GreaterOrEqual(t, v.at, k.now.Mono.Add(headStart(2*k.timing.roundTrip())))
			continue
		}
		require.Equal(t, toClaim, v.what, "released for %s", to)
		require.Equal(t, k.now.Mono, v.at)
	}
}

// claiming returns a shard that has just sent a Claim of its two roles.
func claiming() (*rooms, *shard) {
	k := newRooms(1, 2, nil)
	k.begin()
	s := k.shards[0]
	k.now = at(3 * time.Second)
	s.main.link.good = k.now.Mono
	s.claim(k.now)
	return k, s
}

// After a Claim that may not be in the log the roles are claimed again, and not at once.
func TestAShardClaimsAgainLater(t *testing.T) {
	k, s := claiming()
	claim := k.out()
	require.Len(t, claim, 1)
	s.main.unclaim(&claim[0], k.now)
	require.Equal(t, 1, s.main.pacing.tries)
	due, ok := s.claimDue(k.now)
	require.True(t, ok)
	require.Equal(t, k.now.Mono.Add(backoff(1, k.set)), due)
	require.False(t, s.lease.Waits(), "it is decided")
	require.True(t, s.claims.isListed(0) && s.claims.isListed(1))
}

func TestAShardGivesUpAClaimThatIsLost(t *testing.T) {
	k, s := claiming()
	require.True(t, s.lease.Waits())
	s.giveUpClaims(k.now.Add(10*time.Second - 1))
	require.True(t, s.lease.Waits(), "for ten leases it is awaited")
	k.desired.Away = clock.Never
	s.giveUpClaims(k.now.Add(closeTail - 1))
	require.True(t, s.lease.Waits())
	s.giveUpClaims(k.now.Add(closeTail))
	require.False(t, s.lease.Waits(), "one that wants nothing does not wait as long")
	require.True(t, k.ready.Verify, "the log may not be the same any more")
	require.Len(t, k.ready.Notes, 1)
}

func TestWhatAShardKeeps(t *testing.T) {
	k := newRooms(2, 5, func(s *Settings) { s.Nominated = true })
	s := k.shards[1] // of roles 1 and 3
	require.Zero(t, s.keeps(k.now), "it is not nominated")
	s.nomination.retained = true
	require.Equal(t, int32(2), s.keeps(k.now), "a lost session ends no lease")
	s.nomination = nomination{nominated: true}
	require.Equal(t, int32(2), s.keeps(k.now))
	k.alive = false
	require.Equal(t, int32(2), s.keeps(k.now), "what is held lapses, if its application has hung")
	k.desired.Roles = 3
	require.Equal(t, int32(1), s.keeps(k.now))
	k.desired.Roles = 0
	require.Zero(t, s.keeps(k.now))
	k.desired.Roles, k.desired.Away = 5, k.now.Mono+1
	require.Zero(t, s.keeps(k.now))
	require.Equal(t, int32(2), s.keeps(k.now.Add(1)), "it is back")
}

func TestAShardGivesUpWhatIsBeyondR(t *testing.T) {
	k, s := leading(t, 4, func(s *Settings) { s.Drain = 400 * time.Millisecond })
	k.desired.Roles, s.wanted = 2, false
	s.step(k.now)
	require.Nil(t, s.hands.of(1))
	require.Equal(t, term.Roles, s.hands.of(2).why)
	require.Same(t, s.hands.of(2), s.hands.of(3), "together")
	require.True(t, s.hands.of(2).named, "nobody is to have them")
	k.desired.Roles, s.wanted = 3, false
	s.step(k.now)
	require.NotNil(t, s.hands.of(2), "the application was asked already")
	changes := k.terms.Collect(k.now)
	require.Len(t, changes, 1)
	require.Equal(t, term.Revoked, changes[0].Kind)
	require.Equal(t, []int{2, 3}, changes[0].Units)
	k.pass(k.set.Drain - 20*time.Millisecond)
	require.Len(t, s.holds.roles(), 4, "the application has its time")
	k.pass(20 * time.Millisecond)
	require.Equal(t, []int32{0, 1}, s.holds.roles())
	require.False(t, s.lease.Held(2, k.now), "others know at once")
	require.Equal(t, "released before the application had finished", k.ready.Notes[len(k.ready.Notes)-1].Text)
}

// A process that leaves asks a successor whether it is there, and releases in its favour; nobody
// waits for long for one that does not answer.
func TestAShardHandsOverToWhoAnswers(t *testing.T) {
	for name, answers := range map[string]bool{"answered": true, "in silence": false} {
		t.Run(name, func(t *testing.T) {
			k, s := leading(t, 2, nil)
			k.joined("b", 2)
			k.desired.Away = clock.Never
			s.wanted = false
			s.step(k.now)
			h := s.hands.of(0)
			require.Equal(t, "b", h.to)
			pings := k.out()
			require.Equal(t, []lease.Kind{lease.Ping}, kinds(pings))
			require.Equal(t, "b", pings[0].To)
			require.False(t, h.asked, "this process leads meanwhile")
			s.step(k.now)
			require.Empty(t, k.out(), "it is asked once")
			if answers {
				k.now = k.now.Add(100 * time.Millisecond) // this process's own distance does not count
				s.main.pinged(77, "b", k.now)
				k.now = k.now.Add(30 * time.Millisecond)
				s.main.ponged(77, "b", k.now)
				k.now = k.now.Add(time.Millisecond)
				s.main.ponged(78, "b", k.now) // nor does a second answer
			} else {
				k.now = k.now.Add(k.set.AnswerWait)
			}
			s.step(k.now)
			require.True(t, h.asked)
			for _, role := range []int32{0, 1} {
				h.finish(role, k.now.Mono)
			}
			s.step(k.now)
			var releases []lease.Record
			for _, r := range k.out() {
				if r.Kind == lease.Release {
					releases = append(releases, r)
				}
			}
			require.Len(t, releases, 1)
			require.Equal(t, answers, releases[0].To == "b")
			wait := map[bool]time.Duration{true: 130 * time.Millisecond}[answers]
			require.Equal(t, wait, releases[0].Wait, "by the answer's time")
			k.timing.freeAt = k.now.Mono
			require.Equal(t, k.now.Mono.Add(max(wait, headStart(2*k.timing.roundTrip()))), (&Node{common: k.common}).succeedBy(),
				"nor is a Snapshot written before that")
			require.Zero(t, s.holds.len())
			require.Equal(t, uint64(1), k.counts.Drains.Count)
		})
	}
}

// While somebody takes part who does not want a role, it is handed to nobody.
func TestAShardKnowsWhoIsReady(t *testing.T) {
	k, s := leading(t, 2, nil)
	h := newHandover(term.Transferred, k.now, "b", true)
	s.begin(h, 0)
	on := s.conditions(h, k.now)
	require.True(t, on.wanted)
	require.True(t, on.refused, "nobody knows b")
	k.joined("b", 0)
	require.True(t, s.conditions(h, k.now).refused, "it wants no roles")
	k.joined("b", 1)
	on = s.conditions(h, k.now)
	require.False(t, on.refused || on.ready, "it has not answered")
	h.answered = true
	require.True(t, s.conditions(h, k.now).ready)
	k.members.suspect("b")
	on = s.conditions(h, k.now)
	require.True(t, on.refused && !on.ready, "it has died since")
	k.desired.Contend = false
	require.True(t, s.conditions(h, k.now).idle)
	require.False(t, s.conditions(h, k.now.Add(k.set.AnswerWait-1)).over)
	require.True(t, s.conditions(h, k.now.Add(k.set.AnswerWait)).over)
	require.False(t, s.conditions(h, k.now).wanted)
	require.True(t, s.conditions(newHandover(term.Roles, k.now, "", true), k.now).ready, "there is nobody to wait for")
}

// A session that has lapsed ends its terms before anything else is said, and claims anew.
func TestAShardThatLapsedLeadsNothing(t *testing.T) {
	k, s := leading(t, 2, nil)
	before := s.lease.Session()
	k.now = k.now.Add(1100 * time.Millisecond)
	s.step(k.now)
	require.Zero(t, s.holds.len())
	require.Equal(t, lease.Release, kinds(k.out())[0])
	require.NotEqual(t, before, s.lease.Session())
	changes := k.terms.Collect(k.now)
	require.Len(t, changes, 1)
	require.Equal(t, term.Lapsed, changes[0].Reason)

	k, s = leading(t, 2, nil)
	k.alive = false
	k.now = k.now.Add(1100 * time.Millisecond)
	s.step(k.now)
	require.Equal(t, term.NotPulsed, k.terms.Collect(k.now)[0].Reason, "the application has hung")
}

// A lost claim of a vacant role is made up for.
func TestAShardReviewsVacanciesNowAndThen(t *testing.T) {
	k := newRooms(1, 2, nil)
	k.begin()
	s := k.shards[0]
	k.read(0, k.from("b", 0, lease.Record{Kind: lease.Claim, Fresh: true, Roles: []int32{1}}))
	s.claims.clear()
	s.sweep(k.now)
	require.NotEmpty(t, s.claims.vacant, "role 0 is vacant, and nobody has thought of it")
	s.claims.clear()
	s.sweep(k.now.Add(sweepEvery - 1))
	require.Empty(t, s.claims.vacant)
	s.sweep(k.now.Add(sweepEvery))
	require.NotEmpty(t, s.claims.vacant)
	s.claims.clear()
	s.begun = false
	s.sweep(k.now.Add(time.Hour))
	require.Empty(t, s.claims.vacant, "nothing is read yet")
}

func TestAShardForgetsWithItsLog(t *testing.T) {
	k, s := leading(t, 2, nil)
	s.begin(newHandover(term.Closing, k.now, "b", true), 0)
	s.claims.add(k.now.Mono, []int32{1})
	s.claims.turns, s.main.pacing.thinkAt = 5, 7
	s.forget()
	require.Nil(t, s.hands.of(0))
	require.Empty(t, s.claims.vacant)
	require.Zero(t, s.main.pacing.thinkAt)
	require.Equal(t, uint64(5), s.claims.turns, "what others were told is not forgotten")
}

// With a million roles, a step that gave up or released all of them would delay beats.
func TestAShardGivesUpManyRolesStepByStep(t *testing.T) {
	const roles = 3*stepRoles - 5
	k, s := leading(t, roles, nil)
	k.desired.Closing, s.wanted = true, false
	for i := 1; i <= 3; i++ {
		s.step(k.now)
		require.Equal(t, min(i*stepRoles, roles), s.hands.by.len())
		require.Equal(t, i < 3, s.dueAt <= k.now.Mono, "step %d: the next one follows at once", i)
		k.now = k.now.Add(time.Millisecond)
	}
	k.terms.Collect(k.now)
	k.pass(k.set.Drain + 100*time.Millisecond)
	require.Zero(t, s.holds.len(), "in the end all are released")
}
