package cli

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/goneli/neli"
	"github.com/goneli/neli/cmd/neli/internal/guard"
	"github.com/goneli/neli/cmd/neli/internal/job"
	"github.com/goneli/neli/cmd/neli/internal/web"
	"github.com/goneli/neli/internal/sentinel"
	"github.com/goneli/neli/kafka"
)

// guarded is what a guard's process does, if that is what args ask for.
func guarded(args []string) (code int, ok bool) { return guard.Main(args) }

const runLong = `Run a command while this process leads its group, and on no other machine meanwhile.

Any number of processes may say the same; one of them runs the command. When the command
ends, another one leads within round trips, and neli exits with the command's exit code (128
and the number of a signal). There is no shell. The command is in a process group of its
own, gets no files but the standard ones, and cannot read from a terminal. What it leaves
behind in its group is killed.

Signals. Before the command runs TERM, INT, HUP and QUIT end neli at once, with exit code 0.
While it runs they go to the command's group, and leadership is kept until it has ended,
for --drain at most, after which it is killed. USR1, USR2, WINCH, CONT and TSTP are passed on.

Leadership lost. When leadership is moved elsewhere the group gets TERM, and KILL before the
drain is over; when it is lost, KILL at once. Then neli contends again, or exits with 122
if --once is given. A guard process kills the group by itself when the lease is over, also
if neli was killed, stopped or starved of CPU.

The command's environment has NELI_TOKEN, the fencing token of this term, and NELI_ROLE,
NELI_PARTITION, NELI_GROUP, NELI_TOPIC, NELI_MEMBER, NELI_NAME. Give the token to
whatever the command changes, and let that refuse lower ones: nothing else helps against
a machine that is paused as a whole and goes on later.

Cgroup. Where neli can make a cgroup (version 2) below its own, as root or with systemd's
Delegate=yes, the command runs in it. All of its processes are killed when it ends or
its lease does, whatever their user, group or session, also if neli and its guard are
killed or stopped both. Not if the second guard is killed with them, or if the command moves
to another cgroup. Without a cgroup, which the log says, processes that change their
user (sudo) or leave the group (setsid) may outlive the lease; so may what the command has started if
neli and its guard are killed at once, and all if both are stopped.

With --listen, HTTP: the page of who leads at /, 200 or 503 at /leader, JSON, and /metrics for
Prometheus. Whoever can connect can read names of members and tokens: take an internal
address.

Sentinel. With --sentinel a crash of neli does not cost --timeout: when neli is dead and the guard
has said that nothing is left of the command, the sentinel at that socket releases leadership.

Requests. With --allow-requests whoever may write to the topic may have leadership moved
elsewhere, by neli transfer and neli step-down; the command is told to finish as above.

Exit codes: the command's; 122 lost, with --once; 124 not elected within --wait; 125 neli itself
failed; 126 the command cannot be executed; 127 there is no such command.`

func newRun(c *common) *cobra.Command {
	var o job.Options
	var listen string
	var requests bool
	cmd := &cobra.Command{
		Use:   "run [flags] -- command [arguments]",
		Short: "Run a command while leading",
		Long:  runLong,
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := c.resolve(cmd)
			if err != nil {
				return err
			}
			o.Command, cfg.Sentinel = args, c.sentinel
			if requests {
				cfg.Requests = func(neli.Request) error { return nil } // who may write to the topic may ask
			}
			return run(cfg, o, listen)
		},
	}
	cmd.Flags().SetInterspersed(false) // what follows the command is the command's
	cmd.Flags().DurationVar(&o.Drain, "drain", 10*time.Second, "how long the command may take to finish when it is told to")
	cmd.Flags().DurationVar(&o.Wait, "wait", 0, "exit with 124 if not elected within this time; 0: wait for ever")
	cmd.Flags().BoolVar(&o.Keep, "keep", false, "contend again when the command has ended")
	cmd.Flags().StringVar(&listen, "listen", "", "host:port where the page, JSON and metrics are served; empty: nowhere")
	cmd.Flags().BoolVar(&o.Once, "once", false, "exit with 122 when leadership is lost, in place of contending again")
	c.watchedBy(cmd.Flags(), "socket of a neli sentinel, which releases at once what this process held if it is killed and its command is gone")
	cmd.Flags().BoolVar(&requests, "allow-requests", false, "do what neli transfer and neli step-down ask for; else refuse")
	return cmd
}

// run runs the command. It serves what it knows at listen, if that is not empty.
func run(cfg neli.Config, o job.Options, listen string) error {
	// Before anything else: whoever asks to end must be heard at once.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, job.Signals()...)
	defer signal.Stop(signals)
	if o.Drain <= 0 {
		return errors.New("--drain: must be positive")
	}
	if _, err := exec.LookPath(o.Command[0]); err != nil {
		return exit{guard.StartCode(err), err}
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
	code, err := job.Run(n, o, signals)
	if closing := n.Close(); closing != nil {
		cfg.Logger.Warn("did not close in order", "error", closing)
	}
	stop()
	if code != 0 || err != nil {
		return exit{code, err}
	}
	return nil
}

// watchedProvider is a Provider that keeps what talks to the sentinel, so that this is told of the command,
// which may outlive this process.
type watchedProvider struct {
	kafka.Provider
	client *sentinel.Client // nil: no sentinel is configured
}

// TakeSentinel implements sentinel.Taker.
func (p *watchedProvider) TakeSentinel(c *sentinel.Client) { p.client = c }

// start makes the Neli, and serves what it knows at an address until stop is called.
func start(cfg neli.Config, listen string) (n *neli.Neli, stop func(), err error) {
	if listen == "" {
		n, err = neli.New(cfg)
		return n, func() {}, err
	}
	// First, since an address that cannot be had is known at once.
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
