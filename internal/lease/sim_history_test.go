package lease

import "time"

// SimRecord is a record of a simulation's log, for the test of package history.
type SimRecord struct {
	Offset int64
	At     time.Duration // true time
	Value  []byte
}

// SimLog runs a simulation, with one of the kinds of trouble of TestSimulation, and returns its log.
func SimLog(seed uint64, kind string) (records []SimRecord, deleted int64) {
	for _, p := range simProfiles {
		if p.name != kind {
			continue
		}
		w := newSimWorld(seed, p.draw)
		w.Run(w.pr.horizon, nil)
		for o, e := range w.log {
			if !e.gap {
				records = append(records, SimRecord{int64(o), e.at, e.value})
			}
		}
		return records, w.low
	}
	panic("no kind of trouble is called " + kind)
}
