package seeded

import (
	"math/rand/v2"
	"slices"
	"time"
)

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

// Bury tells a sentinel of a death, after some time, and lets it look again and again. A sentinel that
// was restarted since the process registered is never told.
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
