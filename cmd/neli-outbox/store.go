package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/goneli/neli/fence"
)

// row is one row of the table.
type row struct {
	ref
	topic   string
	key     string
	payload []byte
	headers []header
	created time.Time
	bytes   int   // of its columns in the table, headers as JSON; these count for the limit of a batch
	fault   error // the reason why no record can be made of it; then it has no key, payload and headers
}

// ref names a row. An id alone is not enough, since ids go back if somebody sets the sequence, or restores the table.
// mark is the time of the database at which the row got its id, in microseconds.
type ref struct{ id, mark int64 }

// refsOf returns the names of rows.
func refsOf(rows []row) []ref {
	refs := make([]ref, len(rows))
	for i, r := range rows {
		refs[i] = r.ref
	}
	return refs
}

// columns returns the ids and the marks of rows, as arrays for the database.
func columns(refs []ref) (ids, marks []int64) {
	ids, marks = make([]int64, len(refs)), make([]int64, len(refs))
	for i, r := range refs {
		ids[i], marks[i] = r.id, r.mark
	}
	return ids, marks
}

// size returns its approximate size in a record.
func (r row) size() int {
	n := len(r.key) + len(r.payload)
	for _, h := range r.headers {
		n += len(h.name) + len(h.value)
	}
	return n
}

// header is one header of a record.
type header struct{ name, value string }

// headersOf reads the column of headers, sorted by name. A string stays as it is, and any other value becomes JSON.
func headersOf(column []byte) (out []header, err error) {
	var object map[string]json.RawMessage
	if column != nil {
		err = json.Unmarshal(column, &object)
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		value := string(object[name])
		if value[0] == '"' {
			err = errors.Join(err, json.Unmarshal(object[name], &value))
		}
		out = append(out, header{name, value})
	}
	return out, err
}

// limits bound a batch: a batch has at least one row, however large that is.
type limits struct {
	rows  int
	bytes int
}

// store is the table outbox.
type store struct {
	pool     *pgxpool.Pool
	record   int    // of a row with more bytes, key, payload and headers are not read; 0: no limit
	sequence string // its name as in SQL
}

// look is what one transaction has seen of a slot.
type look struct {
	rows  []row
	last  int64 // the last id that the sequence gave out
	clock int64 // the time of the database after the rows were read, in microseconds
}

// errSchema says that the table is missing, or something else that the relay's promises need.
var errSchema = errors.New("the table outbox is not as `neli-outbox schema` prints it")

// slots returns the number of slots. Without the trigger rows would have no order, so its absence is an error.
func (s *store) slots(ctx context.Context) (int, error) {
	var args []byte
	var enabled string
	err := s.pool.QueryRow(ctx, `SELECT tgargs, tgenabled::text FROM pg_trigger
		WHERE tgrelid = to_regclass('outbox') AND tgname = 'outbox_order' AND NOT tgisinternal`).Scan(&args, &enabled)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		var table bool
		if err := s.pool.QueryRow(ctx, "SELECT to_regclass('outbox') IS NOT NULL").Scan(&table); err != nil {
			return 0, err
		}
		if !table {
			return 0, fmt.Errorf("%w: there is no table outbox in the search path", errSchema)
		}
		return 0, fmt.Errorf("%w: the trigger outbox_order is missing, so rows have no order", errSchema)
	case err != nil:
		return 0, err
	case enabled != "O" && enabled != "A":
		return 0, fmt.Errorf("%w: the trigger outbox_order is disabled, so rows have no order", errSchema)
	}
	n, err := strconv.Atoi(string(args[:max(0, len(args)-1)])) // each argument ends with a zero byte
	if err != nil || n < 1 || n > mostSlots {
		return 0, fmt.Errorf("%w: the argument of the trigger outbox_order is %.40q, must be the number of slots, 1 to %d", errSchema, args, mostSlots)
	}
	return n, s.parts(ctx)
}

