package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// config are the flags of the relay.
type config struct {
	database  string
	bootstrap string
	tls       bool
	tlsCA     string
	mechanism string
	user      string
	group     string
	name      string
	timeout   time.Duration
	fence     string
	most      limits
	record    int32
	poll      time.Duration
	listen    string
	logLevel  string
}

// Secrets come from the environment, since arguments are public.
const saslPassword = "OUTBOX_SASL_PASSWORD"

func (c *config) register(f *pflag.FlagSet) {
	f.StringVar(&c.database, "database", "", "the database, as a URL or name=value …; the password in OUTBOX_DATABASE, PGPASSWORD or ~/.pgpass (default: as PGHOST and so on say)")
	f.StringVar(&c.bootstrap, "bootstrap", "localhost:9092", "Kafka brokers, host:port,…")
	f.BoolVar(&c.tls, "tls", false, "use TLS for Kafka")
	f.StringVar(&c.tlsCA, "tls-ca", "", "file of the certificates that Kafka's are signed with (default: the system's)")
	f.StringVar(&c.mechanism, "sasl-mechanism", "", "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; the password is in "+saslPassword)
	f.StringVar(&c.user, "sasl-user", "", "user name for Kafka")
	f.StringVar(&c.group, "group", "outbox", "the group of relays that share this table")
	f.StringVar(&c.name, "name", "", "name of this process, as others see it (default: host, process id, time)")
	f.DurationVar(&c.timeout, "timeout", 5*time.Second, "T: how long a leader is believed after its last beat, 100ms to 60s")
	f.StringVar(&c.fence, "fence", "transactions", "what keeps a former leader's late records out: transactions, or header, for which readers must filter")
	f.IntVar(&c.most.rows, "batch", 4000, "rows of a batch, at most")
	f.IntVar(&c.most.bytes, "batch-bytes", 4<<20, "bytes of a batch, about, with topics; all slots together have up to six such batches in memory")
	f.Int32Var(&c.record, "max-record-bytes", 1000012, "the largest row, record and batch of records: no more than max.message.bytes of the topics")
	f.DurationVar(&c.poll, "poll", time.Second, "how often to look for rows of which nobody tells")
	f.StringVar(&c.listen, "listen", "localhost:9108", "where to serve /metrics and who leads; empty: nowhere")
	f.StringVar(&c.logLevel, "log-level", "info", "debug, info, warn or error; on standard error")
}

// fromEnvironment takes the flags that were not given from OUTBOX_<FLAG>.
func fromEnvironment(flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		name := "OUTBOX_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if value, ok := os.LookupEnv(name); ok && !f.Changed {
			if err := f.Value.Set(value); err != nil { // does not set Changed, which is for arguments
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
		}
	})
	return errors.Join(errs...)
}

// check returns one error for all mistakes.
func (c *config) check(flags *pflag.FlagSet) error {
	var errs []error
	must := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	must(c.fence == "transactions" || c.fence == "header", "--fence: %q must be transactions or header", c.fence)
	must(c.group != "", "--group: must not be empty")
	must(c.most.rows > 0, "--batch: %d must be at least 1", c.most.rows)
	must(c.most.bytes > 0 && c.most.bytes <= 1<<30, "--batch-bytes: %d must be 1 to %d", c.most.bytes, 1<<30)
	must(c.record >= 1024, "--max-record-bytes: %d must be at least 1024", c.record)
	must(c.poll >= 10*time.Millisecond, "--poll: %v must be at least 10ms", c.poll)
	must((c.user == "") == (c.mechanism == ""), "--sasl-user and --sasl-mechanism belong together")
	_, err := c.pool()
	errs = append(errs, err)
	must(err != nil || !flags.Changed("database") || !hasPassword(c.database),
		"--database: arguments are public: put the password into OUTBOX_DATABASE, PGPASSWORD or ~/.pgpass")
	return errors.Join(errs...)
}

