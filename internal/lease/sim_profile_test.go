package lease

import (
	"math/rand/v2"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/seeded"
)

// simProfile holds the parameters of one simulation. They are drawn per seed, so that each seed
// has another mixture of trouble, and some have little.
type simProfile struct {
	unit    time.Duration // about a T; other times are multiples of it
	horizon time.Duration
	limit   int // of events
	procs   int
	roles   int
	ts      []time.Duration // the leases that a booting process chooses from

	rho, sigma float64 // clocks
	drift      time.Duration
	step       time.Duration

	seeded.Network
	seeded.Deaths

	pause, crash, cut, wish, jump, remove, noise time.Duration // mean times between these
	elect, lose                                  time.Duration // elections; losses of all records or, with loseTail, of the last ones
	loseTail, origin                             bool          // origin: readers tell whether they read from the log's origin

	newer  float64 // probability that a booting process runs version 2
	olden  float64 // share of its Releases, Snapshots and Hellos that it writes in version 1
	opaque bool    // some records are of newer versions that no process here has

	beat     float64 // interval, in T
	retry    time.Duration
	late     time.Duration // delay of ticks
	jitter   time.Duration // delay of claims
	snapshot float64
	chatter  float64
	eager    float64
	hasty    float64
	wanting  float64
	wantAll  bool
	tail     int64   // a process begins up to that far from the end
	full     float64 // probability that it begins at offset 0
}

func of[E any](r *rand.Rand, all ...E) E { return all[r.IntN(len(all))] }

// plainProfile has every kind of trouble.
func plainProfile(r *rand.Rand) simProfile {
	u := scale(r)
	times := func(n ...int) time.Duration { return u * time.Duration(of(r, n...)) }
	p := simProfile{
		unit: u, horizon: 10 * u, limit: 60_000,
		procs: 2 + r.IntN(4), roles: 1 + r.IntN(6),
		rho: of(r, 0.0005, 0.05, 0.2), sigma: of(r, 0, clock.Sigma, clock.Sigma),
		Network: seeded.DrawNetwork(r),
		pause:   times(0, 1, 3, 10), crash: times(0, 3, 5, 20), cut: times(0, 2, 10), wish: times(0, 1, 5, 20),
		jump: times(0, 0, 2, 10), remove: times(0, 5, 20), noise: times(0, 1, 5), step: times(0, 0, 5), drift: times(0, 1) / 2,
		newer: of(r, 0, 0, 0.2, 0.5, 0.8), olden: of(r, 0, 0.5, 1), opaque: r.IntN(4) == 0,
		beat: of(r, 0.1, 0.2, 0.33, 0.5), retry: u * time.Duration(of(r, 5, 30, 100, 200)) / 100,
		late: of(r, 0, 0, u/100, u/4), jitter: of(r, 0, 0, u/50, u/3),
		snapshot: of(r, 0, 0, 0.02, 0.1, 0.3), chatter: of(r, 0, 0.3, 1), eager: of(r, 0.3, 0.7, 1), hasty: of(r, 0, 0.1),
		wanting: 0.5, wantAll: r.IntN(3) == 0, tail: of(r, int64(0), 1, 3, 10, 30, 1<<30), full: of(r, 0, 0, 0.2, 1),
	}
	if r.IntN(4) > 0 {
		p.procs = max(p.procs, 3)
	}
	p.ts = leases(r, u)
	return p
}

// scale returns a unit of time. Mostly the longest lease, of five units, is as long as the longest
// one allowed, so that a process that does not know the fold waits no longer than necessary. At
// times leases are much shorter, as in practice.
func scale(r *rand.Rand) time.Duration {
	return clock.Tmax / time.Duration(of(r, 5, 5, 5, 8, 60))
}

// leases returns leases that are all equal, or between 0.2 and 5 units.
func leases(r *rand.Rand, u time.Duration) []time.Duration {
	low, high := u*time.Duration(of(r, 20, 50, 100))/100, u*time.Duration(of(r, 100, 200, 500))/100
	ts := of(r, []time.Duration{u}, []time.Duration{low, high}, []time.Duration{low, low, low, high},
		[]time.Duration{low, (low + high) / 2, high, low + time.Duration(r.Int64N(int64(high-low)+1))})
	for i := range ts {
		ts[i] = min(ts[i], clock.Tmax)
	}
	return ts
}

// huntProfile is for races in which several things go wrong within a few round trips: records
// late, twice and out of order, Snapshots, many sessions.
func huntProfile(r *rand.Rand) simProfile {
	p := plainProfile(r)
	u := p.unit
	p.procs, p.roles = 3+r.IntN(2), 1+r.IntN(3)
	p.rho = of(r, 0.0005, 0.0005, 0.05)
	p.beat, p.retry = of(r, 0.2, 0.45, 0.7), u*time.Duration(of(r, 5, 30))/100
	p.Lag, p.Slow, p.Heavy, p.Ordered = 1+r.IntN(3), 1+r.IntN(3), of(r, 0.05, 0.2), false
	p.Drop, p.Double = of(r, 0, 0.05), of(r, 0.1, 0.4)
	p.pause, p.crash, p.cut = u*time.Duration(of(r, 0, 2, 5)), u*time.Duration(of(r, 0, 5)), 0
	p.wish, p.jump = u*time.Duration(of(r, 1, 1, 3))/2, u*time.Duration(of(r, 0, 2, 5))
	p.tail, p.snapshot = of(r, int64(0), 1, 3, 10), of(r, 0, 0.03, 0.2)
	p.chatter, p.eager, p.wantAll, p.full = 1, of(r, 0.3, 1), false, 0
	return p
}

// freshProfile has only the longest lease allowed, and only version 1. It is for fresh Claims of
// several unknown processes, with late records.
func freshProfile(r *rand.Rand) simProfile {
	p := huntProfile(r)
	p.unit, p.horizon = clock.Tmax, 10*clock.Tmax
	p.ts, p.newer, p.opaque = []time.Duration{clock.Tmax}, 0, false
	u := p.unit
	p.retry, p.late, p.jitter = u*time.Duration(of(r, 5, 30))/100, of(r, 0, 0, u/100, u/4), of(r, 0, 0, u/50, u/3)
	p.pause, p.crash, p.noise, p.step, p.drift = u*time.Duration(of(r, 0, 2, 5)), u*time.Duration(of(r, 0, 5)), 0, 0, 0
	p.wish, p.jump, p.remove = u*time.Duration(of(r, 1, 1, 3))/2, u*time.Duration(of(r, 0, 2, 5)), 0
	return p
}

// manyProfile has thousands of roles: Claims, Releases and Snapshots of several records.
func manyProfile(r *rand.Rand) simProfile {
	p := plainProfile(r)
	p.roles = of(r, 1500, 4000, 24_000)
	p.limit = 600
	if p.roles < 10_000 {
		p.limit = 2000
	}
	p.procs, p.newer = 2+r.IntN(3), 0
	p.wanting, p.tail, p.full, p.chatter = of(r, 0.1, 0.5), 30, 0.5, 0.3
	p.horizon, p.snapshot = 6*p.unit, of(r, 0.1, 0.3)
	p.Lag, p.Slow = min(p.Lag, 2), min(p.Slow, 2)
	return p
}

// simProfiles has a profile for each subtest.
var simProfiles = []struct {
	name  string
	seeds int // by default; thousands of roles are slow, so few seeds have them
	draw  func(*rand.Rand) simProfile
}{
	{"plain", 1500, plainProfile},
	{"hunt", 1500, huntProfile},
	{"fresh", 1500, freshProfile},
	{"many", 100, manyProfile},
	{"origin", 1500, originProfile},
}
