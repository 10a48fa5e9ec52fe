package fence

import (
	"errors"
	"fmt"
	"strings"
)

// maxKey is the length of the column, in bytes.
const maxKey = 255

// checkArguments refuses arguments that servers treat differently: some cut a long key to the
// length of its column, so that two roles would share a row.
func checkArguments(key string, token int64) error {
	var faults []error
	if key == "" || len(key) > maxKey {
		faults = append(faults, fmt.Errorf("fence: key has %d bytes, must have 1 to %d: %.40q", len(key), maxKey, key))
	}
	if token < 0 {
		faults = append(faults, fmt.Errorf("fence: token is %d, must not be negative; in non-exclusive mode there are no tokens", token))
	}
	return errors.Join(faults...)
}

// compare returns ErrStale if a term's token is lower than the one in the table. Otherwise the hold
// came before the claim. If that was committed meanwhile, both tokens are the same.
func compare(key string, token, stored int64) error {
	switch {
	case stored < token:
		return fmt.Errorf("fence: key %q: this term has not claimed: its token is %d, the newest claim's is %d", key, token, stored)
	case stored == token:
		return fmt.Errorf("fence: key %q: this term had not claimed yet: the claim of its token %d was committed during the hold", key, token)
	}
	return fmt.Errorf("%w: key %q: its token is %d, this one's is %d", ErrStale, key, stored, token)
}

func unclaimed(key string, token int64) error {
	return fmt.Errorf("fence: key %q: this term has not claimed: its token is %d, and nobody has claimed", key, token)
}

// failed adds what was being done to an error of the database, and the schema if the table is missing.
func failed(doing, key, name, schema string, err error) error {
	if noTable(err) {
		return fmt.Errorf("fence: %s of key %q: %w; make the table by fence.%s:\n%s", doing, key, err, name, schema)
	}
	return fmt.Errorf("fence: %s of key %q (%d bytes): %w", doing, key, len(key), err)
}

// noTable recognises a missing table: PostgreSQL's "undefined_table" by its SQLSTATE, which pgx and
// lib/pq return from a method, and MySQL's "no such table" by its driver's text.
func noTable(err error) bool {
	var coded interface{ SQLState() string }
	return errors.As(err, &coded) && coded.SQLState() == "42P01" || strings.Contains(err.Error(), "(42S02)")
}
