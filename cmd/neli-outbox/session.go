package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goneli/neli/fence"
	"github.com/jackc/pgx/v5/pgconn"
)

// errPooler says that a pooler gives each transaction another session of the database. Then other clients get the
// settings, prepared statements and LISTEN of this process, and this process gets theirs.
var errPooler = errors.New("a pooler (such as PgBouncer) shares sessions of the database between clients: " +
	"connect to the database itself, or to a pool with pool_mode=session")

// prepareSession makes the settings of a new session, and verifies that they hold in the next transaction.
func prepareSession(ctx context.Context, conn *pgconn.PgConn, wanted map[string]string) error {
	var set, show, args []string
	names := slices.Sorted(maps.Keys(wanted))
	for i, name := range names {
		set = append(set, fmt.Sprintf("set_config($%d, $%d, false)", 2*i+1, 2*i+2))
		show = append(show, fmt.Sprintf("current_setting($%d)", i+1))
		args = append(args, name, wanted[name])
	}
	made, err := ask(ctx, conn, "SELECT "+strings.Join(set, ", "), args...)
	if err != nil {
		return fmt.Errorf("settings of the session: %w", err)
	}
	shown, err := ask(ctx, conn, "SELECT "+strings.Join(show, ", "), names...)
	if err != nil {
		return fmt.Errorf("settings of the session: %w", err)
	}
	for i, name := range names {
		if shown[i] != made[i] {
			return fmt.Errorf("%w: %s was set to %s, and is %s in the next transaction", errPooler, name, made[i], shown[i])
		}
	}
	return nil
}

// behindPooler reports whether a pooler is between this process and the database. A pooler makes up the number of the
// session that it tells its client.
func behindPooler(ctx context.Context, conn *pgconn.PgConn) (bool, error) {
	session, err := ask(ctx, conn, "SELECT pg_backend_pid()")
	return err == nil && session[0] != fmt.Sprint(conn.PID()), err
}

// sharesSessions returns errPooler if two clients get the same session while both are connected, or if a client has
// another session in its next transaction. It changes no setting, since other clients could get that setting, too.
func sharesSessions(ctx context.Context, cfg *pgconn.Config) error {
	cfg = cfg.Copy()
	cfg.AfterConnect = nil
	first, err := pgconn.ConnectConfig(ctx, cfg)
	if refusedParameter(err) {
		return fmt.Errorf("%w; give settings in --database as name=value, and not in options, which a pooler refuses", err)
	}
	if err != nil {
		return err
	}
	defer first.Close(context.WithoutCancel(ctx))
	if pooled, err := behindPooler(ctx, first); err != nil || !pooled {
		return err
	}
	second, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer second.Close(context.WithoutCancel(ctx))
	sessions := map[*pgconn.PgConn]string{}
	for _, step := range []struct {
		by        *pgconn.PgConn
		statement string
	}{
		{first, ""},
		{second, "BEGIN"}, // keeps its session, so that the first one gets another if sessions are shared
		{first, ""}, {first, ""},
		{second, "COMMIT"}, // a pool that gives two sessions in turn can do so from now on: until now only one was free
		{first, ""}, {first, ""},
	} {
		if step.statement != "" {
			if _, err := ask(ctx, step.by, step.statement); err != nil {
				return fmt.Errorf("%w: it refuses %s: %w", errPooler, step.statement, err)
			}
		}
		session, err := ask(ctx, step.by, "SELECT pg_backend_pid()")
		if err != nil {
			return err
		}
		former, known := sessions[step.by]
		sessions[step.by] = session[0]
		if known && former != session[0] || sessions[first] == sessions[second] {
			return errPooler
		}
	}
	return nil
}

// ask executes a statement that is not prepared, and returns the values of its row, if there is one.
func ask(ctx context.Context, conn *pgconn.PgConn, statement string, args ...string) (values []string, err error) {
	var params [][]byte
	for _, arg := range args {
		params = append(params, []byte(arg))
	}
	result := conn.ExecParams(ctx, statement, params, nil, nil, nil).Read()
	for _, row := range result.Rows {
		for _, value := range row {
			values = append(values, string(value))
		}
	}
	return values, result.Err
}

// refusedParameter reports whether a pooler has refused a parameter of the connection. It will refuse it every time.
func refusedParameter(err error) bool {
	refusal, answered := errors.AsType[*pgconn.PgError](err)
	return answered && refusal.Code == "08P01" && strings.Contains(refusal.Message, "unsupported startup parameter")
}

//go:embed schema.sql
var schemaSQL string

// mostSlots limits the arithmetic of the trigger and the number of Kafka producers.
const mostSlots = 1024

// schema returns the SQL that creates the tables for that many slots. It can be run again.
func schema(slots int) string {
	return strings.ReplaceAll(schemaSQL, "{{slots}}", strconv.Itoa(slots)) +
		"\n-- The newest leader of each slot, for relays that publish with --fence=header.\n" + fence.Schema + ";\n"
}
