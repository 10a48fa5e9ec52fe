// Package store has the stores that leaders write to: PostgreSQL with a register for each role that is guarded by the token, the
// same behind package fence, and a Kafka topic written by fence.Transactions.
package store

import (
	"context"
	_ "embed"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/lab/dbtest"
)

//go:embed schema.sql
var schema string

// Host is where a server runs, and how it is reached from here.
type Host interface {
	Start(cmd *exec.Cmd) error
	Dialer
}

// A Server is a running PostgreSQL.
type Server struct {
	DSN     string // for clients in the network
	Version string

	host Host
	cmd  *exec.Cmd
	done chan struct{}
}

const port = 5432

// Start makes a database for these roles below dir and serves it on a host; admin is where this
// process dials from. PostgreSQL refuses to run as root, so it runs as nobody.
func Start(ctx context.Context, host Host, ip netip.Addr, admin Dialer, dir string, roles int) (*Server, error) {
	s := &Server{host: host, done: make(chan struct{}),
		DSN: fmt.Sprintf("postgres://chaos@%s:%d/postgres?sslmode=disable", ip, port)}
	err := s.launch(ctx, ip, dir)
	if err == nil {
		err = s.prepare(ctx, admin, roles)
	}
	if err != nil {
		s.Stop()
		return nil, fmt.Errorf("store: %w", err)
	}
	return s, nil
}

func (s *Server) launch(ctx context.Context, ip netip.Addr, dir string) error {
	bin, err := dbtest.PostgresPrograms()
	if err != nil {
		return err
	}
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	nobody, err := dbtest.GiveToNobody(dir)
	if err != nil {
		return err
	}
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "--pgdata", data, "--username", "chaos",
		"--auth", "trust", "--no-sync", "--encoding", "UTF8", "--locale", "C")
	initdb.Dir = dir
	initdb.SysProcAttr = &syscall.SysProcAttr{Credential: nobody}
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	rule := "host all all 10.0.0.0/8 trust\n"
	if err := os.WriteFile(filepath.Join(data, "pg_hba.conf"), []byte(rule), 0o644); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, "postgres.log"))
	if err != nil {
		return err
	}
	defer log.Close() // the server has its own descriptor
	s.cmd = exec.Command(filepath.Join(bin, "postgres"), "-D", data,
		"-c", "listen_addresses="+ip.String(), "-c", "port="+strconv.Itoa(port),
		"-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "shared_buffers=16MB",
		"-c", "max_connections=300", "-c", "idle_in_transaction_session_timeout=2s", "-c", "autovacuum=off")
	s.cmd.Dir = dir
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: nobody}
	if err := s.host.Start(s.cmd); err != nil {
		s.cmd = nil
		return err
	}
	go func() {
		_ = s.cmd.Wait() // Stop kills it
		close(s.done)
	}()
	return nil
}

// prepare waits for the server and makes the tables.
func (s *Server) prepare(ctx context.Context, admin Dialer, roles int) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := connect(ctx, s.DSN, admin)
		if err == nil {
			defer conn.Close(ctx)
			s.Version = "PostgreSQL " + conn.PgConn().ParameterStatus("server_version")
			return fill(ctx, conn, roles)
		}
		select {
		case <-tick.C:
		case <-s.done:
			return fmt.Errorf("postgres has ended: %s", s.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("waiting for postgres: %w; last: %w", ctx.Err(), err)
		}
	}
}

func fill(ctx context.Context, conn *pgx.Conn, roles int) error {
	for _, statements := range []string{schema, fence.Schema} {
		if _, err := conn.Exec(ctx, statements); err != nil {
			return fmt.Errorf("making the tables: %w", err)
		}
	}
	_, err := conn.Exec(ctx, `INSERT INTO guarded SELECT r, -1, 0 FROM generate_series(0, $1::int - 1) r`, roles)
	if err == nil {
		_, err = conn.Exec(ctx, `INSERT INTO unguarded SELECT r, -1, 0, -1 FROM generate_series(0, $1::int - 1) r`, roles)
	}
	return err
}

// Stop kills the server. Its data is not used any more.
func (s *Server) Stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGQUIT) // kills its children, too
	select {
	case <-s.done:
	case <-time.After(5 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.done
	}
}
