package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func sizes(b *testing.B, f func(b *testing.B, members, roles int)) {
	for _, s := range []struct{ members, roles int }{{3, 1000}, {100, 100_000}, {1000, 100_000}, {100, 1_000_000}, {1000, 1_000_000}} {
		b.Run(fmt.Sprintf("members=%d/roles=%d", s.members, s.roles), func(b *testing.B) {
			b.ReportAllocs()
			f(b, s.members, s.roles)
		})
	}
}

// BenchmarkColdStart measures a whole cold start: the plan, and the shares of all members.
func BenchmarkColdStart(b *testing.B) {
	sizes(b, func(b *testing.B, members, roles int) {
		who, vacant := crowd(random(1), members, roles), upTo(roles)
		for b.Loop() {
			New(who).Assign(vacant, nil)
		}
	})
}

// BenchmarkCrash measures the plan of the others after a crash, and the assignment of the crashed member's roles.
func BenchmarkCrash(b *testing.B) {
	sizes(b, func(b *testing.B, members, roles int) {
		w := settled(random(1), members, roles)
		w.leave(members / 2)
		vacant := w.vacant()
		for b.Loop() {
			w.plan = New(w.plan.who)
			w.plan.Assign(vacant, w.holders)
		}
	})
}

// BenchmarkJoin measures the plan after a tenth has joined, and what one of the others hands over.
func BenchmarkJoin(b *testing.B) {
	sizes(b, func(b *testing.B, members, roles int) {
		r := random(1)
		w := settled(r, members, roles)
		old := w.plan.who[0].ID
		for range max(1, members/10) {
			w.join(Candidate{ID: randomID(r), Steady: true, Roles: roles})
		}
		me := w.plan.Find(old)
		for b.Loop() {
			New(w.plan.who).Moves(me, w.holders, anything, roles)
		}
	})
}

// BenchmarkMovesOfAll measures a member that leads everything and hands it to all others.
func BenchmarkMovesOfAll(b *testing.B) {
	sizes(b, func(b *testing.B, members, roles int) {
		w := newWorld(crowd(random(1), members, roles), roles)
		w.deal(func(int) int { return 0 })
		for b.Loop() {
			w.plan.Moves(0, w.holders, anything, roles)
		}
	})
}

// BenchmarkMovesOfAThousand measures the same with a thousand roles at a time.
func BenchmarkMovesOfAThousand(b *testing.B) {
	sizes(b, func(b *testing.B, members, roles int) {
		w := newWorld(crowd(random(1), members, roles), roles)
		w.deal(func(int) int { return 0 })
		for b.Loop() {
			w.plan.Moves(0, w.holders, anything, 1000)
		}
	})
}

// BenchmarkMovesOfNothing measures a call of Moves when all is level, which is made every second.
func BenchmarkMovesOfNothing(b *testing.B) {
	sizes(b, func(b *testing.B, members, roles int) {
		w := settled(random(1), members, roles)
		for b.Loop() {
			w.plan.Moves(0, w.holders, anything, roles)
		}
	})
}

// BenchmarkCaps measures a cold start, and then a look for moves, where a third of the members may have half a share.
func BenchmarkCaps(b *testing.B) {
	sizes(b, func(b *testing.B, members, roles int) {
		who := crowd(random(1), members, roles)
		for i := range members / 3 {
			who[i].Max = roles / members / 2
		}
		w := newWorld(who, roles)
		w.assign()
		vacant := upTo(roles)
		b.Run("start", func(b *testing.B) {
			for b.Loop() {
				New(who).Assign(vacant, nil)
			}
		})
		b.Run("look", func(b *testing.B) {
			for b.Loop() {
				w.plan.Moves(members-1, w.holders, anything, roles)
			}
		})
	})
}

// BenchmarkPreference measures a Preference with three kinds of roles and three of members.
func BenchmarkPreference(b *testing.B) {
	who := crowd(random(1), 100, 100_000)
	for i := range who {
		who[i].Prefs = make([]int32, 100_000)
		for role := range who[i].Prefs {
			if role%3 == i%3 {
				who[i].Prefs[role] = 1
			}
		}
	}
	vacant := upTo(100_000)
	b.ReportAllocs()
	for b.Loop() {
		New(who).Assign(vacant, nil)
	}
}

func BenchmarkRank(b *testing.B) {
	p := New(crowd(rand.New(rand.NewPCG(1, 1)), 100, 100_000))
	for role := 0; b.Loop(); role++ {
		p.Rank(role%100, 0, role%100_000)
	}
}

// BenchmarkWeights measures a cold start with weights by Zipf's law, and then looks for moves: when all is level, and of a
// member that leads everything.
func BenchmarkWeights(b *testing.B) {
	sizes(b, func(b *testing.B, members, roles int) {
		r := random(1)
		of := zipf(r, roles, 1_000_000)
		who, vacant := crowd(r, members, roles), upTo(roles)
		w := newWorld(who, roles).weighs(of)
		b.Run("start", func(b *testing.B) {
			for b.Loop() {
				Weighted(who, of).Assign(vacant, nil)
			}
		})
		w.assign()
		b.Run("look", func(b *testing.B) {
			for b.Loop() {
				w.plan.Moves(members-1, w.holders, anything, roles)
			}
		})
		w.deal(func(int) int { return 0 })
		b.Run("moves", func(b *testing.B) {
			for b.Loop() {
				w.plan.Moves(0, w.holders, anything, 10_000)
			}
		})
	})
}
