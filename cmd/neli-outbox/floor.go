package main

import (
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// floor is an id up to which a slot has no rows, and will have none. While a transaction is open
// elsewhere in the database, rows that are deleted stay in the index, and each look from its beginning would pass all
// of them.
//
// last is the newest id that the sequence had given out. A transaction that got an id up to last and is not yet over
// holds a lock of the table. When all such transactions are over, every row that will ever have such an id is visible.
// Then last becomes the floor, or the id below the lowest row that is left, for example a row that was set aside. If
// the server crashes, a prepared transaction keeps its lock, and gets another name, which begins with -1.
type floor struct {
	id      int64
	worth   int           // the number of deleted rows that makes it worth while to look for a higher floor
	pause   time.Duration // between attempts
	deleted int
	tried   time.Time
	full    time.Time // when the slot was last looked through from its beginning
	last    int64     // 0 if no attempt is under way
	holders []string  // transactions that were writing to the table when last was read
	found   *int64    // the floor that the present look has found
}

func newFloor() *floor { return &floor{worth: 1000, pause: time.Second} }

// fullAfter is how often a slot is looked through from its beginning. Such a look finds ids that
// went back without any other sign.
const fullAfter = 30 * time.Second

// start returns the floor of the next look.
func (f *floor) start(now time.Time) int64 {
	if now.Sub(f.full) >= fullAfter {
		f.full = now
		return 0
	}
	return f.id
}

const writers = `SELECT array_agg(virtualtransaction) FROM pg_locks WHERE relation = 'outbox'::regclass AND locktype = 'relation' AND granted
	AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND mode NOT IN ('AccessShareLock', 'RowShareLock')`

// queue adds to a look the statements that find a higher floor. They must come last in the look. Each statement sees
// what was committed before it: sessions are in READ COMMITTED.
func (f *floor) queue(batch *pgx.Batch, slot int, seen *look, now time.Time) {
	if f.found = nil; f.deleted < f.worth || now.Sub(f.tried) < f.pause {
		return
	}
	f.tried = now
	var holders []string
	batch.Queue(writers).QueryRow(func(r pgx.Row) error {
		err := r.Scan(&holders)
		if err == nil && f.last == 0 {
			f.last, f.holders = seen.last, holders
		}
		return err
	})
	if f.last == 0 {
		return
	}
	var lowest *int64
	batch.Queue("SELECT (SELECT id FROM outbox WHERE slot = $1 AND id > $2 ORDER BY id LIMIT 1)", slot, f.id).QueryRow(func(r pgx.Row) error {
		err := r.Scan(&lowest)
		if err == nil && !slices.ContainsFunc(holders, func(h string) bool { return slices.Contains(f.holders, h) || strings.HasPrefix(h, "-1/") }) {
			found := f.last
			if lowest != nil {
				found = min(found, *lowest-1)
			}
			f.found = &found
		}
		return err
	})
}

// saw notes a look that was committed, and how many rows it deleted. If ids went back, the floor is 0
// again, since new rows may come below it.
func (f *floor) saw(seen look, deleted int) {
	f.deleted += deleted
	if f.found != nil {
		f.id, f.last, f.holders, f.deleted = max(f.id, *f.found), 0, nil, 0
	}
	if seen.last < f.id || len(seen.rows) > 0 && seen.rows[0].id <= f.id {
		f.id, f.last, f.holders, f.deleted = 0, 0, nil, f.worth
	}
}
