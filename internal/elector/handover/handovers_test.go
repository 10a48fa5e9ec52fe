package handover

import (
	"maps"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/term"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var at = clock.HourAnd // an instant after the beginning of a test

func (h *Handover) list() []int32 { return h.Sorted(true) }

func TestSuccessorsAreNamedOnce(t *testing.T) {
	var hs Handovers
	hs.Begin(NewHandover(term.Closing, at(0), "", false), 3, 1)
	hs.Begin(NewHandover(term.Transferred, at(0), "b", true), 2)
	require.True(t, hs.Unnamed())
	require.Equal(t, []int32{1, 3}, hs.Name(), "the other one was begun for b")
	require.False(t, hs.Unnamed())
	require.Empty(t, hs.Name())
}

func TestHandoversAreSplitBySuccessor(t *testing.T) {
	var hs Handovers
	h := NewHandover(term.Closing, at(0), "", true)
	hs.Begin(h, 1, 2, 3, 4)
	h.Finish(2, at(0).Mono)
	toB := hs.Split(1, "b")
	require.Equal(t, "b", toB.to)
	require.Equal(t, []any{h.why, h.since, true}, []any{toB.why, toB.since, toB.named})
	require.Nil(t, hs.Split(2, "b"), "it joins the one that there is")
	require.Nil(t, hs.Split(3, ""), "it is in nobody's favour already")
	require.Equal(t, map[int32]bool{1: false, 2: true}, maps.Collect(toB.roles.All()), "what is finished stays so")
	require.Same(t, toB, hs.Of(2))
	require.Equal(t, []int32{3, 4}, h.list())

	toB.asked = true
	again := hs.Split(4, "b")
	require.NotSame(t, toB, again, "that of which the application was told goes on by itself")
	later := NewHandover(term.Closing, at(time.Second), "", true)
	hs.Begin(later, 5)
	require.NotNil(t, hs.Split(5, "b"), "what began later does, too")
}

func TestReadyPartOfAHandoverGoesAhead(t *testing.T) {
	var hs Handovers
	h := NewHandover(term.Transferred, at(0), "b", true)
	h.Pin()
	hs.Begin(h, 1, 2, 3)
	require.Equal(t, []int32{1, 2, 3}, h.Prepare(4))
	require.Empty(t, h.Prepare(4), "they were offered")
	hs.Pinged(4, 7, "b", at(0))
	hs.Ponged(4, 7, "b", at(time.Second))
	require.Same(t, h, hs.Part(h, []int32{1, 2, 3}), "these are all")
	part := hs.Part(h, []int32{1, 3})
	require.Equal(t, []int32{1, 3}, part.list())
	require.Equal(t, []int32{2}, h.list())
	require.Same(t, part, hs.Of(3))
	require.Equal(t, []any{term.Transferred, "b", true, true, time.Second}, []any{part.why, part.to, part.pinned, part.prepared, part.took})
	part.AskBy(at(time.Minute), false)
	require.False(t, h.asked)

	require.Equal(t, at(5*time.Second).Mono, h.Gather(0, time.Second, at(4*time.Second)))
	require.Equal(t, at(5*time.Second).Mono, h.Gather(0, time.Second, at(9*time.Second)), "since the first")
	require.Equal(t, at(4*time.Second).Mono, h.Gather(1, time.Second, at(4*time.Second)), "all are ready")
}

func TestHandoversChangeTheirSuccessor(t *testing.T) {
	var hs Handovers
	h := NewHandover(term.Closing, at(0), "b", true)
	hs.Begin(h, 1, 2, 3)
	h.Prepare(0)
	toC := hs.Rename(1, "c", 11*time.Second, at(4*time.Second))
	require.Equal(t, []any{"c", at(0), at(4 * time.Second), false}, []any{toC.to, toC.since, toC.chosen, toC.prepared})
	require.False(t, toC.Waited(time.Second, 0, at(5*time.Second-1)), "it is waited for anew")
	require.Equal(t, at(5*time.Second).Mono, toC.due(time.Second))
	require.False(t, toC.Waited(time.Minute, 0, at(5500*time.Millisecond-1)))
	require.True(t, toC.Waited(time.Minute, 0, at(5500*time.Millisecond)), "half of the time is the application's")
	require.Equal(t, at(5500*time.Millisecond).Mono, toC.due(time.Minute))
	require.Equal(t, []int32{1}, toC.Prepare(0))
	toC.LooksAt(at(time.Minute).Mono)
	require.Nil(t, hs.Rename(2, "c", 11*time.Second, at(6*time.Second)))
	require.Equal(t, at(6*time.Second).Mono, toC.due(time.Second), "it is to be offered that, too")
	require.Equal(t, []int32{2}, toC.Prepare(0))

	require.Equal(t, at(10*time.Second), toC.Deadline(10*time.Second, at(4*time.Second)), "both have this time together")
	require.Equal(t, at(12*time.Second), toC.Deadline(10*time.Second, at(7*time.Second)), "the application has half, though it is asked late")
	require.Equal(t, at(17*time.Second), NewHandover(term.Closing, at(0), "b", true).Deadline(10*time.Second, at(7*time.Second)))
	moved := NewHandover(term.Rebalanced, at(0), "b", true)
	moved.Prepare(0)
	require.Equal(t, at(17*time.Second), moved.Deadline(10*time.Second, at(7*time.Second)), "nobody waits")
}

func TestHandoversWithoutSuccessorsUnite(t *testing.T) {
	for name, c := range map[string]struct {
		change func(first, second *Handover)
		united bool
	}{
		"asked for at the same time":     {func(_, _ *Handover) {}, true},
		"at another time":                {func(_, h *Handover) { h.deadline = at(2 * time.Second) }, false},
		"the other one is not asked for": {func(h, _ *Handover) { h.asked = false }, false},
		"in somebody's favour":           {func(_, h *Handover) { h.to = "b" }, false},
		"the other is in somebody's":     {func(h, _ *Handover) { h.to = "b" }, false},
		"for another reason":             {func(_, h *Handover) { h.why = term.Unhealthy }, false},
	} {
		t.Run(name, func(t *testing.T) {
			var hs Handovers
			first, second := NewHandover(term.Closing, at(0), "", true), NewHandover(term.Closing, at(0), "", true)
			hs.Begin(first, 1)
			hs.Begin(second, 2)
			for _, h := range hs.all {
				h.asked, h.deadline = true, at(time.Second)
			}
			c.change(first, second)
			hs.Unite(second)
			if !c.united {
				require.Equal(t, []int32{2}, second.list())
				return
			}
			require.Equal(t, []int32{1, 2}, first.list())
			require.Same(t, first, hs.Of(2))
			hs.Tidy()
			require.Equal(t, []*Handover{first}, hs.all)
		})
	}
}

func TestHandoversAreDue(t *testing.T) {
	const wait, trip = 4 * time.Second, 10 * time.Millisecond
	var hs Handovers
	require.Equal(t, clock.Mono(clock.Never), hs.Due(at(0).Mono, wait, wait, trip), "nothing is under way")
	unnamed := NewHandover(term.Closing, at(0), "", false)
	hs.Begin(unnamed, 1)
	require.Equal(t, at(time.Second).Mono, hs.Due(at(time.Second).Mono, wait, wait, trip), "successors are named")
	unnamed.named = true
	require.Equal(t, at(wait).Mono, hs.Due(at(time.Second).Mono, wait, wait, trip), "no successor is waited for any more")
	asked := NewHandover(term.Closing, at(0), "", true)
	asked.asked, asked.deadline = true, at(3*time.Second)
	hs.Begin(asked, 2, 3)
	require.Equal(t, at(3*time.Second).Mono, hs.Due(0, wait, wait, trip), "the application's time is over")
	asked.Finish(2, at(time.Second).Mono)
	require.Equal(t, at(time.Second+trip).Mono, hs.Due(0, wait, wait, trip), "more may be finished by then")
	asked.Finish(3, at(time.Second+trip/2).Mono)
	require.Equal(t, at(time.Second).Mono, hs.Due(0, wait, wait, trip), "that is all")
}

// Whatever is begun, split, finished, released and called off: each role is in one handover at
// most, and Of finds that one. Finished roles are counted right, since that count says when they
// are released.
func TestHandoversAreConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var hs Handovers
		now, done := time.Duration(0), map[int32]bool{}
		role := func(t *rapid.T) int32 { return rapid.Int32Range(0, 7).Draw(t, "role") }
		member := func(t *rapid.T) string { return rapid.SampledFrom([]string{"", "b", "c"}).Draw(t, "to") }
		some := func(t *rapid.T) *Handover {
			if len(hs.all) == 0 {
				return nil
			}
			return rapid.SampledFrom(hs.all).Draw(t, "handover")
		}
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				if r := role(t); hs.Of(r) == nil {
					hs.Begin(NewHandover(term.Closing, at(now), member(t), true), r)
				}
			},
			"split": func(t *rapid.T) {
				if r := role(t); hs.Of(r) != nil {
					hs.Split(r, member(t))
				}
			},
			"ask": func(t *rapid.T) {
				h := some(t)
				if h == nil || h.asked {
					return
				}
				h.asked, h.deadline = true, at(now.Truncate(4*time.Second)+10*time.Second)
				hs.Unite(h)
			},
			"finish": func(t *rapid.T) {
				r := role(t)
				if h := hs.Of(r); h != nil && h.asked {
					h.Finish(r, at(now).Mono)
					done[r] = true
				}
			},
			"drop": func(t *rapid.T) {
				r := role(t)
				hs.Drop(r)
				delete(done, r)
			},
			"call off": func(t *rapid.T) {
				if h := some(t); h != nil && !h.asked && h.finished == 0 {
					hs.CallOff(h)
				}
			},
			"tidy": func(*rapid.T) { hs.Tidy() },
			"time": func(*rapid.T) { now += time.Second },
			"": func(t *rapid.T) {
				in := map[int32]*Handover{}
				for _, h := range hs.all {
					finished := 0
					for r, over := range h.roles.All() {
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
					if hs.Of(r) != in[r] {
						t.Fatalf("role %d is in %v and found in %v", r, in[r], hs.Of(r))
					}
				}
			},
		})
	})
}

// A handover's decision does not change before the handover is due, and no Stay outlasts that time.
func TestDecisionHoldsUntilAHandoverIsDue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const wait = 4 * time.Second
		s := Conditions{Wanted: rapid.Bool().Draw(t, "wanted"), Ready: rapid.Bool().Draw(t, "ready"), Refused: rapid.Bool().Draw(t, "refused")}
		h := NewHandover(rapid.SampledFrom([]term.Reason{term.Closing, term.Rebalanced, term.Transferred}).Draw(t, "why"), at(0), "b", true)
		if rapid.Bool().Draw(t, "asked") {
			h.asked, h.deadline = true, at(10*time.Second)
		}
		decide := func(at clock.Instant) action {
			s := s
			s.Over = at.Age(h.since) >= wait
			return h.Decide(at, s)
		}
		first, due := decide(at(0)), h.due(wait)
		for d := time.Duration(0); at(d).Mono < due; d += 500 * time.Millisecond {
			if got := decide(at(d)); got != first {
				t.Fatalf("%d after %v, %d at first", got, d, first)
			}
		}
		if got := decide(at(due.Sub(at(0).Mono))); first == Stay && got == Stay {
			t.Fatal("it stays for ever")
		}
	})
}
