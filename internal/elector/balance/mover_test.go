package balance

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/request"
	"github.com/goneli/neli/internal/placement"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var at = clock.HourAnd // an instant after the beginning of a test

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name string
		Fate
		late bool
		over bool
		err  error
	}{
		{"it is being given up", Fate{Held: true, Ours: true, By: "a"}, false, false, nil},
		{"for too long", Fate{Held: true, Ours: true, By: "a"}, true, true, ErrNotTransferred},
		{"it was called off", Fate{Held: true, Ours: true, Kept: true, By: "a"}, false, true, request.ErrNoAnswer},
		{"it is released and nobody has it yet", Fate{}, false, false, nil},
		{"nobody ever takes it", Fate{}, true, true, ErrNotTransferred},
		{"b has it", Fate{Held: true, By: "b"}, false, true, nil},
		{"b has it, late", Fate{Held: true, By: "b"}, true, true, nil},
		{"another one has it", Fate{Held: true, By: "c"}, false, true, ErrNotTransferred},
		{"this process has it, in a later term", Fate{Held: true, Kept: true, By: "a"}, false, true, ErrNotTransferred},
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
	m := &Mover{lookAt: at(time.Minute).Mono, level: true}
	m.inFlight = []Move{{Role: 1, To: "b", ID: 7}, {Role: 2, To: "b"}, {Role: 3, To: "c"}, {Role: 4, To: "d"}}
	for i := range m.inFlight {
		m.inFlight[i].Began = at(0).Mono
	}
	fates := map[int32]Fate{1: {Held: true, By: "c"}, 2: {Held: true, By: "b"}, 3: {Held: true, By: "b"}, 4: {}}
	of := func(v Move) Fate { return fates[v.Role] }
	ended, failed := m.Resolve(of, time.Minute, at(time.Second))
	require.Equal(t, []request.Outcome{{ID: 7, Err: ErrNotTransferred}}, ended)
	require.Equal(t, []untaken{{Move{Role: 3, To: "c", Began: at(0).Mono}, cooldown}}, failed)
	require.False(t, m.level, "it is to be looked at again")
	require.Len(t, m.inFlight, 1, "nobody has it yet")
	require.True(t, m.cool.leaves("c", at(time.Second).Mono))
	require.False(t, m.cool.leaves("b", at(time.Second).Mono))
	require.Equal(t, at(time.Minute).Mono, m.lookAt)

	fates[4] = Fate{Held: true, By: "d"}
	m.Resolve(of, time.Minute, at(2*time.Second))
	require.Equal(t, at(2*time.Second+movePause).Mono, m.lookAt, "there may be more to hand over")
}

func TestHandoversThatFailTogetherCountOnce(t *testing.T) {
	m := &Mover{}
	for k, long := range []time.Duration{cooldown, 2 * cooldown} {
		began := at(time.Duration(k) * time.Minute)
		m.inFlight = []Move{{Role: 1, To: "b", Began: began.Mono}, {Role: 2, To: "b", Began: began.Mono}, {Role: 3, To: "b", Began: began.Mono}}
		_, failed := m.Resolve(func(Move) Fate { return Fate{} }, time.Second, began.Add(time.Second))
		require.Equal(t, []untaken{{Move{Role: 1, To: "b", Began: began.Mono}, long}}, failed)
	}
}

func TestMoverLooksOnceInAWhile(t *testing.T) {
	m := &Mover{}
	require.True(t, m.Looks(true, at(0)))
	require.False(t, m.Looks(true, at(levelEvery-1)))
	require.True(t, m.Looks(true, at(levelEvery)))
	require.False(t, m.Looks(false, at(2*levelEvery)), "it hands nothing over")
	m.inFlight = []Move{{ID: 3}}
	require.True(t, m.Looks(true, at(3*levelEvery)), "a Transfer is another matter")
	m.inFlight = []Move{{ID: 3}, {}}
	require.False(t, m.Looks(true, at(4*levelEvery)), "what it hands over has not been taken")
}

// A move of the plan is made once looks have asked for it for 2 s. Once all loads are level, no further
// look is due, unless a role may be moved later.
func TestMovesAreWeighed(t *testing.T) {
	todo := []placement.Move{{To: 1, Roles: []int{3}}}
	never := func() bool { return false }
	m := &Mover{}
	require.Nil(t, m.Weigh(todo, never, at(time.Second)))
	require.Nil(t, m.Weigh(todo, never, at(time.Second+2*levelEvery-1)))
	require.Equal(t, todo, m.Weigh(todo, never, at(time.Second+2*levelEvery)))
	require.Nil(t, m.Weigh(nil, func() bool { return true }, at(9*time.Second)))
	require.False(t, m.level, "something may be moved later")
	require.Nil(t, m.Weigh(todo, never, at(10*time.Second)), "it begins anew")
	require.Nil(t, m.Weigh(nil, never, at(11*time.Second)))
	require.True(t, m.level)
}

func TestBeingBehindPutsMovesOffForAWhile(t *testing.T) {
	m := &Mover{}
	require.False(t, m.PutOff(false, at(0)))
	require.True(t, m.PutOff(true, at(0)))
	require.True(t, m.PutOff(true, at(maxPutOff-1)))
	require.False(t, m.PutOff(true, at(maxPutOff)), "round trips are always that long")
	require.False(t, m.PutOff(false, at(maxPutOff)))
	require.True(t, m.PutOff(true, at(maxPutOff)), "it was not behind meanwhile")
}

// Whatever becomes of its role, each move is over by the limit, and a Transfer has one outcome.
func TestEveryMoveEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &Mover{}
		n := rapid.IntRange(1, 8).Draw(t, "moves")
		for id := range n {
			m.inFlight = append(m.inFlight, Move{Role: int32(id), To: "b", Began: at(time.Duration(id) * time.Second).Mono, ID: id})
		}
		outcomes := map[int]bool{}
		const limit = 20 * time.Second
		for s := range 40 {
			ended, failed := m.Resolve(func(v Move) Fate {
				return Fate{Held: rapid.Bool().Draw(t, "held"), Ours: rapid.Bool().Draw(t, "ours"), By: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "by")}
			}, limit, at(time.Duration(s)*time.Second))
			for _, o := range ended {
				if outcomes[o.ID] || o.ID == 0 {
					t.Fatalf("outcome of %d", o.ID)
				}
				outcomes[o.ID] = true
			}
			for _, v := range failed {
				if v.ID != 0 {
					t.Fatal("a Transfer puts nobody in cooldown")
				}
			}
		}
		if len(m.inFlight) != 0 || len(outcomes) != n-1 {
			t.Fatalf("%d are left, %d outcomes of %d", len(m.inFlight), len(outcomes), n-1)
		}
	})
}

// A member that did not claim a role that it was given gets no role for five seconds, then for twice as
// long each time, up to a minute. A minute after that its failures are forgotten.
func TestCooldownDoublesUpToAMinute(t *testing.T) {
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

// Each failure that has ended a term doubles the cooldown, up to an hour. A failure that has ended none
// neither lengthens the cooldown beyond a minute nor shortens it.
func TestCooldownAfterLostTermsDoublesUpToAnHour(t *testing.T) {
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
