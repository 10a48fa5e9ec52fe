package elector

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/handover"
	"github.com/goneli/neli/internal/elector/nominate"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/term"
	"github.com/stretchr/testify/require"
)

func TestAShardDecidesNothingBeforeReadingBegins(t *testing.T) {
	k := newRooms(1, 3, nil)
	s := k.shards[0]
	k.step(s, k.now.Add(time.Hour))
	require.Empty(t, k.out())
	require.Equal(t, clock.Mono(clock.Never), s.dueAt)
}

func TestAShardClaimsOnceNothingHindersIt(t *testing.T) {
	k := newRooms(1, 3, nil)
	k.begin()
	s := k.shards[0]
	k.step(s, k.now)
	k.flush()
	said := k.ready.Append
	k.echo()
	require.Len(t, said, 1)
	require.Equal(t, lease.Hello, said[0].Record.Kind, "there may be leases that it has not read of")
	require.LessOrEqual(t, s.dueAt, k.now.MonoOf(s.freshAt()), "it is woken when there are none any more")
	for name, hinder := range map[string]func(){
		"an observer":                        func() { k.set.Observer = true },
		"one that is not nominated":          func() { s.nomination = nominate.NewNomination(false) },
		"one whose application has hung":     func() { k.alive = false },
		"one that has stepped down":          func() { k.desired.Away = clock.Never },
		"one that is closing":                func() { k.desired.Closing = true },
		"one whose log is not known to work": func() { stalls(s.main) },
	} {
		works := s.main.Link
		t.Run(name, func(t *testing.T) {
			hinder()
			k.now = at(3 * time.Second)
			s.claim(k.told(k.now), k.now)
			require.NotContains(t, kinds(k.out()), lease.Claim)
		})
		k.set.Observer, s.nomination, k.alive, s.main.Link, k.now = false, nominate.NewNomination(true), true, works, at(0)
		k.desired.Away, k.desired.Closing = 0, false
	}
	k.now = at(3 * time.Second)
	works(s.main, k.now) // a probe has come back
	s.claim(k.told(k.now), k.now)
	claims := k.out()
	require.Equal(t, []lease.Kind{lease.Claim}, kinds(claims))
	require.Equal(t, []int32{0, 1, 2}, claims[0].Roles)
	s.claim(k.told(k.now.Add(20*time.Millisecond)), k.now.Add(20*time.Millisecond))
	require.Empty(t, k.out(), "what became of it is not known")
	k.read(0, k.from("b", 0, lease.Record{Kind: lease.Claim, Fresh: true, Roles: []int32{0}}))
	s.claims.Add(k.now.Mono, []int32{2})
	_, ok := s.claimDue(k.tell(k.now))
	require.False(t, ok, "it is not woken for others meanwhile")
}