// These match a text with a password that is not empty: a URL, or a list of name=value.
var (
	passwordInURL  = regexp.MustCompile(`^postgres(ql)?://([^:/@]*:[^/@]+@|[^?]*\?(.*&)?(ssl)?password=[^&])`)
	passwordInList = regexp.MustCompile(`(^|\s)(ssl)?password\s*=\s*('[^']|[^'\s])`)
)

// hasPassword reports whether the text itself has a password. The configuration that pgx makes of
// the text may also have one from elsewhere.
func hasPassword(database string) bool {
	if strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://") {
		return passwordInURL.MatchString(database)
	}
	return passwordInList.MatchString(database)
}

// settings are those of each session. If a relay is suspended within a statement or transaction, the server ends it, so
// that it does not keep its locks. While the server is sending rows, this does not work: see store.next.
//
// The planner is forced to read rows by their index, so that a batch costs the same however long the table is. For a
// table that has just grown there are no statistics, and the planner would guess, and read and sort all of it for each
// batch.
var settings = map[string]string{"statement_timeout": "30s", "idle_in_transaction_session_timeout": "10s", "default_transaction_isolation": "read committed",
	"enable_seqscan": "off", "enable_bitmapscan": "off", "enable_sort": "off"}

// pool returns the configuration of the database connections. Settings are made after connecting, since poolers refuse most of
// them as parameters of a new connection.
func (c *config) pool() (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(c.database)
	if err != nil {
		return nil, fmt.Errorf("--database: %w", err) // the error does not have the password
	}
	params, wanted := cfg.ConnConfig.RuntimeParams, maps.Clone(settings)
	for name, value := range params {
		if !slices.Contains([]string{"application_name", "client_encoding", "options"}, name) {
			wanted[name] = value
			delete(params, name)
		}
	}
	if params["application_name"] == "" {
		params["application_name"] = "outbox"
	}
	cfg.ConnConfig.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error { return prepareSession(ctx, conn, wanted) }
	return cfg, nil
}

// kafka returns the options of all Kafka clients.
func (c *config) kafka() ([]kgo.Opt, error) {
	opts := []kgo.Opt{kgo.SeedBrokers(strings.Split(c.bootstrap, ",")...), kgo.ClientID("outbox"), kgo.ProducerBatchMaxBytes(c.record)}
	if c.tls || c.tlsCA != "" {
		cfg := &tls.Config{MinVersion: tls.VersionTLS12}
		if c.tlsCA != "" {
			pem, err := os.ReadFile(c.tlsCA)
			if err != nil {
				return nil, fmt.Errorf("--tls-ca: %w", err)
			}
			if cfg.RootCAs = x509.NewCertPool(); !cfg.RootCAs.AppendCertsFromPEM(pem) {
				return nil, fmt.Errorf("--tls-ca: no certificate in %s", c.tlsCA)
			}
		}
		opts = append(opts, kgo.DialTLSConfig(cfg))
	}
	if c.mechanism != "" {
		mechanism, err := c.login()
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.SASL(mechanism))
	}
	if err := kgo.ValidateOpts(opts...); err != nil { // without this, it would look as if Kafka did not answer
		return nil, fmt.Errorf("--bootstrap, --max-record-bytes: %w", err)
	}
	return opts, nil
}

func (c *config) login() (sasl.Mechanism, error) {
	password := os.Getenv(saslPassword)
	as := scram.Auth{User: c.user, Pass: password}
	switch c.mechanism {
	case "PLAIN":
		return plain.Auth{User: c.user, Pass: password}.AsMechanism(), nil
	case "SCRAM-SHA-256":
		return as.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return as.AsSha512Mechanism(), nil
	}
	return nil, fmt.Errorf("--sasl-mechanism: %q must be PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", c.mechanism)
}

func (c *config) logger(to *os.File) (*slog.Logger, error) {
	var level slog.Level
	if level.UnmarshalText([]byte(c.logLevel)) != nil {
		return nil, fmt.Errorf("--log-level: %q must be debug, info, warn or error", c.logLevel)
	}
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: level})), nil
}
