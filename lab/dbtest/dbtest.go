//go:build unix

// Package dbtest starts database servers for tests: PostgreSQL, its pooler PgBouncer, and MariaDB, from Debian's packages. Their data
// is useless after the test, so nothing is synced to disk.
package dbtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/nursery"
)

// PostgreSQL starts a server for the test, and returns a data source name for pgx or lib/pq.
// If it is not installed, the test is skipped, or fails with NELI_REQUIRE_KAFKA=1.
func PostgreSQL(t testing.TB) string {
	t.Helper()
	return StartPostgres(t).DSN
}

// Postgres is a PostgreSQL server that can be killed. Its methods fail the test if they fail.
type Postgres struct {
	// DSN is a data source name for pgx or lib/pq. It stays the same.
	DSN string

	server   *server
	settings []string
	process  *nursery.Process
}

// StartPostgres is PostgreSQL for tests that disturb the server. settings are name=value. They add to the settings
// that make the server small, or replace them.
func StartPostgres(t testing.TB, settings ...string) *Postgres {
	t.Helper()
	s := newServer(t)
	s.use(PostgresPrograms())
	data := filepath.Join(s.dir, "data")
	s.run(s.tool("initdb"), "--pgdata", data, "--username", "test", "--auth", "trust", "--no-sync", "--encoding", "UTF8", "--locale", "C")
	p := &Postgres{DSN: "host=" + s.dir + " user=test dbname=postgres sslmode=disable", server: s, settings: settings}
	p.Start()
	return p
}

// Start starts the server, at first or after Kill, and waits until it answers.
func (p *Postgres) Start() {
	s := p.server
	s.Helper()
	args := []string{"-D", filepath.Join(s.dir, "data")}
	for _, setting := range slices.Concat([]string{"listen_addresses=", "unix_socket_directories=" + s.dir,
		"fsync=off", "shared_buffers=16MB", "autovacuum=off"}, p.settings) {
		args = append(args, "-c", setting)
	}
	p.process = s.start(s.tool("postgres"), args...)
	s.wait(s.tool("pg_isready"), "--host", s.dir)
}

// Kill ends the server at once, as a crash does: it writes nothing more, and the next Start recovers from its
// log. Its sessions end, too. (After SIGKILL they would stay for a while, and the next server would refuse to
// start.)
func (p *Postgres) Kill() {
	p.server.Helper()
	if err := p.process.Signal(syscall.SIGQUIT); err != nil {
		p.server.Fatal(err)
	}
	<-p.process.Done()
}

