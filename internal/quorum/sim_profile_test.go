package quorum

import (
	"math/rand/v2"
	"time"

	"github.com/goneli/neli/internal/clock"
)

// simT is the lease of everybody in a simulation.
const simT = time.Second

// simProfile is what one simulation is like. It is drawn per seed, so that each has
// another mixture of trouble, and some have little of most.
type simProfile struct {
	horizon time.Duration
	limit   int // of events
	logs    int
	procs   int
	roles   int

	rho, sigma float64       // clocks
	wall       time.Duration // how far a wall clock may be off

	lag, slow int // latency class of answers and appends
	heavy     float64
	drop      float64 // records that are lost
	silent    float64 // of those, without a report
	double    float64
	ordered   bool    // the appends of one sender
	tops      bool    // a log tells the largest ballot that it was given
	keeps     bool    // a log keeps, and readers skip, what was meant for a former incarnation
	lose      float64 // who was paused loses some records of a log that were waiting for it, without a word

	pause, crash, cut, wish, jump, remove time.Duration // mean times between these
	down, forget, forgetAll               time.Duration // of a log: stops, restarts empty, all of them at once

	beat     float64 // interval, in T
	late     time.Duration
	jitter   time.Duration // contests
	trip     time.Duration // what patience is measured by
	snapshot float64
	rogue    bool // claims and lets go of single logs at random
	equal    bool // when it is calm all have the same rank and no jitter
	misread  bool // somebody's fold will be another one: what follows from that is counted
	wanting  float64
	wantAll  bool
	tail     int64 // a process begins that far from the end

	sentinels      int           // beside the processes
	learns         time.Duration // of a death, after it
	looks          int           // for what a dead process holds
	lags           int64         // records that a sentinel is behind
	nonsense, gasp float64       // Releases that are, deaths with something on its way
	restarts       time.Duration // of sentinels
}

func of[E any](r *rand.Rand, all ...E) E { return all[r.IntN(len(all))] }

// plainProfile is anything.
func plainProfile(r *rand.Rand) simProfile {
	times := func(n ...int) time.Duration { return simT * time.Duration(of(r, n...)) }
	p := simProfile{
		horizon: 12 * simT, limit: 60_000,
		logs: of(r, 3, 3, 3, 3, 5, 1), procs: 2 + r.IntN(3), roles: 1 + r.IntN(4),
		rho: of(r, 0.0005, 0.05, 0.2), sigma: of(r, 0, clock.Sigma, clock.Sigma), wall: simT * 45 / 100,
		lag: r.IntN(4), slow: r.IntN(4), heavy: of(r, 0, 0.02, 0.1, 0.3),
		drop: of(r, 0, 0.02, 0.3), silent: of(r, 0, 0.1, 0.5), double: of(r, 0, 0, 0.1, 0.4), ordered: r.IntN(3) == 0, keeps: r.IntN(2) == 0, tops: r.IntN(3) == 0,
		pause: times(0, 1, 3, 10), crash: times(0, 0, 5, 20), cut: times(0, 2, 10), wish: times(0, 1, 5, 20),
		jump: times(0, 0, 5, 20), remove: times(0, 5, 20), down: times(0, 3, 10), forget: times(0, 2, 5, 20), forgetAll: times(0, 0, 5, 20),
		beat: of(r, 0.1, 0.2, 0.33, 0.5), late: of(r, 0, 0, simT/100, simT/4), jitter: of(r, 0, 0, simT/50, simT/3),
		trip: simT / time.Duration(of(r, 200, 40, 8)), snapshot: of(r, 0, 0, 0.02, 0.1, 0.3), rogue: r.IntN(3) == 0,
		wanting: of(r, 0.3, 0.7, 1), wantAll: r.IntN(3) == 0, tail: of(r, int64(0), 1, 3, 10, 1<<30),
	}
	if r.IntN(3) > 0 { // a milder world: more terms
		p.heavy, p.drop, p.lag, p.slow, p.rogue = of(r, 0, 0.02), of(r, 0, 0.02), r.IntN(3), r.IntN(3), false
		p.pause, p.forget, p.down, p.jump = 3*p.pause, 3*p.forget, 2*p.down, 2*p.jump
	}
	return p
}

// huntProfile is made for races for tokens: short terms, records late and twice, many who
// join, logs that forget.
func huntProfile(r *rand.Rand) simProfile {
	p := plainProfile(r)
	times := func(n ...int) time.Duration { return simT * time.Duration(of(r, n...)) }
	p.horizon = 10 * simT
	p.logs, p.procs, p.roles = of(r, 1, 3, 3), 3, 1+r.IntN(3)
	p.rho = of(r, 0, 0.0005)
	p.beat = of(r, 0.2, 0.45)
	p.lag, p.slow = 1+r.IntN(2), 1+r.IntN(2)
	p.heavy, p.drop, p.double, p.ordered = of(r, 0.02, 0.1), of(r, 0, 0.02), of(r, 0.1, 0.4), false
	p.pause, p.crash, p.cut = times(0, 5), times(0, 5), 0
	p.wish, p.wantAll = times(1, 2)/3, false
	p.jump, p.remove, p.down, p.forget, p.forgetAll = times(0, 5), 0, 0, times(0, 5), 0
	p.tail, p.snapshot = of(r, int64(0), 1, 3), of(r, 0.05, 0.3)
	p.rogue, p.late, p.jitter, p.trip = r.IntN(2) == 0, 0, of(r, 0, simT/50), simT/40
	return p
}

// lossyProfile has links that lose records when their process was suspended.
func lossyProfile(r *rand.Rand) simProfile {
	p := plainProfile(r)
	p.pause, p.lose = simT*time.Duration(of(r, 1, 3)), of(r, 0.1, 0.5, 1)
	return p
}

// simProfiles by the name of the test that runs them.
var simProfiles = []struct {
	name  string
	seeds int
	draw  func(*rand.Rand) simProfile
}{
	{"plain", 1000, plainProfile},
	{"hunt", 400, huntProfile},
	{"lossy", 400, lossyProfile},
}
