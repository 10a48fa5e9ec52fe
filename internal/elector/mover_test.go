package elector

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/placement"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name string
		fate
		late bool
		over bool
		err  error
	}{
		{"it is being given up", fate{held: true, ours: true, by: "a"}, false, false, nil},
		{"for too long", fate{held: true, ours: true, by: "a"}, true, true, ErrNotTransferred},
		{"it was called off", fate{held: true, ours: true, kept: true, by: "a"}, false, true, ErrNoAnswer},
		{"it is released and nobody has it yet", fate{}, false, false, nil},
		{"nobody ever takes it", fate{}, true, true, ErrNotTransferred},
		{"b has it", fate{held: true, by: "b"}, false, true, nil},
		{"b has it, late", fate{held: true, by: "b"}, true, true, nil},
		{"another one has it", fate{held: true, by: "c"}, false, true, ErrNotTransferred},
		{"this process has it, in a later term", fate{held: true, kept: true, by: "a"}, false, true, ErrNotTransferred},
	} {
		t.Run(c.name, func(t *testing.T) {
			over, err := c.verdict("b", c.late)
			require.Equal(t, c.over, over)
			require.ErrorIs(t, err, c.err)
		})
	}
}

// A Transfer reports its outcome. A handover for balance that fails puts its addressee in
// cooldown, and one that succeeds does not.
func TestMovesAreResolved(t *testing.T) {
	m := &mover{lookAt: at(time.Minute).Mono, level: true}
	m.under = []move{{role: 1, to: "b", id: 7}, {role: 2, to: "b"}, {role: 3, to: "c"}, {role: 4, to: "d"}}
	for i := range m.under {
		m.under[i].began = at(0).Mono
	}
	fates := map[int32]fate{1: {held: true, by: "c"}, 2: {held: true, by: "b"}, 3: {held: true, by: "b"}, 4: {}}
	of := func(v move) fate { return fates[v.role] }
	ended, failed := m.resolve(of, time.Minute, at(time.Second))
	require.Equal(t, []Outcome{{7, ErrNotTransferred}}, ended)
	require.Equal(t, []untaken{{move{role: 3, to: "c", began: at(0).Mono}, cooldown}}, failed)
	require.False(t, m.level, "it is to be looked at again")
	require.Len(t, m.under, 1, "nobody has it yet")
	require.True(t, m.cool.leaves("c", at(time.Second).Mono))
	require.False(t, m.cool.leaves("b", at(time.Second).Mono))
	require.Equal(t, at(time.Minute).Mono, m.lookAt)

	fates[4] = fate{held: true, by: "d"}
	m.resolve(of, time.Minute, at(2*time.Second))
	require.Equal(t, at(2*time.Second+movePause).Mono, m.lookAt, "there may be more to hand over")
}

func TestLooksForMovesOnceInAWhile(t *testing.T) {
	m := &mover{}
	require.True(t, m.looks(true, at(0)))
	require.False(t, m.looks(true, at(levelEvery-1)))
	require.True(t, m.looks(true, at(levelEvery)))
	require.False(t, m.looks(false, at(2*levelEvery)), "it hands nothing over")
	m.under = []move{{id: 3}}
	require.True(t, m.looks(true, at(3*levelEvery)), "a Transfer is another matter")
	m.under = []move{{id: 3}, {}}
	require.False(t, m.looks(true, at(4*levelEvery)), "what it hands over has not been taken")
}

// What the plan says is done when it has said so for two looks. Nothing is looked for again
// once all is level, unless something may be moved later.
func TestMovesAreWeighed(t *testing.T) {
	todo := []placement.Move{{To: 1, Roles: []int{3}}}
	never := func() bool { return false }
	m := &mover{}
	require.Nil(t, m.weigh(todo, never, at(time.Second)))
	require.Nil(t, m.weigh(todo, never, at(time.Second+2*levelEvery-1)))
	require.Equal(t, todo, m.weigh(todo, never, at(time.Second+2*levelEvery)))
	require.Nil(t, m.weigh(nil, func() bool { return true }, at(9*time.Second)))
	require.False(t, m.level, "something may be moved later")
	require.Nil(t, m.weigh(todo, never, at(10*time.Second)), "it begins anew")
	require.Nil(t, m.weigh(nil, never, at(11*time.Second)))
	require.True(t, m.level)
}

func TestPatienceWithBeingBehind(t *testing.T) {
	m := &mover{}
	require.False(t, m.putOff(false, at(0)))
	require.True(t, m.putOff(true, at(0)))
	require.True(t, m.putOff(true, at(maxPutOff-1)))
	require.False(t, m.putOff(true, at(maxPutOff)), "round trips are always that long")
	require.False(t, m.putOff(false, at(maxPutOff)))
	require.True(t, m.putOff(true, at(maxPutOff)), "it was not behind meanwhile")
}

