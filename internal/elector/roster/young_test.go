package roster

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// In a young group members are steady as soon as none has come for a while. Each has this advantage
// once, and for balance only.
func TestYoungGroup(t *testing.T) {
	came := func(since time.Duration) *member {
		return &member{name: "b", heard: at(time.Hour + 6*time.Second), since: at(time.Hour + since).Mono, nominated: true, present: true, roles: 4}
	}
	pl, now := &Planner{}, at(time.Hour+6*time.Second)
	steady := func(m *member, after time.Duration) bool {
		who := pl.candidates(censusOf(m), false, now.Add(after))
		return who[0].Steady
	}
	require.False(t, steady(came(0), 0), "it is not known whether this process was the first")
	pl.Decide(false, at(time.Hour))
	require.False(t, steady(came(0), 0), "this process was not the first")
	pl.Decide(true, at(time.Hour))
	require.False(t, steady(came(5*time.Second), 0), "others may come at any time")
	require.False(t, steady(came(4*time.Second), 0), "it came late")
	between := came(2 * time.Second)
	between.name = "c"
	for _, who := range pl.candidates(censusOf(came(4*time.Second), between), false, now) {
		require.True(t, who.Steady || who.ID == "self", "it came soon after another one")
	}
	pl.Decide(true, at(time.Hour))
	preferred := came(time.Second)
	preferred.priority = 1
	require.False(t, steady(preferred, 0), "it would get roles by its priority")
	require.True(t, steady(came(time.Second), 0))
	require.True(t, steady(came(time.Second), time.Second))
	require.False(t, steady(came(3*time.Second), time.Second), "it had this advantage before, and was away since")
	require.False(t, steady(came(time.Second), SteadyAfter-6*time.Second), "the group is not young any more")
}

func TestHelloPeriodAndGap(t *testing.T) {
	for n, want := range map[int][2]time.Duration{
		1:      {5 * time.Second, time.Second},
		20:     {5 * time.Second, time.Second},
		25:     {5 * time.Second, 1250 * time.Millisecond},
		100:    {20 * time.Second, 5 * time.Second},
		300:    {time.Minute, 15 * time.Second},
		10_000: {time.Minute, 500 * time.Second},
	} {
		require.Equal(t, want, [2]time.Duration{HelloPeriod(n), HelloGap(n)}, n)
	}
}

// All members compute the same order of answers, so no two have the same turn.
func TestTurnsDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, key := rapid.IntRange(2, 40).Draw(t, "members"), rapid.Uint64().Draw(t, "key")
		turns := map[time.Duration]bool{}
		first := 0
		for i := range n {
			ms := NewMembers()
			for k := range n {
				if k != i {
					ms.by[fmt.Sprint("p", k)] = &member{present: true}
				}
			}
			turn := ms.Turn(fmt.Sprint("p", i), key, false, 5*time.Second, 10*time.Millisecond, at(0))
			turns[turn] = true
			if turn == 0 {
				first++
			}
		}
		if first != 1 || len(turns) != n {
			t.Fatalf("%d of %d answer at once, there are %d turns", first, n, len(turns))
		}
	})
}
