package elector

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/term"
)

// at is an instant after the beginning of a test.
func at(d time.Duration) clock.Instant {
	return clock.Alike(time.Hour + d)
}

func (h *handover) list() []int32 { return h.sorted(true) }

func TestHandoversKnowWhatIsGivenUp(t *testing.T) {
	var hs handovers
	require.Nil(t, hs.of(1))
	h := newHandover(term.Closing, at(0), "", false)
	hs.begin(h, 1, 2, 3)
	require.Same(t, h, hs.of(2))
	require.Nil(t, hs.of(4), "it is kept")
	hs.drop(2)
	hs.drop(4)
	require.Nil(t, hs.of(2), "it is held no more")
	require.Equal(t, []int32{1, 3}, h.list())
	hs.callOff(h)
	require.Nil(t, hs.of(1), "it is kept")
	hs.tidy()
	require.Empty(t, hs.all)
}

func TestHandoversAreNamedOnce(t *testing.T) {
	var hs handovers
	hs.begin(newHandover(term.Closing, at(0), "", false), 3, 1)
	hs.begin(newHandover(term.Transferred, at(0), "b", true), 2)
	require.True(t, hs.unnamed())
	require.Equal(t, []int32{1, 3}, hs.name(), "the other one was begun for b")
	require.False(t, hs.unnamed())
	require.Empty(t, hs.name())
}

// One step neither names nor releases many more than stepRoles roles.
func TestHandoversOfManyRolesTakeSeveralSteps(t *testing.T) {
	many := make([]int32, stepRoles+1)
	for i := range many {
		many[i] = int32(i)
	}
	var hs handovers
	h := newHandover(term.Closing, at(0), "", false)
	hs.begin(h, many...)
	hs.begin(newHandover(term.Closing, at(0), "", false), stepRoles+1)
	require.Len(t, hs.name(), len(many))
	require.True(t, hs.unnamed())
	require.Equal(t, []int32{stepRoles + 1}, hs.name())
	require.False(t, hs.unnamed())
	for _, role := range many {
		h.finish(role, at(0).Mono)
	}
	require.Equal(t, many[:stepRoles], h.sorted(false))
	for _, role := range many[:stepRoles] {
		hs.drop(role)
	}
	require.Equal(t, at(0).Mono, h.releaseAt(time.Second), "the rest follows at once")
	require.Equal(t, many[stepRoles:], h.sorted(false))
}

func TestHandoversAreSplitBySuccessor(t *testing.T) {
	var hs handovers
	h := newHandover(term.Closing, at(0), "", true)
	hs.begin(h, 1, 2, 3, 4)
	h.finish(2, at(0).Mono)
	toB := hs.split(1, "b")
	require.Equal(t, "b", toB.to)
	require.Equal(t, []any{h.why, h.since, true}, []any{toB.why, toB.since, toB.named})
	require.Nil(t, hs.split(2, "b"), "it joins the one that there is")
	require.Nil(t, hs.split(3, ""), "it is in nobody's favour already")
	require.Equal(t, map[int32]bool{1: false, 2: true}, maps.Collect(toB.roles.all()), "what is finished stays so")
	require.Same(t, toB, hs.of(2))
	require.Equal(t, []int32{3, 4}, h.list())

	toB.asked = true
	again := hs.split(4, "b")
	require.NotSame(t, toB, again, "that of which the application was told goes on by itself")
	later := newHandover(term.Closing, at(time.Second), "", true)
	hs.begin(later, 5)
	require.NotNil(t, hs.split(5, "b"), "what began later does, too")
}

func TestHandoversUniteWhatIsForNobody(t *testing.T) {
	for name, c := range map[string]struct {
		change func(first, second *handover)
		united bool
	}{
		"asked for at the same time":     {func(_, _ *handover) {}, true},
		"at another time":                {func(_, h *handover) { h.deadline = at(2 * time.Second) }, false},
		"the other one is not asked for": {func(h, _ *handover) { h.asked = false }, false},
		"in somebody's favour":           {func(_, h *handover) { h.to = "b" }, false},
		"the other is in somebody's":     {func(h, _ *handover) { h.to = "b" }, false},
		"for another reason":             {func(_, h *handover) { h.why = term.Unhealthy }, false},
	} {
		t.Run(name, func(t *testing.T) {
			var hs handovers
			first, second := newHandover(term.Closing, at(0), "", true), newHandover(term.Closing, at(0), "", true)
			hs.begin(first, 1)
			hs.begin(second, 2)
			for _, h := range hs.all {
				h.asked, h.deadline = true, at(time.Second)
			}
			c.change(first, second)
			hs.unite(second)
			if !c.united {
				require.Equal(t, []int32{2}, second.list())
				return
			}
			require.Equal(t, []int32{1, 2}, first.list())
			require.Same(t, first, hs.of(2))
			hs.tidy()
			require.Equal(t, []*handover{first}, hs.all)
		})
	}
}

func TestHandoversAreDue(t *testing.T) {
	const wait, trip = 4 * time.Second, 10 * time.Millisecond
	var hs handovers
	require.Equal(t, clock.Mono(clock.Never), hs.due(at(0).Mono, wait, wait, trip), "nothing is under way")
	unnamed := newHandover(term.Closing, at(0), "", false)
	hs.begin(unnamed, 1)
	require.Equal(t, at(time.Second).Mono, hs.due(at(time.Second).Mono, wait, wait, trip), "successors are named")
	unnamed.named = true
	require.Equal(t, at(wait).Mono, hs.due(at(time.Second).Mono, wait, wait, trip), "no successor is waited for any more")
	asked := newHandover(term.Closing, at(0), "", true)
	asked.asked, asked.deadline = true, at(3*time.Second)
	hs.begin(asked, 2, 3)
	require.Equal(t, at(3*time.Second).Mono, hs.due(0, wait, wait, trip), "the application's time is over")
	asked.finish(2, at(time.Second).Mono)
	require.Equal(t, at(time.Second+trip).Mono, hs.due(0, wait, wait, trip), "more may be finished by then")
	asked.finish(3, at(time.Second+trip/2).Mono)
	require.Equal(t, at(time.Second).Mono, hs.due(0, wait, wait, trip), "that is all")
}