// parts checks the other parts of the schema that the relay needs.
func (s *store) parts(ctx context.Context) error {
	var columns int
	var ascends, cycles *bool
	var cache *int64
	err := s.pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM pg_attribute WHERE attrelid = c.oid AND attname IN ('mark', 'digest') AND NOT attisdropped),
			format('%I.outbox_id', nspname), seqincrement > 0, seqcycle, seqcache
		FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace LEFT JOIN pg_sequence ON seqrelid = to_regclass(format('%I.outbox_id', nspname))
		WHERE c.oid = to_regclass('outbox')`).Scan(&columns, &s.sequence, &ascends, &cycles, &cache)
	switch {
	case err != nil:
		return err
	case columns < 2:
		return fmt.Errorf("%w: it is of an earlier version: stop the relays, and run `neli-outbox schema` with the same --slots again", errSchema)
	case cache == nil:
		return fmt.Errorf("%w: the sequence outbox_id is not in the schema of the table", errSchema)
	case !*ascends || *cycles || *cache != 1:
		return fmt.Errorf("%w: the sequence outbox_id must have CACHE 1, NO CYCLE and a positive INCREMENT, or ids are not in the order of commits", errSchema)
	}
	return nil
}

// eligible selects the rows of a slot that may be published next. If a row of a key was set aside, the key's later rows
// wait, since they must not overtake it. (NOT EXISTS would mean the same, but the planner makes it a join with the
// whole table.) A batch that is under way is left out by its rows' names, and not by the highest of them: a row with a
// lower id may have become visible since, and must precede later rows of its key.
const eligible = `FROM outbox o
		WHERE slot = $1 AND id > $4 AND failed IS NULL AND (id, mark) NOT IN (SELECT unnest($2::bigint[]), unnest($3::bigint[])) AND (
			digest <> ALL (ARRAY(SELECT f.digest FROM outbox f WHERE f.slot = $1 AND f.failed IS NOT NULL)) OR
			(SELECT bool_and(f.id > o.id) FROM outbox f WHERE f.slot = $1 AND f.digest = o.digest AND f.failed IS NOT NULL))
		ORDER BY id`

// If a row is larger than a record may be, its columns stay in the database. Tables of earlier versions accept
// times that are not finite, which a record cannot have.
const nextRows = `
SELECT id, mark, bytes, left(topic, 300), CASE WHEN fits THEN key END, CASE WHEN fits THEN payload END, CASE WHEN fits THEN headers END,
	CASE WHEN isfinite(created) THEN created ELSE now() END FROM (
	SELECT *, bytes <= $7 AS fits, sum(bytes) OVER (ORDER BY id) - bytes AS before FROM (
		SELECT *, coalesce(octet_length(topic), 0)::bigint + coalesce(octet_length(key), 0) + coalesce(octet_length(payload), 0) + coalesce(octet_length(headers::text), 0) AS bytes ` + eligible + `
		LIMIT $5) AS first) AS measured
WHERE before < $6 ORDER BY id`

const firstRow = "SELECT id, mark " + eligible + " LIMIT 1"

// A row is deleted by its name, since another row may have its id if ids went back.
const deleteRows = `DELETE FROM outbox WHERE slot = $1 AND id = ANY($2) AND (id, mark) IN (SELECT unnest($2::bigint[]), unnest($3::bigint[]))`

// next returns the next rows of a slot in their order, without those under way, and deletes the published rows. For one
// key, rows that were committed earlier come first: they have lower ids, and the statement sees them.
//
// It deletes after reading. If this process is suspended, PostgreSQL waits for it within the statement whose rows it is
// sending, and no time-out of the server ends that. Locks of deleted rows must not be held at that time, since the next
// leader also deletes these rows.
func (s *store) next(ctx context.Context, slot int, published, underway []ref, most limits, above *floor) (look, error) {
	var batch pgx.Batch // one round trip, one transaction
	var seen look
	ids, marks := columns(slices.Concat(published, underway))
	record := cmp.Or(s.record, math.MaxInt)
	batch.Queue(nextRows, slot, ids, marks, above.start(time.Now()), most.rows, most.bytes, record).Query(func(found pgx.Rows) (err error) {
		if seen.rows, err = pgx.CollectRows(found, func(r pgx.CollectableRow) (row, error) { return s.read(r, record) }); err != nil {
			err = readError{err}
		}
		return err
	})
	batch.Queue("SELECT last_value - (NOT is_called)::int, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM " + cmp.Or(s.sequence, "outbox_id")).
		QueryRow(func(r pgx.Row) error { return r.Scan(&seen.last, &seen.clock) })
	if len(published) > 0 {
		ids, marks := columns(published)
		batch.Queue(deleteRows, slot, ids, marks)
	}
	above.queue(&batch, slot, &seen, time.Now())
	err := s.pool.SendBatch(ctx, &batch).Close() // sets seen; in a return statement, Go may read it before
	if err == nil {
		above.saw(seen, len(published))
	}
	return seen, err
}

// read reads a row. What is wrong with the row itself becomes its fault, and not an error.
func (s *store) read(r pgx.CollectableRow, record int) (out row, err error) {
	var topic, key *string
	var headers []byte
	if err = r.Scan(&out.id, &out.mark, &out.bytes, &topic, &key, &out.payload, &headers, &out.created); err != nil {
		return out, err
	}
	if topic != nil {
		out.topic = *topic
	}
	if out.bytes > record {
		out.fault = fmt.Errorf("%w: topic, key, payload and headers have %d bytes, --max-record-bytes is %d", kerr.MessageTooLarge, out.bytes, record)
		return out, nil
	}
	if key != nil {
		out.key = *key
	}
	if out.headers, err = headersOf(headers); err != nil {
		out = row{ref: out.ref, topic: out.topic, created: out.created, bytes: out.bytes, fault: fmt.Errorf("its headers: %w", err)}
	}
	return out, nil
}

// first returns the name of the first row that next would return, without reading anything else of it.
func (s *store) first(ctx context.Context, slot int, published, underway []ref) (out ref, err error) {
	ids, marks := columns(slices.Concat(published, underway))
	err = s.pool.QueryRow(ctx, firstRow, slot, ids, marks, 0).Scan(&out.id, &out.mark)
	return out, err
}

// claimAndDelete claims first, and deletes nothing if that fails. It holds the claim's lock until both are committed.
const claimAndDelete = `WITH claim AS (` + fence.Claim + ` RETURNING token),
	gone AS (DELETE FROM outbox WHERE slot = $3 AND id = ANY($4) AND (id, mark) IN (SELECT unnest($4::bigint[]), unnest($5::bigint[])) AND EXISTS (SELECT FROM claim))
