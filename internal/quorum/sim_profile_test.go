package quorum

import (
	"math/rand/v2"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/seeded"
)

// simT is the lease of all processes in a simulation.
const simT = time.Second

// simProfile holds the parameters of one simulation. They are drawn per seed, so that each seed
// has another mixture of trouble, and some have little.
type simProfile struct {
	horizon time.Duration
	limit   int // of events
	logs    int
	procs   int
	roles   int

	rho, sigma float64       // clocks
	wall       time.Duration // how far a wall clock may be off

	seeded.Network
	seeded.Deaths
	move  *simMove // the list changes; nil: it does not
	tops  bool     // a log reports the largest ballot appended to it
	keeps bool     // a log keeps records meant for a former incarnation, and readers skip them
	lose  float64  // probability that a process, after a pause, silently loses some records that were waiting for it

	pause, crash, cut, wish, jump, remove time.Duration // mean times between these
	down, forget, forgetAll               time.Duration // a log stops, or restarts empty; or all of them do at once

	beat     float64 // interval, in T
	late     time.Duration
	jitter   time.Duration // delay of contests
	trip     time.Duration // round trip by which the policy is timed
	snapshot float64
	rogue    bool // claims and releases on single logs at random
	equal    bool // in a calm world all processes have the same rank and no jitter
	misread  bool // a process will misread a record; the consequences are counted
	wanting  float64
	wantAll  bool
	tail     int64 // a process begins up to that far from the end
}

func of[E any](r *rand.Rand, all ...E) E { return all[r.IntN(len(all))] }

// plainProfile has every kind of trouble.
func plainProfile(r *rand.Rand) simProfile {
	times := func(n ...int) time.Duration { return simT * time.Duration(of(r, n...)) }
	p := simProfile{
		horizon: 12 * simT, limit: 60_000,
		logs: of(r, 3, 3, 3, 3, 5, 1), procs: 2 + r.IntN(3), roles: 1 + r.IntN(4),
		rho: of(r, 0.0005, 0.05, 0.2), sigma: of(r, 0, clock.Sigma, clock.Sigma), wall: simT * 45 / 100,
		Network: seeded.DrawNetwork(r), keeps: r.IntN(2) == 0, tops: r.IntN(3) == 0,
		pause: times(0, 1, 3, 10), crash: times(0, 0, 5, 20), cut: times(0, 2, 10), wish: times(0, 1, 5, 20),
		jump: times(0, 0, 5, 20), remove: times(0, 5, 20), down: times(0, 3, 10), forget: times(0, 2, 5, 20), forgetAll: times(0, 0, 5, 20),
		beat: of(r, 0.1, 0.2, 0.33, 0.5), late: of(r, 0, 0, simT/100, simT/4), jitter: of(r, 0, 0, simT/50, simT/3),
		trip: simT / time.Duration(of(r, 200, 40, 8)), snapshot: of(r, 0, 0, 0.02, 0.1, 0.3), rogue: r.IntN(3) == 0,
		wanting: of(r, 0.3, 0.7, 1), wantAll: r.IntN(3) == 0, tail: of(r, int64(0), 1, 3, 10, 1<<30),
	}
	if r.IntN(3) > 0 { // a milder world, with more terms
		p.Heavy, p.Drop, p.Lag, p.Slow, p.rogue = of(r, 0, 0.02), of(r, 0, 0.02), r.IntN(3), r.IntN(3), false
		p.pause, p.forget, p.down, p.jump = 3*p.pause, 3*p.forget, 2*p.down, 2*p.jump
	}
	return p
}

// huntProfile is for races for tokens: short terms, records late and twice, many newcomers, logs that forget.
func huntProfile(r *rand.Rand) simProfile {
	p := plainProfile(r)
	times := func(n ...int) time.Duration { return simT * time.Duration(of(r, n...)) }
	p.horizon = 10 * simT
	p.logs, p.procs, p.roles = of(r, 1, 3, 3), 3, 1+r.IntN(3)
	p.rho = of(r, 0, 0.0005)
	p.beat = of(r, 0.2, 0.45)
	p.Lag, p.Slow = 1+r.IntN(2), 1+r.IntN(2)
	p.Heavy, p.Drop, p.Double, p.Ordered = of(r, 0.02, 0.1), of(r, 0, 0.02), of(r, 0.1, 0.4), false
	p.pause, p.crash, p.cut = times(0, 5), times(0, 5), 0
	p.wish, p.wantAll = times(1, 2)/3, false
	p.jump, p.remove, p.down, p.forget, p.forgetAll = times(0, 5), 0, 0, times(0, 5), 0
	p.tail, p.snapshot = of(r, int64(0), 1, 3), of(r, 0.05, 0.3)
	p.rogue, p.late, p.jitter, p.trip = r.IntN(2) == 0, 0, of(r, 0, simT/50), simT/40
	return p
}

// lossyProfile has links that lose records while their process is suspended.
func lossyProfile(r *rand.Rand) simProfile {
	p := plainProfile(r)
	p.pause, p.lose = simT*time.Duration(of(r, 1, 3)), of(r, 0.1, 0.5, 1)
	return p
}

// simProfiles has a profile for each subtest.
var simProfiles = []struct {
	name  string
	seeds int
	draw  func(*rand.Rand) simProfile
}{
	{"plain", 1000, plainProfile},
	{"hunt", 400, huntProfile},
	{"lossy", 400, lossyProfile},
}
