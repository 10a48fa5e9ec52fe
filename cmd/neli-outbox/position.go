package main

import (
	"errors"
	"fmt"
)

// position is how far a slot has been read. It does not decide which rows are published. It only shows that ids went
// back: after a restore of the table, after setval, or in another database under the same name.
type position struct {
	top  int64 // the highest id that was read
	seen int64 // the time of the database after that, in microseconds
}

// errWentBack says that a row may have an id that another row had before. Then the order of ids is not that of commits,
// and readers that know a higher id of the row's key would drop its record.
var errWentBack = errors.New("ids of the table went back: the sequence was set, the table was restored, or it is another database's")

// after returns the position after a look, or the reason why the slot must not be published.
//
// A row that becomes visible late may have a lower id than top. But it got its id before the row top got its own, so
// its mark is not later than the time at which top was read. And the sequence is never behind an id that it gave out.
func (p position) after(l look) (position, error) {
	next := p
	for _, r := range l.rows {
		if r.id <= p.top && r.mark > p.seen {
			return p, p.wentBack(fmt.Sprintf("row %d was inserted after row %d had been read", r.id, p.top), p.top)
		}
		if r.id > next.top {
			next = position{r.id, l.clock}
		}
	}
	if l.last < next.top {
		return p, p.wentBack(fmt.Sprintf("row %d was read, and the sequence outbox_id is at %d", next.top, l.last), next.top)
	}
	return next, nil
}

func (position) wentBack(evidence string, top int64) error {
	return fmt.Errorf("%w: %s. Nothing of this slot is published until all rows have new ids: type SELECT outbox_renumber(%d) in the database, "+
		"as the table's owner. Rows that were published before a table was restored will be published again: delete them first if you know them", errWentBack, evidence, top)
}

// later returns the position that is further ahead.
func (p position) later(q position) position {
	if q.top > p.top {
		return q
	}
	return p
}