func TestWhatMayBeMoved(t *testing.T) {
	young, old := at(time.Hour-minTenure+1).Mono, at(time.Hour-minTenure).Mono
	now := at(time.Hour)
	for name, c := range map[string]struct {
		hold
		movable, tenured bool
	}{
		"what was claimed":        {hold{cause: claimed, since: young}, true, false},
		"what was moved lately":   {hold{cause: rebalanced, since: young}, false, true},
		"what was moved long ago": {hold{cause: rebalanced, since: old}, true, false},
		"what was given to stay":  {hold{cause: transferred, since: old}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.movable, c.hold.movable(now))
			require.Equal(t, c.tenured, c.hold.tenured(now))
		})
	}
}

func TestTenureOfAWillingProcess(t *testing.T) {
	m := &mover{}
	m.contend(true, at(time.Second))
	m.contend(true, at(2*time.Second))
	require.Equal(t, at(time.Second).Mono, m.willing)
	m.contend(false, at(3*time.Second))
	require.Zero(t, m.willing)
}

// Whatever becomes of them, each move is over by the limit, and a Transfer has one outcome.
func TestEveryMoveEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &mover{}
		n := rapid.IntRange(1, 8).Draw(t, "moves")
		for id := range n {
			m.under = append(m.under, move{role: int32(id), to: "b", began: at(time.Duration(id) * time.Second).Mono, id: id})
		}
		outcomes := map[int]bool{}
		const limit = 20 * time.Second
		for s := range 40 {
			ended, failed := m.resolve(func(v move) fate {
				return fate{held: rapid.Bool().Draw(t, "held"), ours: rapid.Bool().Draw(t, "ours"), by: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "by")}
			}, limit, at(time.Duration(s)*time.Second))
			for _, o := range ended {
				if outcomes[o.ID] || o.ID == 0 {
					t.Fatalf("outcome of %d", o.ID)
				}
				outcomes[o.ID] = true
			}
			for _, v := range failed {
				if v.id != 0 {
					t.Fatal("a Transfer puts nobody in cooldown")
				}
			}
		}
		if len(m.under) != 0 || len(outcomes) != n-1 {
			t.Fatalf("%d are left, %d outcomes of %d", len(m.under), len(outcomes), n-1)
		}
	})
}

func censusOf(ms ...*member) census {
	c := census{members: &members{by: map[string]*member{}}, self: placement.Candidate{ID: "self", Roles: 4}, willing: true}
	for _, m := range ms {
		c.members.by[m.name] = m
	}
	return c
}

func TestCandidates(t *testing.T) {
	now := at(time.Hour)
	there := func(change func(*member)) *member {
		m := &member{name: "b", heard: now, since: at(time.Hour - steadyAfter).Mono, nominated: true, present: true, roles: 4}
		change(m)
		return m
	}
	for _, c := range []struct {
		name           string
		m              *member
		expected, cool bool
		listed         bool
		steady, soon   bool
	}{
		{name: "one that is there", m: there(func(*member) {}), listed: true, steady: true},
		{name: "one that would not lead", m: there(func(m *member) { m.nominated = false })},
		{name: "one that let a lease run out", m: there(func(m *member) { m.suspect = true })},
		{name: "one of history", m: there(func(m *member) { m.present = false })},
		{name: "one of history at a start of all", m: there(func(m *member) { m.present = false }), expected: true, listed: true},
		{name: "one that has just come", m: there(func(m *member) { m.since = now.Mono }), listed: true},
		{name: "one that stays", m: there(func(m *member) { m.since = at(time.Hour - helloEvery/2).Mono }), listed: true, soon: true},
		{name: "one that did not claim", m: there(func(*member) {}), cool: true, listed: true},
		{name: "one that is silent", m: there(func(m *member) { m.heard = at(time.Hour - 2*helloEvery) }), listed: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			from := censusOf(c.m)
			if c.cool {
				from.cool = cooldowns{}
				from.cool.failed("b", false, now.Mono)
			}
			who := (&planner{}).candidates(from, c.expected, now)
			require.Equal(t, "self", who[len(who)-1].ID)
			require.Equal(t, c.listed, len(who) == 2)
			if c.listed {
				require.Equal(t, []bool{c.steady, c.soon}, []bool{who[0].Steady, who[0].Soon})
			}
			from.quiet, from.willing = map[string]bool{"b": true}, false
			require.Empty(t, (&planner{}).candidates(from, c.expected, now), "one is dead, the other does not want to lead")
		})
	}
}