func TestShardKeepsWantedRoles(t *testing.T) {
	k := newRooms(2, 5, func(s *Settings) { s.Nominated = true })
	s := k.shards[1] // of roles 1 and 3
	require.Zero(t, s.keeps(k.now), "it is not nominated")
	s.nomination = nominate.NewNomination(true)
	s.nomination.Nominate(false, true, true, k.now)
	require.Equal(t, int32(2), s.keeps(k.now), "a lost session ends no lease")
	s.nomination = nominate.NewNomination(true)
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

// A process that leaves asks a successor whether it is there, and releases roles in its favour. If
// the successor does not answer, the process does not wait for long.
func TestAShardHandsOverToAMemberThatAnswers(t *testing.T) {
	for name, answers := range map[string]bool{"answered": true, "in silence": false} {
		t.Run(name, func(t *testing.T) {
			k, s := leading(t, 2, nil)
			k.joined("b", 2)
			k.desired.Away = clock.Never
			s.wanted = false
			k.step(s, k.now)
			h := s.handovers.Of(0)
			require.Equal(t, "b", h.Successor())
			pings := k.out()
			require.Equal(t, []lease.Kind{lease.Ping}, kinds(pings))
			require.Equal(t, "b", pings[0].To)
			require.False(t, h.IsAsked(), "this process leads meanwhile")
			k.step(s, k.now)
			require.Empty(t, k.out(), "it is asked once")
			if answers {
				k.now = k.now.Add(100 * time.Millisecond) // this process's own distance does not count
				s.handovers.Pinged(0, 77, "b", k.now)
				k.now = k.now.Add(30 * time.Millisecond)
				s.handovers.Ponged(0, 77, "b", k.now)
				k.now = k.now.Add(time.Millisecond)
				s.handovers.Ponged(0, 78, "b", k.now) // nor does a second answer
			} else {
				k.now = k.now.Add(k.set.SuccessorWait)
			}
			k.step(s, k.now)
			require.True(t, h.IsAsked())
			for _, local := range []int32{0, 1} {
				h.Finish(local, k.now.Mono)
			}
			k.step(s, k.now)
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
			k.flush()
			k.closing.Free(k.now)
			k.flush()
			require.Equal(t, k.now.Mono.Add(max(wait, vacancy.HeadStart(2*k.trip.Takes()))), k.closing.SucceedBy(vacancy.HeadStart(2*k.trip.Takes())),
				"nor is a Snapshot written before that")
			require.Zero(t, s.own.Len())
			k.flush()
			require.Equal(t, uint64(1), k.counts.Drains.Count)
		})
	}
}

// A role is not handed to a member that does not want it.
func TestConditionsOfAHandover(t *testing.T) {
	k, s := leading(t, 2, nil)
	h := handover.NewHandover(term.Transferred, k.now, "b", true)
	s.begin(h, 0)
	on := s.conditions(h, k.now)
	require.True(t, on.Wanted)
	require.True(t, on.Refused, "nobody knows b")
	k.joined("b", 0)
	require.True(t, s.conditions(h, k.now).Refused, "it wants no roles")
	k.joined("b", 1)
	on = s.conditions(h, k.now)
	require.False(t, on.Refused || on.Ready, "it has not answered")
	h.Pinging(0)
	s.handovers.Pinged(0, 7, "b", k.now)
	s.handovers.Ponged(0, 7, "b", k.now)
	require.True(t, s.conditions(h, k.now).Ready)
	k.members.Suspect("b")
	on = s.conditions(h, k.now)
	require.True(t, on.Refused && !on.Ready, "it has died since")
	k.desired.Contend = false
	require.True(t, s.conditions(h, k.now).Idle)
	require.False(t, s.conditions(h, k.now.Add(k.set.SuccessorWait-1)).Over)
	require.True(t, s.conditions(h, k.now.Add(k.set.SuccessorWait)).Over)
	require.False(t, s.conditions(h, k.now).Wanted)
	require.True(t, s.conditions(handover.NewHandover(term.Roles, k.now, "", true), k.now).Ready, "there is nobody to wait for")
}

// A session that has lapsed ends its terms before anything else is said, and claims anew.
func TestAShardThatLapsedLeadsNothing(t *testing.T) {
	k, s := leading(t, 2, nil)
	before := s.main.Log.Session()
	k.now = k.now.Add(1100 * time.Millisecond)
	k.step(s, k.now)
	require.Zero(t, s.own.Len())
	require.Equal(t, lease.Release, kinds(k.out())[0])
	require.NotEqual(t, before, s.main.Log.Session())
	changes := k.terms.Collect(k.now)
	require.Len(t, changes, 1)
	require.Equal(t, term.Lapsed, changes[0].Reason)

	k, s = leading(t, 2, nil)
	k.alive = false
	k.now = k.now.Add(1100 * time.Millisecond)
	k.step(s, k.now)
	require.Equal(t, term.NotPulsed, k.terms.Collect(k.now)[0].Reason, "the application has hung")
}

// Vacant roles are checked again now and then, in case a Claim was lost.
func TestAShardReviewsVacanciesNowAndThen(t *testing.T) {
	k := newRooms(1, 2, nil)
	k.begin()
	s := k.shards[0]
	k.read(0, k.from("b", 0, lease.Record{Kind: lease.Claim, Fresh: true, Roles: []int32{1}}))
	s.claims.Clear()
	s.recheckVacant(k.told(k.now), k.now)
	require.False(t, s.claims.IsEmpty(), "role 0 is vacant, and nobody has thought of it")
	s.claims.Clear()
	require.Equal(t, k.now.Mono.Add(recheckEvery), s.recheckAt, "the Node calls it then")
	s.recheckVacant(k.told(k.now.Add(recheckEvery)), k.now.Add(recheckEvery))
	require.False(t, s.claims.IsEmpty())
	s.claims.Clear()
	s.begun = false
	s.recheckVacant(k.told(k.now.Add(time.Hour)), k.now.Add(time.Hour))
	require.True(t, s.claims.IsEmpty(), "nothing is read yet")
}

func TestAShardForgetsItsPlansWithItsLog(t *testing.T) {
	k, s := leading(t, 2, nil)
	s.begin(handover.NewHandover(term.Closing, k.now, "b", true), 0)
	s.claims.Add(k.now.Mono, []int32{1})
	s.claims.SaidSilent(session("c"))
	require.True(t, s.claims.Revived(session("c")))
	s.main.Pacing.Think(7)
	s.forget()
	require.Nil(t, s.handovers.Of(0))
	require.True(t, s.claims.IsEmpty())
	require.Zero(t, s.main.Pacing.ThinksAt())
	require.Equal(t, uint64(1), s.claims.Silences(), "what others were told is not forgotten")
}

// With a million roles, a step that gave up or released all of them would delay beats.
func TestAShardGivesUpManyRolesStepByStep(t *testing.T) {
	const roles = 3*handover.StepRoles - 5
	k, s := leading(t, roles, nil)
	k.desired.Closing, s.wanted = true, false
	for i := 1; i <= 3; i++ {
		k.step(s, k.now)
		givenUp := 0
		for local := range int32(roles) {
			if s.handovers.Of(local) != nil {
				givenUp++
			}
		}
		require.Equal(t, min(i*handover.StepRoles, roles), givenUp)
		require.Equal(t, i < 3, s.dueAt <= k.now.Mono, "step %d: the next one follows at once", i)
		k.now = k.now.Add(time.Millisecond)
	}
	k.terms.Collect(k.now)
	k.pass(k.set.DrainTimeout + 100*time.Millisecond)
	require.Zero(t, s.own.Len(), "in the end all are released")
}
