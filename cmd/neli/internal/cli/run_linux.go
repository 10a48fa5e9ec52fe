package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/goneli/neli"
	"github.com/goneli/neli/cmd/neli/internal/guard"
	"github.com/goneli/neli/cmd/neli/internal/job"
	"github.com/goneli/neli/cmd/neli/internal/web"
	"github.com/goneli/neli/internal/sentinel"
	"github.com/goneli/neli/kafka"
)

// guarded runs a guard's process if args ask for one.
func guarded(args []string) (code int, ok bool) { return guard.Main(args) }

const runLong = `Run a command while this process leads its group. Meanwhile it runs on no other machine.

Start neli run with the same group and command in as many places as you like: one of them runs the
command. When the command ends, neli exits with the command's exit code (128 plus the signal's number
if a signal killed it), and another process leads within a few round trips. There is no shell. The
command runs in a process group of its own and gets no open files but the standard ones. It has no
terminal: instead of one its standard input is /dev/null, and /dev/tty cannot be opened, so a command
that asks for a password fails at once. Its output may go to a terminal. Processes that it leaves behind
in its group are killed.

Signals. Before the command runs, TERM, INT, HUP and QUIT end neli at once with exit code 0. While the
command runs, they go to its process group, followed by CONT in case it is stopped. neli then keeps
leadership until the command has ended, and kills it after --drain. USR1, USR2, WINCH, CONT and TSTP are
passed on. If HUP or INT is ignored when neli starts, as by nohup, neli and the command ignore it, too.
A stopped command keeps leadership; if neli did not stop it, the log says so after a second.

Log. neli never waits for its log, and does not end because of it. While standard error takes no lines,
1,000 are kept and the others dropped; the log says how many.

Losing leadership. When leadership moves to another member, the process group gets TERM and CONT, and
KILL before --drain is over. When leadership is lost, it gets KILL at once. Then neli contends again, or
exits with 122 if --once is given. A guard process kills the process group when the lease is over,
even if neli was killed, stopped or starved of CPU.

Times. --wait must be at least twice --timeout, since after a crash of the leader's host nobody may lead
before its lease is over, and each run begins to wait anew. --drain must end before whatever started neli
kills it, or nobody leads for --timeout: docker stop kills after 10 s, Kubernetes after 30 s
(terminationGracePeriodSeconds), systemd after 90 s (TimeoutStopSec).

Environment. The command gets NELI_TOKEN, the fencing token of this term, and NELI_ROLE,
NELI_PARTITION, NELI_GROUP, NELI_TOPIC, NELI_MEMBER and NELI_NAME. Pass the token to the resource that
the command changes, and have the resource refuse lower tokens. Nothing else protects it from a
machine that is paused as a whole and resumes later.

Cgroup. The command runs in a cgroup (version 2) below neli's own if neli may make one: as root, or
with systemd's Delegate=yes. Then all of its processes are killed when it ends or the lease is over,
whatever their user, group or session, even if neli and its guard are both killed or stopped. The
exceptions: the second guard is killed together with them, or the command moves to another cgroup.
Without a cgroup the log says so, and some processes may outlive the lease: those that change their
user (sudo) or leave the process group (setsid); the command's children if neli and its guard are
killed at the same time; the whole command if both are stopped.

HTTP. With --listen, neli serves a page that shows who leads at /, the status 200 or 503 at /leader,
JSON, and /metrics for Prometheus. Anyone who can connect can read the members' names and the tokens:
use an internal address.

Sentinel. With --sentinel, a crash of neli does not cost --timeout. When neli is dead and the guard
has reported that no process of the command is left, the sentinel at that socket releases leadership.

Requests. With --allow-requests, anyone who may write to the topic can move leadership elsewhere with
neli transfer and neli step-down. The command is told to finish as above.

Exit codes: the command's own; 122 leadership was lost, with --once; 124 not elected within --wait; 125
neli itself failed; 126 the command cannot be executed; 127 there is no such command.`

