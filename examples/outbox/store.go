package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/goneli/neli/fence"
)

// row is one row of the table.
type row struct {
	id      int64
	topic   string
	key     string
	payload []byte
	headers []header
	created time.Time
	bytes   int // what counts for the limit of a batch
}

// size returns its approximate size in a record.
func (r row) size() int {
	n := len(r.key) + len(r.payload)
	for _, h := range r.headers {
		n += len(h.name) + len(h.value)
	}
	return n
}

// header is a header of a record.
type header struct{ name, value string }

// headersOf reads the column of headers, sorted by name: a string as it is, any other value as JSON.
func headersOf(object map[string]json.RawMessage) (out []header, err error) {
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
	pool *pgxpool.Pool
}

// errSchema says that the table is missing, or something that its promises need.
var errSchema = errors.New("the table outbox is not as `outbox schema` prints it")

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
		return 0, fmt.Errorf("%w: the argument of the trigger outbox_order is %q, must be the number of slots, 1 to %d", errSchema, args, mostSlots)
	}
	return n, nil
}

// If a row of a key was set aside, the key's later rows wait, since they must not overtake it. (NOT EXISTS would mean the
// same, but the planner makes it a join with the whole table.) A batch that is under way is left out by its ids, not by the
// highest of them: a row with a lower id may have become visible since, and must precede later rows of its key. A time that is
// not finite, which tables of earlier versions accept, is none that a record can have.
const nextRows = `
SELECT id, topic, key, payload, headers, CASE WHEN isfinite(created) THEN created ELSE now() END, bytes FROM (
	SELECT *, sum(bytes) OVER (ORDER BY id) - bytes AS before FROM (
		SELECT *, octet_length(key) + coalesce(octet_length(payload), 0) + coalesce(octet_length(headers::text), 0) AS bytes FROM outbox o
		WHERE slot = $1 AND failed IS NULL AND id NOT IN (SELECT unnest($4::bigint[])) AND (
			key <> ALL (ARRAY(SELECT f.key FROM outbox f WHERE f.slot = $1 AND f.failed IS NOT NULL)) OR
			(SELECT bool_and(f.id > o.id) FROM outbox f WHERE f.slot = $1 AND f.key = o.key AND f.failed IS NOT NULL))
		ORDER BY id LIMIT $2) AS first) AS measured
WHERE before < $3 ORDER BY id`

const deleteRows = `DELETE FROM outbox WHERE slot = $1 AND id = ANY($2)`

// next returns the next rows of a slot in their order, without those under way, and deletes the published rows. For one key,
// rows that were committed earlier come first: they have lower ids, and the statement sees them.
//
// It deletes after reading. If this process is suspended, PostgreSQL waits for it within the statement whose rows it sends,
// and no time-out of the server ends that. It must not hold the locks of deleted rows then: the next leader deletes them, too.
func (s *store) next(ctx context.Context, slot int, published, underway []int64, most limits) ([]row, error) {
	var batch pgx.Batch // one round trip, one transaction
	var rows []row
	batch.Queue(nextRows, slot, most.rows, most.bytes, slices.Concat(published, underway)).Query(func(found pgx.Rows) (err error) {
		rows, err = pgx.CollectRows(found, func(r pgx.CollectableRow) (out row, err error) {
			var headers map[string]json.RawMessage
			if err = r.Scan(&out.id, &out.topic, &out.key, &out.payload, &headers, &out.created, &out.bytes); err == nil {
				out.headers, err = headersOf(headers)
			}
			return out, err
		})
		return err
	})
	if len(published) > 0 {
		batch.Queue(deleteRows, slot, published)
	}
	err := s.pool.SendBatch(ctx, &batch).Close() // sets rows; in a return statement, Go may read them before
	return rows, err
}

// claimAndDelete claims first, and deletes nothing if that fails. It holds the claim's lock until both are committed.
const claimAndDelete = `WITH claim AS (` + fence.Claim + ` RETURNING token),
	gone AS (DELETE FROM outbox WHERE slot = $3 AND id = ANY($4) AND EXISTS (SELECT FROM claim))
SELECT count(*) FROM claim`

// claim makes a term the newest one of its key. After it has returned, no deletion of an earlier term can commit.
func (s *store) claim(ctx context.Context, key string, token int64) error {
	return s.deleteClaimed(ctx, key, token, 0, nil)
}

// deleteClaimed deletes rows if no later term has claimed. It returns fence.ErrStale if one has.
func (s *store) deleteClaimed(ctx context.Context, key string, token int64, slot int, ids []int64) error {
	return s.claimed(ctx, key, token, claimAndDelete, slot, ids)
}

// claimAndSetAside claims first, and sets no row aside if that fails.
const claimAndSetAside = `WITH claim AS (` + fence.Claim + ` RETURNING token),
	aside AS (UPDATE outbox SET failed = $5 WHERE slot = $3 AND id = $4 AND EXISTS (SELECT FROM claim))
SELECT count(*) FROM claim`

// setAsideClaimed is setAside if no later term has claimed. It returns fence.ErrStale if one has.
func (s *store) setAsideClaimed(ctx context.Context, key string, token int64, slot int, id int64, why string) error {
	return s.claimed(ctx, key, token, claimAndSetAside, slot, id, why)
}

// claimed executes a statement that begins with a claim, and returns whether that succeeded.
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
func (s *store) setAside(ctx context.Context, slot int, id int64, why string) error {
	_, err := s.pool.Exec(ctx, "UPDATE outbox SET failed = $3 WHERE slot = $1 AND id = $2", slot, id, why)
	return err
}

// passing reports whether an error of the database may be over soon: the database is not there, is starting or was replaced,
// or another transaction was in the way. Any other error needs a person to fix it, such as a value that this program cannot read.
func passing(err error) bool {
	if _, unreadable := errors.AsType[pgx.ScanArgError](err); unreadable {
		return false
	}
	refusal, answered := errors.AsType[*pgconn.PgError](err)
	if !answered {
		return !errors.Is(err, fence.ErrStale) && !errors.Is(err, errSchema)
	}
	switch refusal.Code[:2] {
	case "08", "40", "53", "57", "58": // connection, rollback, resources, operator, system
		return true
	}
	return refusal.Code == "25006" // read-only: a standby that is no primary yet, or a primary that is none any more
}