// Whatever is begun, split, finished, released and called off: each role is in one handover at
// most, which is the one that it is found by, and finished roles are counted right, since they are
// released by that count.
func TestHandoversAreConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var hs handovers
		now, done := time.Duration(0), map[int32]bool{}
		role := func(t *rapid.T) int32 { return rapid.Int32Range(0, 7).Draw(t, "role") }
		member := func(t *rapid.T) string { return rapid.SampledFrom([]string{"", "b", "c"}).Draw(t, "to") }
		some := func(t *rapid.T) *handover {
			if len(hs.all) == 0 {
				return nil
			}
			return rapid.SampledFrom(hs.all).Draw(t, "handover")
		}
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				if r := role(t); hs.of(r) == nil {
					hs.begin(newHandover(term.Closing, at(now), member(t), true), r)
				}
			},
			"split": func(t *rapid.T) {
				if r := role(t); hs.of(r) != nil {
					hs.split(r, member(t))
				}
			},
			"ask": func(t *rapid.T) {
				h := some(t)
				if h == nil || h.asked {
					return
				}
				h.asked, h.deadline = true, at(now.Truncate(4*time.Second)+10*time.Second)
				hs.unite(h)
			},
			"finish": func(t *rapid.T) {
				r := role(t)
				if h := hs.of(r); h != nil && h.asked {
					h.finish(r, at(now).Mono)
					done[r] = true
				}
			},
			"drop": func(t *rapid.T) {
				r := role(t)
				hs.drop(r)
				delete(done, r)
			},
			"call off": func(t *rapid.T) {
				if h := some(t); h != nil && !h.asked && h.finished == 0 {
					hs.callOff(h)
				}
			},
			"tidy": func(*rapid.T) { hs.tidy() },
			"time": func(*rapid.T) { now += time.Second },
			"": func(t *rapid.T) {
				in := map[int32]*handover{}
				for _, h := range hs.all {
					finished := 0
					for r, over := range h.roles.all() {
						if in[r] != nil {
							t.Fatalf("role %d is in two handovers", r)
						}
						in[r] = h
						if over {
							finished++
						}
						if over != done[r] {
							t.Fatalf("role %d: finished is %v", r, over)
						}
					}
					if finished != h.finished {
						t.Fatalf("%d are finished, %d are counted", finished, h.finished)
					}
					if (h.finished > 0) != (h.finishedAt != 0) {
						t.Fatalf("%d are finished, the first at %v", h.finished, h.finishedAt)
					}
				}
				for r := range int32(8) {
					if hs.of(r) != in[r] {
						t.Fatalf("role %d is in %v and found in %v", r, in[r], hs.of(r))
					}
				}
			},
		})
	})
}

func TestFinishedRolesWaitForOthersForARoundTrip(t *testing.T) {
	const trip = 10 * time.Millisecond
	h := newHandover(term.Closing, at(0), "", true)
	for _, role := range []int32{1, 2, 3} {
		h.roles.set(role, false)
	}
	require.Equal(t, clock.Mono(clock.Never), h.releaseAt(trip))
	h.finish(1, at(time.Second).Mono)
	h.finish(1, at(2*time.Second).Mono)
	h.finish(2, at(2*time.Second).Mono)
	require.Equal(t, at(time.Second+trip).Mono, h.releaseAt(trip), "counted from the first")
	require.Equal(t, []int32{1, 2}, h.sorted(false))
	require.Equal(t, []int32{1, 2, 3}, h.sorted(true))
	h.drop(3)
	require.Equal(t, at(time.Second).Mono, h.releaseAt(trip), "nothing else is to be finished")
	h.drop(1)
	require.Equal(t, at(time.Second).Mono, h.releaseAt(trip))
	h.drop(2)
	require.Equal(t, clock.Mono(clock.Never), h.releaseAt(trip))
	h.roles.set(4, false)
	h.finish(4, at(5*time.Second).Mono)
	require.Equal(t, at(5*time.Second).Mono, h.releaseAt(trip), "what was finished before it is forgotten")
}

// The time at which a handover is due is the time at which what is decided changes.
func TestAHandoverDecidesOtherwiseWhenItIsDue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const wait = 4 * time.Second
		s := conditions{wanted: rapid.Bool().Draw(t, "wanted"), ready: rapid.Bool().Draw(t, "ready"), refused: rapid.Bool().Draw(t, "refused")}
		h := newHandover(rapid.SampledFrom([]term.Reason{term.Closing, term.Rebalanced, term.Transferred}).Draw(t, "why"), at(0), "b", true)
		if rapid.Bool().Draw(t, "asked") {
			h.asked, h.deadline = true, at(10*time.Second)
		}
		decide := func(at clock.Instant) action {
			s := s
			s.over = at.Age(h.since) >= wait
			return h.decide(at, s)
		}
		first, due := decide(at(0)), h.due(wait)
		for d := time.Duration(0); at(d).Mono < due; d += 500 * time.Millisecond {
			if got := decide(at(d)); got != first {
				t.Fatalf("%d after %v, %d at first", got, d, first)
			}
		}
		if got := decide(at(due.Sub(at(0).Mono))); first == stay && got == stay {
			t.Fatal("it stays for ever")
		}
	})
}