func newRun(c *common) *cobra.Command {
	var o job.Options
	var listen, advertise string
	var requests bool
	cmd := &cobra.Command{
		Use:   "run [flags] -- command [arguments]",
		Short: "Run a command while leading",
		Long:  runLong,
		Example: `  neli run --bootstrap kafka:9092 --group mailer -- /usr/local/bin/mailer --queue out
  neli run --bootstrap kafka:9092 --group mailer --keep -- sh -c 'while sleep 60; do /usr/local/bin/send; done'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("run: the command is missing: neli run [flags] -- command [arguments]")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := c.resolve(cmd)
			if err != nil {
				return err
			}
			o.Command, cfg.Sentinel, cfg.Advertise = args, c.sentinel, advertise
			if requests {
				cfg.Requests = func(neli.Request) error { return nil } // anyone who may write to the topic may ask
			}
			return run(cfg, o, listen, cmd.ErrOrStderr())
		},
	}
	cmd.Flags().SetInterspersed(false) // arguments after the command belong to the command
	cmd.Flags().DurationVar(&o.Drain, "drain", 8*time.Second, "how long the command may take to finish after it is told to; shorter than the grace period of what started neli")
	cmd.Flags().DurationVar(&o.Wait, "wait", 0, "exit with 124 if not elected within this time, which is at least twice --timeout; 0: wait forever")
	cmd.Flags().BoolVar(&o.Keep, "keep", false, "contend again after the command has ended")
	cmd.Flags().StringVar(&listen, "listen", "", "host:port on which to serve the page, JSON and metrics; empty: do not serve them")
	cmd.Flags().StringVar(&advertise, "advertise", "", "host:port or URL by which others reach the command; neli status and the page show it")
	cmd.Flags().BoolVar(&o.Once, "once", false, "exit with 122 when leadership is lost, instead of contending again")
	c.watchedBy(cmd.Flags(), "socket of a neli sentinel; it releases leadership at once if this process is killed and its command is gone")
	cmd.Flags().BoolVar(&requests, "allow-requests", false, "carry out what neli transfer and neli step-down ask for; otherwise refuse it")
	return cmd
}

// run runs the command. It serves the page and the metrics at listen, unless that is empty.
func run(cfg neli.Config, o job.Options, listen string, log io.Writer) error {
	outliveLog()
	// Early, so that no signal that ends neli is missed.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, job.Signals()...)
	defer signal.Stop(signals)
	if o.Drain <= 0 {
		return fmt.Errorf("--drain %v: must be positive", o.Drain)
	}
	if o.Wait < 0 {
		return fmt.Errorf("--wait %v: must not be negative", o.Wait)
	}
	if least := job.LeastWait(cfg.HeartbeatTimeout); o.Wait > 0 && o.Wait < least {
		return fmt.Errorf("--wait %v: must be at least %v, twice --timeout: after a crash of the leader's host nobody may lead before a lease of %v is over, and each run begins to wait anew; give --wait %v or a shorter --timeout",
			o.Wait, least, cfg.HeartbeatTimeout, least)
	}
	if _, err := exec.LookPath(o.Command[0]); err != nil {
		return exit{guard.StartCode(err), guard.Unstarted(o.Command[0], err)}
	}
	o.Env, o.Topic, o.Log = os.Environ(), cfg.LeaderTopic, cfg.Logger
	cfg.DrainTimeout = o.Drain
	p := &watchedProvider{Provider: cfg.Provider}
	cfg.Provider = p
	n, stop, err := start(cfg, listen)
	if err != nil {
		return err
	}
	if p.client != nil {
		o.Guard = p.client.Guard
	}
	standing, over := context.WithCancel(context.Background())
	defer over()
	if isTerminal(os.Stderr) {
		go standBy(standing, n, log)
	}
	code, err := job.Run(n, o, signals)
	if closing := n.Close(); closing != nil {
		cfg.Logger.Warn("could not close cleanly", "error", closing)
	}
	stop()
	if code != 0 || err != nil {
		return exit{code, err}
	}
	return nil
}

// standBy tells a person at a terminal why nothing happens: another process leads.
func standBy(ctx context.Context, n *neli.Neli, out io.Writer) {
	for range n.Watch(ctx) {
		if n.IsLeader() {
			return
		}
		if h, held := n.Holder(0); held {
			fmt.Fprintf(out, "neli: standing by: %s leads the group %s\n", printable(h.Name), n.Config().LeaderGroupID)
			return
		}
	}
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// watchedProvider is a Provider that keeps the sentinel's client, so that the sentinel can be told of
// the command, which may outlive this process.
type watchedProvider struct {
	kafka.Provider
	client *sentinel.Client // nil: no sentinel is configured
}

// TakeSentinel implements sentinel.Taker.
func (p *watchedProvider) TakeSentinel(c *sentinel.Client) { p.client = c }

// WithLogin implements kafka.LoginProvider, so that the library hears why its clients get no token.
func (p *watchedProvider) WithLogin(l kafka.Login) kafka.Provider {
	if able, can := p.Provider.(kafka.LoginProvider); can {
		return able.WithLogin(l)
	}
	return p.Provider
}

// start makes the Neli and, if listen is set, serves the page and the metrics there until stop is called.
func start(cfg neli.Config, listen string) (n *neli.Neli, stop func(), err error) {
	if listen == "" {
		n, err = neli.New(cfg)
		return n, func() {}, err
	}
	// First, since an address that is in use shows at once.
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, nil, fmt.Errorf("--listen: %w", err)
	}
	if n, err = neli.New(cfg); err != nil {
		_ = l.Close()
		return nil, nil, err
	}
	if stop, err = web.Serve(l, n, cfg.Logger); err != nil {
		return nil, nil, errors.Join(err, n.Close())
	}
	return n, stop, nil
}
