package term

import "github.com/goneli/neli/internal/clock"

// Counts says how many terms began and ended, whether or not the application was told, and of how
// many it was told.
type Counts struct {
	Started uint64
	Told    uint64
	Ended   [Fatal + 1]uint64 // by Reason
}

// Counts returns the counts so far. The caller must hold the arbiter's lock.
func (t *Table) Counts() Counts { return t.counts }

// Led returns how many units below a bound the application leads at time now. The caller must
// hold the arbiter's lock. The cost does not grow with the number of units, unless some of them
// lie beyond the bound.
func (t *Table) Led(now clock.Instant, below int) int {
	lines := t.lines.Load()
	if lines == nil || t.published.Load() == 0 {
		return 0
	}
	led := 0
	for p := range *lines {
		l := &(*lines)[p]
		switch {
		case len(l.units) == 0 || !t.fresh(l, now):
		case t.top <= below:
			led += len(l.units)
		default:
			for _, e := range l.units {
				if e.unit < below {
					led++
				}
			}
		}
	}
	return led
}
