package seeded

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
)

// Clock turns true time into the readings of one machine's clocks. The raw clock runs at 1 + Raw, and
// the others at that rate times 1 + Slew. While the rates stay the same, readings are linear in true
// time.
type Clock struct {
	At        clock.Instant // the readings when the present rates began; a machine without CLOCK_BOOTTIME has no Boot
	Raw, Slew float64       // rate errors since then
	Suspended bool          // Mono and Raw stand still
	Grain     time.Duration // what readings grow by at a time; 0: a nanosecond
	Paused    bool          // all clocks stand still, as when a hypervisor pauses the machine
	since     time.Duration // true time when the present rates began
}

// NewClock returns a clock that shows at at true time now.
func NewClock(now time.Duration, at clock.Instant) Clock { return Clock{At: at, since: now} }

// Read returns the readings at true time now.
func (c *Clock) Read(now time.Duration) clock.Instant {
	exact := float64(now-c.since) * (1 + c.Raw)
	raw, ordinary := time.Duration(exact).Truncate(c.Grain), time.Duration(exact*(1+c.Slew)).Truncate(c.Grain)
	at := c.At
	if c.Paused {
		return at
	}
	at.Wall = at.Wall.Add(ordinary)
	if at.Boot != 0 {
		at.Boot = at.Boot.Add(ordinary)
	}
	if !c.Suspended {
		at.Mono, at.Raw = at.Mono.Add(ordinary), at.Raw.Add(raw)
	}
	return at
}

// Piece begins a new stretch of time. Call it before a field changes.
func (c *Clock) Piece(now time.Duration) { c.At, c.since = c.Read(now), now }

// TrueIn estimates how long it takes until the ordinary clocks, or the raw one, have advanced by d.
func (c *Clock) TrueIn(d time.Duration, raw bool) time.Duration {
	rate := 1 + c.Raw
	if !raw {
		rate *= 1 + c.Slew
	}
	return time.Duration(float64(d)/rate) + 1
}

// Point draws a clock's first reading, so that no two agree.
func (w *World) Point() time.Duration {
	return time.Hour + time.Duration(w.R.Int64N(int64(1000*time.Hour)))
}

// Rates draws new rates of a clock, within ρ and σ.
func (w *World) Rates(c *Clock, rho, sigma float64) {
	c.Piece(w.Now)
	c.Raw = []float64{-rho, rho, 0}[w.R.IntN(3)]
	c.Slew = []float64{-sigma, sigma, 0, (2*w.R.Float64() - 1) * sigma}[w.R.IntN(4)]
}

// Deaths is how sentinels learn of deaths, and what else they do.
type Deaths struct {
	Sentinels      int           // their number
	Learns         time.Duration // how long after a death they learn of it, at most
	Looks          int           // how often they look for the roles of a dead process
	Lags           int64         // how many records a sentinel is behind, at most
	Nonsense, Gasp float64       // share of nonsensical Releases, and of deaths with records in flight
	Restarts       time.Duration // mean time between restarts of sentinels
}

// DrawDeaths draws how sentinels behave among leases that are about u long.
func DrawDeaths(r *rand.Rand, u time.Duration) Deaths {
	return Deaths{Sentinels: 1 + r.IntN(2), Learns: of(r, 0, u/1000, u/10, u, 10*u), Looks: of(r, 1, 3, 10, 40), Lags: of(r, int64(0), 0, 3, 20),
		Nonsense: of(r, 0, 0.2, 0.6), Gasp: of(r, 0, 0.5, 1), Restarts: u * time.Duration(of(r, 0, 2, 5))}
}

// Obituaries are the deaths that a sentinel was told of since it was started.
type Obituaries struct {
	Dead []string // the processes, in the order in which it was told
	Life int      // counts its starts
}

// Restart starts the sentinel without memory.
func (o *Obituaries) Restart() { *o = Obituaries{Life: o.Life + 1} }

// Has reports whether the sentinel was told of a process's death.
func (o *Obituaries) Has(process string) bool { return slices.Contains(o.Dead, process) }

// Bury tells a sentinel of a death, after some time, and lets it look again and again. It does not in one case
// of four, as if the sentinel had restarted since the process registered, nor if the sentinel restarts meanwhile.
func (w *World) Bury(process string, d Deaths, o *Obituaries, look func()) {
	if w.R.IntN(4) == 0 {
		return
	}
	at, life := w.Span(d.Learns), o.Life
	w.After(at, func() {
		if o.Life == life && !o.Has(process) {
			o.Dead = append(o.Dead, process)
		}
	})
	for range d.Looks {
		w.After(at, look)
		if w.R.IntN(3) == 0 {
			at += w.Spread(0.001, 10)
		} else {
			at += w.T / 4
		}
	}
}
