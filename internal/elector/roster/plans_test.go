package roster

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/placement"
	"github.com/stretchr/testify/require"
)

var at = clock.HourAnd // an instant after the beginning of a test

func censusOf(ms ...*member) Census {
	c := Census{Members: &Members{by: map[string]*member{}}, Self: placement.Candidate{ID: "self", Roles: 4}, Willing: true,
		Cool: func(string, clock.Mono) bool { return false }}
	for _, m := range ms {
		c.Members.by[m.name] = m
	}
	return c
}

func TestCandidates(t *testing.T) {
	now := at(time.Hour)
	there := func(change func(*member)) *member {
		m := &member{name: "b", heard: now, since: at(time.Hour - SteadyAfter).Mono, nominated: true, present: true, roles: 4}
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
		{name: "one that stays", m: there(func(m *member) { m.since = at(time.Hour - HelloEvery/2).Mono }), listed: true, soon: true},
		{name: "one that did not claim", m: there(func(*member) {}), cool: true, listed: true},
		{name: "one that is silent", m: there(func(m *member) { m.heard = at(time.Hour - 2*HelloEvery) }), listed: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			from := censusOf(c.m)
			if c.cool {
				from.Cool = func(id string, _ clock.Mono) bool { return id == "b" }
			}
			who := (&Planner{}).candidates(from, c.expected, now)
			require.Equal(t, "self", who[len(who)-1].ID)
			require.Equal(t, c.listed, len(who) == 2)
			if c.listed {
				require.Equal(t, []bool{c.steady, c.soon}, []bool{who[0].Steady, who[0].Soon})
			}
			from.Quiet, from.Willing = map[string]bool{"b": true}, false
			require.Empty(t, (&Planner{}).candidates(from, c.expected, now), "one is dead, the other does not want to lead")
		})
	}
}

// A plan is made anew when its candidates have changed, and only then.
func TestPlansAreKept(t *testing.T) {
	pl, now := &Planner{}, at(time.Hour)
	b := &member{name: "b", heard: now, nominated: true, present: true, roles: 4}
	first, me := pl.Plan(censusOf(b), false, now)
	require.Equal(t, 1, me)
	require.True(t, pl.Changed())
	require.False(t, pl.Changed())
	again, _ := pl.Plan(censusOf(b), false, now)
	require.Same(t, first, again)
	b.priority = 3
	other, _ := pl.Plan(censusOf(b), false, now)
	require.NotSame(t, first, other)
	require.True(t, pl.Changed())
	pl.Forget()
	anew, _ := pl.Plan(censusOf(b), false, now)
	require.NotSame(t, other, anew)
	weighed := censusOf(b)
	weighed.Weights = placement.NewWeights([]int32{1, 2, 1, 1})
	heavy, _ := pl.Plan(weighed, false, now)
	require.Equal(t, int64(2), heavy.Weight(1), "other weights")
	again, _ = pl.Plan(weighed, false, now)
	require.Same(t, heavy, again)
	c := censusOf(b)
	c.Willing = false
	_, me = pl.Plan(c, true, now)
	require.Negative(t, me)
}

// Preference is asked once about each member, and anew when the number of roles changes.
func TestPreferenceIsAskedOnce(t *testing.T) {
	pl, c := &Planner{}, censusOf(&member{name: "b"})
	self := Member{Process: "self"}
	require.Len(t, pl.Unasked(c.Members, self, false, 2), 2)
	b := Member{Process: "b", Name: "b"}
	pl.Preferred(b, []int32{1, 2})
	require.Equal(t, []Member{self}, pl.Unasked(c.Members, self, false, 2))
	require.Empty(t, pl.Unasked(c.Members, self, true, 2), "an observer is no candidate")
	require.Len(t, pl.Unasked(c.Members, self, false, 3), 2)
	pl.Preferred(b, []int32{1, 2})
	require.Len(t, pl.Unasked(c.Members, self, false, 3), 2, "what was said of another number of roles is out of date")
	pl.Preferred(b, []int32{1, 2, 3})
	require.Equal(t, []Member{self}, pl.Unasked(c.Members, self, false, 3))
	c.Members.by["b"].roles = 7
	require.Equal(t, []Member{self}, pl.Unasked(c.Members, self, false, 3), "Preference is not told of it")
	c.Members.by["b"].priority = 5
	asked := pl.Unasked(c.Members, self, true, 3)
	require.Equal(t, []Member{{Process: "b", Name: "b", Priority: 5}}, asked, "another priority")
	require.Equal(t, []int32{1, 2, 3}, pl.prefs["b"].byRole, "the former answer holds until there is another one")
	pl.Preferred(asked[0], []int32{4, 5, 6})
	require.Empty(t, pl.Unasked(c.Members, self, true, 3))
	c.Members.by["b"].zone = "z"
	require.Len(t, pl.Unasked(c.Members, self, true, 3), 1, "another zone")
	delete(c.Members.by, "b")
	pl.Unasked(c.Members, self, false, 3)
	require.Empty(t, pl.prefs)
}

// A name means a process only if no other member has it.
func TestNamesMeanOneProcess(t *testing.T) {
	ms := censusOf(&member{name: "b"}, &member{name: "c"}).Members
	require.True(t, ms.Means("p1", Self{"p1", "A"}, at(0)))
	require.True(t, ms.Means("A", Self{"p1", "A"}, at(0)))
	require.False(t, ms.Means("B", Self{"p1", "A"}, at(0)))
	require.False(t, ms.Means("b", Self{"p1", "b"}, at(0)), "a member is called that, too")
	ms.by["A"] = &member{name: "x"}
	require.False(t, ms.Means("A", Self{"p1", "A"}, at(0)), "it is a member's id")
}