// PgBouncer starts a pooler before the server, and returns a data source name for pgx or lib/pq. settings are name=value.
// It skips or fails the test like PostgreSQL.
func (p *Postgres) PgBouncer(t testing.TB, settings ...string) string {
	t.Helper()
	s := newServer(t)
	s.use(find("pgbouncer", "pgbouncer", "/usr/sbin"))
	file := filepath.Join(s.dir, "ini")
	text := "[databases]\n* = host=" + p.server.dir + " user=test\n[pgbouncer]\nauth_type = any\nlisten_addr =\nunix_socket_dir = " + s.dir + "\n"
	if err := os.WriteFile(file, []byte(text+strings.Join(settings, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.start(s.tool("pgbouncer"), file)
	s.wait(p.server.tool("pg_isready"), "--host", s.dir, "--port", "6432")
	return "host=" + s.dir + " port=6432 user=test dbname=postgres sslmode=disable"
}

// MariaDB starts a server for the test, and returns a data source name for go-sql-driver/mysql. settings are
// options of its command line. It skips or fails the test like PostgreSQL.
func MariaDB(t testing.TB, settings ...string) string {
	t.Helper()
	s := newServer(t)
	s.use(find("mariadbd", "mariadb-server", "/usr/sbin"))
	server := s.tool("mariadbd")
	s.use(find("mariadb-install-db", "mariadb-server", "/usr/bin"))
	data, socket := filepath.Join(s.dir, "data"), filepath.Join(s.dir, "socket")
	s.run(s.tool("mariadb-install-db"), "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-name-resolve")
	s.start(server, append([]string{"--no-defaults", "--datadir=" + data, "--socket=" + socket, "--skip-networking",
		"--pid-file=" + filepath.Join(s.dir, "pid"), "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M"}, settings...)...)
	s.wait(s.tool("mariadb-admin"), "--no-defaults", "--socket="+socket, "--user=root", "ping")
	return "root@unix(" + socket + ")/test"
}

// server is a database server and its directory.
type server struct {
	testing.TB
	nursery *nursery.Nursery
	dir     string // a short path, since paths of sockets must be short
	bin     string
	as      *syscall.Credential // servers refuse to run as root
	ended   <-chan struct{}
	log     string
}

func newServer(t testing.TB) *server {
	t.Helper()
	dir, err := os.MkdirTemp("", "db")
	if err != nil {
		t.Fatal(err)
	}
	n, err := nursery.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	s := &server{TB: t, nursery: n, dir: dir, log: filepath.Join(dir, "log")}
	if os.Getuid() != 0 {
		return s
	}
	if s.as, err = GiveToNobody(dir); err != nil {
		t.Fatal(err)
	}
	return s
}

// GiveToNobody makes a directory nobody's, and returns the credential with which to start a server there: servers refuse to
// run as root.
func GiveToNobody(dir string) (*syscall.Credential, error) {
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, _ := strconv.Atoi(nobody.Uid)
	gid, _ := strconv.Atoi(nobody.Gid)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(dir, uid, gid)
}

// PostgresPrograms returns the directory of PostgreSQL's server programs.
func PostgresPrograms() (string, error) {
	return find("initdb", "postgresql", "/usr/lib/postgresql/*/bin")
}

// find returns the directory of a package's programs: of the newest version in where, or else of the one on the PATH.
func find(program, debian, where string) (string, error) {
	found, _ := filepath.Glob(filepath.Join(where, program))
	slices.SortFunc(found, func(a, b string) int { return version(b) - version(a) })
	if path, err := exec.LookPath(program); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		return "", fmt.Errorf("%s is missing (Debian: apt-get install %s)", program, debian)
	}
	return filepath.Dir(found[0]), nil
}

// use makes bin the directory of the tools. With an error it skips or fails the test.
func (s *server) use(bin string, err error) {
	s.Helper()
	switch s.bin = bin; {
	case err == nil:
	case os.Getenv(kafkatest.EnvRequire) == "1":
		s.Fatal(err)
	default:
		s.Skip(err)
	}
}

// version returns the number in a path like /usr/lib/postgresql/15/bin/initdb, or 0 if there is none.
func version(path string) int {
	for _, part := range strings.Split(path, "/") {
		if n, err := strconv.Atoi(part); err == nil {
			return n
		}
	}
	return 0
}

func (s *server) tool(name string) string { return filepath.Join(s.bin, name) }

func (s *server) run(program string, args ...string) {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), program, args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as}
	if out, err := cmd.CombinedOutput(); err != nil {
		s.Fatalf("%s: %v\n%s", program, err, out)
	}
}

func (s *server) start(program string, args ...string) *nursery.Process {
	s.Helper()
	log, err := os.Create(s.log)
	if err != nil {
		s.Fatal(err)
	}
	defer log.Close() // the server has its own descriptor
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	p, err := s.nursery.StartBy(cmd, func(cmd *exec.Cmd) error {
		cmd.SysProcAttr.Credential = s.as
		return cmd.Start()
	})
	if err != nil {
		s.Fatal(err)
	}
	s.ended = p.Done()
	return p
}

// wait runs program again and again until the server answers.
func (s *server) wait(program string, args ...string) {
	s.Helper()
	ctx, cancel := context.WithTimeoutCause(s.Context(), time.Minute, fmt.Errorf("it does not answer"))
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
		if err == nil {
			return
		}
		why := context.Cause(ctx)
		select {
		case <-s.ended:
			why = fmt.Errorf("it has ended")
		case <-tick.C:
		}
		if why != nil {
			log, _ := os.ReadFile(s.log)
			s.Fatalf("%s: %v: %s\n%s", program, why, out, log)
		}
	}
}