// A plan is made anew when its candidates have changed, and only then.
func TestPlansAreKept(t *testing.T) {
	pl, now := &planner{}, at(time.Hour)
	b := &member{name: "b", heard: now, nominated: true, present: true, roles: 4}
	first, me := pl.plan(censusOf(b), false, now)
	require.Equal(t, 1, me)
	require.True(t, pl.changed())
	require.False(t, pl.changed())
	again, _ := pl.plan(censusOf(b), false, now)
	require.Same(t, first, again)
	b.priority = 3
	other, _ := pl.plan(censusOf(b), false, now)
	require.NotSame(t, first, other)
	require.True(t, pl.changed())
	pl.forget()
	anew, _ := pl.plan(censusOf(b), false, now)
	require.NotSame(t, other, anew)
	c := censusOf(b)
	c.willing = false
	_, me = pl.plan(c, true, now)
	require.Negative(t, me)
}

// Preference is asked once about each member, and anew when the number of roles changes.
func TestPreferenceIsAskedOnce(t *testing.T) {
	pl, c := &planner{}, censusOf(&member{name: "b"})
	self := Member{Process: "self"}
	require.Len(t, pl.unasked(c.members, self, false, 2), 2)
	pl.preferred("b", []int32{1, 2})
	require.Equal(t, []Member{self}, pl.unasked(c.members, self, false, 2))
	require.Empty(t, pl.unasked(c.members, self, true, 2), "an observer is no candidate")
	require.Len(t, pl.unasked(c.members, self, false, 3), 2)
	pl.preferred("b", []int32{1, 2})
	require.Len(t, pl.unasked(c.members, self, false, 3), 2, "what was said of another number of roles is out of date")
	pl.preferred("b", []int32{1, 2, 3})
	delete(c.members.by, "b")
	pl.unasked(c.members, self, false, 3)
	require.Empty(t, pl.prefs)
}

// A name means a process only if no other member has it.
func TestWhomANameMeans(t *testing.T) {
	ms := censusOf(&member{name: "b"}, &member{name: "c"}).members
	require.True(t, ms.means("p1", Self{"p1", "A"}, at(0)))
	require.True(t, ms.means("A", Self{"p1", "A"}, at(0)))
	require.False(t, ms.means("B", Self{"p1", "A"}, at(0)))
	require.False(t, ms.means("b", Self{"p1", "b"}, at(0)), "a member is called that, too")
	ms.by["A"] = &member{name: "x"}
	require.False(t, ms.means("A", Self{"p1", "A"}, at(0)), "it is a member's id")
}

// Who did not claim what it was given is left alone for five seconds, then for twice as
// long each time, up to a minute. A minute after that it is forgotten.
func TestCooling(t *testing.T) {
	c := cooldowns{}
	now := clock.Mono(time.Hour)
	for _, long := range []time.Duration{5, 10, 20, 40, 60, 60} {
		require.False(t, c.leaves("a", now))
		require.Equal(t, long*time.Second, c.failed("a", false, now))
		require.True(t, c.leaves("a", now.Add(long*time.Second-1)))
		require.False(t, c.leaves("b", now))
		now = now.Add(long * time.Second)
	}
	now = now.Add(time.Minute - 1)
	require.Equal(t, 5*time.Second, c.failed("b", false, now))
	require.Len(t, c, 2)
	require.Equal(t, 5*time.Second, c.failed("a", false, now.Add(1)), "long ago")
	require.Equal(t, 5*time.Second, c.failed("c", false, now.Add(time.Hour)))
	require.Len(t, c, 1)
}

// Each failure that has ended a term doubles the cooldown, up to an hour. One that has ended none neither
// lengthens it beyond a minute nor shortens it.
func TestCoolingAfterTermsThatEndedInVain(t *testing.T) {
	c := cooldowns{}
	now := clock.Mono(time.Hour)
	for _, long := range []time.Duration{5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600} {
		require.Equal(t, long*time.Second, c.failed("a", true, now))
		now = now.Add(long * time.Second)
	}
	require.Equal(t, time.Hour, c.failed("a", false, now))
	require.Equal(t, 5*time.Second, c.failed("b", false, now))
	require.True(t, c.doubts("a"))
	c.failed("c", true, now.Add(2*time.Hour-1))
	require.True(t, c.doubts("a"))
	c.failed("c", true, now.Add(2*time.Hour))
	require.False(t, c.doubts("a"), "long ago")
}
