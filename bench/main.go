package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/goneli/neli/bench/crowd"
	"github.com/goneli/neli/bench/member"
	"github.com/goneli/neli/bench/peers"
	"github.com/goneli/neli/bench/report"
	"github.com/goneli/neli/bench/steady"
	"github.com/goneli/neli/bench/trial"
	"github.com/goneli/neli/testkit/kafkatest"
	"github.com/goneli/neli/testkit/nursery"
)

const usage = `usage: bench COMMAND [flags]

  run      compare all systems; writes the results, the page and the picture
  quiet    count terms lost while nothing happens
  rolling  count terms lost while brokers are restarted in turn
  scale    many members on one topic of many partitions
  report   write the page and the picture from results

bench COMMAND -h tells the flags.
`

func main() {
	if err := command(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	commands := map[string]func([]string) error{"run": run, "quiet": quiet, "rolling": rolling, "scale": scale, "report": rewrite,
		// Hidden: what this program is to itself.
		crowd.Command:       func([]string) error { return crowd.Main() },
		trial.MemberCommand: func([]string) error { return member.Main() }, peers.ServerCommand: func([]string) error { return peers.ServerMain() }}
	if len(args) == 0 || commands[args[0]] == nil {
		fmt.Fprint(os.Stderr, usage)
		return errors.New("no such command")
	}
	return commands[args[0]](args[1:])
}

// files are where results and pages are.
type files struct{ results, docs string }

func (f *files) flags(set *flag.FlagSet) {
	set.StringVar(&f.results, "results", "results.json", "file of the results")
	set.StringVar(&f.docs, "docs", "../docs", "directory of the page and the picture")
}

// update changes the results and writes everything that is made of them.
func (f *files) update(change func(*report.Results)) error {
	r, err := report.Load(f.results)
	if err != nil {
		return err
	}
	change(r)
	if err := r.Save(f.results); err != nil {
		return err
	}
	return r.Write(f.docs)
}

func rewrite(args []string) error {
	var f files
	set := flag.NewFlagSet("report", flag.ContinueOnError)
	f.flags(set)
	if err := set.Parse(args); err != nil {
		return err
	}
	return f.update(func(*report.Results) {})
}

func run(args []string) error {
	var f files
	var o comparison
	var only string
	set := flag.NewFlagSet("run", flag.ContinueOnError)
	f.flags(set)
	set.IntVar(&o.n, "n", 20, "trials of each kind")
	set.IntVar(&o.few, "few", 5, "trials of each kind for leases of a minute")
	set.IntVar(&o.lanes, "lanes", 0, "groups side by side, at most; 0: by the lease")
	set.DurationVar(&o.window, "idle", 15*time.Second, "how long idle groups are measured; 0: not at all")
	set.StringVar(&only, "only", "", "regular expression for the systems that are measured, such as 'neli, 3 brokers|raft'")
	set.StringVar(&o.command, "command", "", "how the page says that it was made; default: this command line")
	err := set.Parse(args)
	if err == nil {
		o.only, err = regexp.Compile(only)
	}
	if err == nil {
		err = o.possible()
	}
	if err != nil {
		return err
	}
	return inPlace(func(ctx context.Context, place peers.Place) error {
		fresh, err := o.compare(ctx, place)
		if err != nil {
			return err
		}
		return f.update(func(r *report.Results) {
			fresh.Quiet, fresh.Rolling, fresh.Scale = r.Quiet, r.Rolling, r.Scale
			*r = *fresh
		})
	})
}

func quiet(args []string) error {
	var f files
	set := flag.NewFlagSet("quiet", flag.ContinueOnError)
	f.flags(set)
	length := set.Duration("for", 30*time.Minute, "how long")
	if err := set.Parse(args); err != nil {
		return err
	}
	return inPlace(func(ctx context.Context, place peers.Place) error {
		outcomes, err := steady.Quiet(ctx, place, *length, logf)
		if err != nil {
			return err
		}
		return f.update(func(r *report.Results) { r.Quiet = outcomes })
	})
}

func rolling(args []string) error {
	var f files
	set := flag.NewFlagSet("rolling", flag.ContinueOnError)
	f.flags(set)
	rounds := set.Int("rounds", 2, "how often each broker is restarted")
	if err := set.Parse(args); err != nil {
		return err
	}
	return inPlace(func(ctx context.Context, place peers.Place) error {
		outcomes, err := steady.Rolling(ctx, place, *rounds, logf)
		if err != nil {
			return err
		}
		return f.update(func(r *report.Results) { r.Rolling = outcomes })
	})
}

func scale(args []string) error {
	var f files
	var size crowd.Size
	set := flag.NewFlagSet("scale", flag.ContinueOnError)
	f.flags(set)
	set.IntVar(&size.Processes, "processes", 10, "processes")
	set.IntVar(&size.Each, "each", 10, "members in each; so many die, and join")
	set.IntVar(&size.Partitions, "partitions", 1000, "partitions")
	set.IntVar(&size.Roles, "roles", 100_000, "roles")
	set.DurationVar(&size.T, "t", time.Minute, "T")
	window := set.Duration("idle", 30*time.Second, "how long the cost is measured")
	if err := set.Parse(args); err != nil {
		return err
	}
	return inPlace(func(ctx context.Context, place peers.Place) error {
		outcome, err := crowd.Run(ctx, place, size, *window, logf)
		if err != nil {
			return err
		}
		return f.update(func(r *report.Results) {
			r.Scale = append(slices.DeleteFunc(r.Scale, func(old crowd.Outcome) bool { return old.Size == size }), outcome)
		})
	})
}

// inPlace does something in a directory and with processes of its own, of which
// nothing is left, however it ends. What went wrong stays to be read.
func inPlace(do func(context.Context, peers.Place) error) (err error) {
	if err := kafkatest.Find(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	dir, err := os.MkdirTemp("", "neli-bench-")
	if err != nil {
		return err
	}
	processes, err := nursery.New("")
	if err != nil {
		return err
	}
	place := peers.Place{Nursery: processes, Dir: dir}
	defer func() {
		place.Close()
		if err != nil && ctx.Err() == nil {
			logf("logs are in %s", filepath.Clean(dir))
			return
		}
		_ = os.RemoveAll(dir)
	}()
	return do(ctx, place)
}

func logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}