SELECT count(*) FROM claim`

// claim makes a term the newest one of its key. After it has returned, no deletion of an earlier term can commit.
func (s *store) claim(ctx context.Context, key string, token int64) error {
	return s.deleteClaimed(ctx, key, token, 0, nil)
}

// deleteClaimed deletes rows if no later term has claimed. It returns fence.ErrStale if one has.
func (s *store) deleteClaimed(ctx context.Context, key string, token int64, slot int, rows []ref) error {
	ids, marks := columns(rows)
	return s.claimed(ctx, key, token, claimAndDelete, slot, ids, marks)
}

// claimAndSetAside claims first, and sets no row aside if that fails.
const claimAndSetAside = `WITH claim AS (` + fence.Claim + ` RETURNING token),
	aside AS (UPDATE outbox SET failed = $6 WHERE slot = $3 AND id = $4 AND mark = $5 AND EXISTS (SELECT FROM claim))
SELECT count(*) FROM claim`

// setAsideClaimed is setAside if no later term has claimed. It returns fence.ErrStale if one has.
func (s *store) setAsideClaimed(ctx context.Context, key string, token int64, slot int, bad ref, why string) error {
	return s.claimed(ctx, key, token, claimAndSetAside, slot, bad.id, bad.mark, why)
}

// claimed executes a statement that begins with a claim. It returns fence.ErrStale if a later term has claimed.
func (s *store) claimed(ctx context.Context, key string, token int64, statement string, args ...any) error {
	var claims int
	if err := s.pool.QueryRow(ctx, statement, slices.Concat([]any{key, token}, args)...).Scan(&claims); err != nil {
		return err
	}
	if claims == 0 {
		return fmt.Errorf("%w: key %q, token %d", fence.ErrStale, key, token)
	}
	return nil
}

// setAside records why a row cannot be published. Its key waits until a person corrects or deletes the row.
func (s *store) setAside(ctx context.Context, slot int, bad ref, why string) error {
	_, err := s.pool.Exec(ctx, "UPDATE outbox SET failed = $4 WHERE slot = $1 AND id = $2 AND mark = $3", slot, bad.id, bad.mark, why)
	return err
}

// passing reports whether an error of the database may be over soon: the database is not reachable, is starting or was
// replaced, or another transaction was in the way. Any other error, such as a missing right, needs a person to fix it.
func passing(err error) bool {
	if _, unreadable := errors.AsType[pgx.ScanArgError](err); unreadable || errors.Is(err, errPooler) || refusedParameter(err) {
		return false
	}
	refusal, answered := errors.AsType[*pgconn.PgError](err)
	if !answered {
		return !errors.Is(err, fence.ErrStale) && !errors.Is(err, errSchema)
	}
	switch class(refusal) {
	case "08", "40", "53", "57", "58": // connection, rollback, resources, operator, system
		return true
	}
	return refusal.Code == "25006" // read-only: a standby that is not yet a primary, or a primary that no longer is one
}

// readError is an error of reading rows, and not of the deletion of others in the same look.
type readError struct{ error }

func (e readError) Unwrap() error { return e.error }

// ofARow reports whether an error comes from what is in a row: a value that the server or this program cannot convert, that is
// too large for it, or whose page is damaged.
func ofARow(err error) bool {
	if _, reading := errors.AsType[readError](err); !reading {
		return false
	}
	if _, unreadable := errors.AsType[pgx.ScanArgError](err); unreadable {
		return true
	}
	refusal, answered := errors.AsType[*pgconn.PgError](err)
	if !answered {
		return false
	}
	switch class(refusal) {
	case "22", "54", "XX": // data, limits of the program, internal
		return true
	}
	return false
}

// noTable reports whether the table, or a part of it, is missing, as while somebody restores it.
func noTable(err error) bool {
	refusal, answered := errors.AsType[*pgconn.PgError](err)
	return answered && slices.Contains([]string{"42P01", "42703", "42883", "3F000"}, refusal.Code)
}

func class(refusal *pgconn.PgError) string { return refusal.Code[:min(2, len(refusal.Code))] }
