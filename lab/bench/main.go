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
	"strings"
	"syscall"
	"time"

	"github.com/goneli/neli/lab/bench/member"
	"github.com/goneli/neli/lab/bench/peers"
	"github.com/goneli/neli/lab/bench/report"
	"github.com/goneli/neli/lab/bench/trial"
	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/nursery"
)

const usage = `usage: bench COMMAND [flags]

  run      compare all systems; writes the results and all pages
  report   write the pages from the results

bench COMMAND -h lists the flags.
`

func main() {
	if err := command(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	commands := map[string]func([]string) error{"run": run, "report": rewrite,
		// Hidden subcommands, with which this program starts itself.
		trial.MemberCommand: func([]string) error { return member.Main() }, peers.ServerCommand: func([]string) error { return peers.ServerMain() },
		peers.SentinelCommand: func([]string) error { return peers.SentinelMain() }}
	if len(args) == 0 || commands[args[0]] == nil {
		fmt.Fprint(os.Stderr, usage)
		return errors.New("no such command")
	}
	return commands[args[0]](args[1:])
}

// files are where results and pages are.
type files struct{ results, docs string }

func (f *files) flags(set *flag.FlagSet) {
	set.StringVar(&f.results, "results", "results/results.json", "file of the results; its README.md is written beside it")
	set.StringVar(&f.docs, "docs", "../../docs", "directory of the summary")
}

// update changes the results, and writes the files that are made from them.
func (f *files) update(change func(*report.Results)) error {
	r, err := report.Load(f.results)
	if err != nil {
		return err
	}
	change(r)
	if err := r.Save(f.results); err != nil {
		return err
	}
	return r.Write(f.docs, filepath.Dir(f.results))
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

// keep runs a command that measures, and adds its results. about describes the run, without its date, its sources and
// the machine.
func (f *files) keep(about *report.Run, do func(context.Context, peers.Place) (*report.Results, error)) error {
	return inPlace(func(ctx context.Context, place peers.Place) error {
		began := time.Now()
		about.ID, about.Date = began.UTC().Format(time.RFC3339), began.UTC().Format(time.DateOnly)
		about.Commit, about.Machine = commit(ctx), machine()
		about.Versions = versions()
		if about.Command == "" {
			about.Command = "bench " + strings.Join(os.Args[1:], " ")
		}
		fresh, err := do(ctx, place)
		if err != nil {
			return err
		}
		about.Took = time.Since(began).Round(time.Second).String()
		return f.update(func(r *report.Results) { r.Take(*about, fresh) })
	})
}

func run(args []string) error {
	var f files
	var o comparison
	var about report.Run
	var only string
	set := flag.NewFlagSet("run", flag.ContinueOnError)
	f.flags(set)
	set.IntVar(&o.n, "n", 20, "trials of each kind")
	set.IntVar(&o.few, "few", 5, "trials of each kind for leases of a minute")
	set.IntVar(&o.lanes, "lanes", 0, "groups side by side, at most; 0: by the lease")
	set.DurationVar(&o.window, "idle", 15*time.Second, "how long idle groups are measured; 0: not at all")
	set.DurationVar(&o.settle, "settle", 10*time.Second, "how long an idle group is left alone before it is measured")
	set.StringVar(&only, "only", "", "regular expression for the systems that are measured, such as 'neli, 3 brokers|raft'; the figures of others stay")
	set.StringVar(&o.client, "client", "", "'franz': measure this library with that Kafka client, too, beside the default")
	set.StringVar(&about.Command, "command", "", "how the page says that it was made; default: this command line")
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
	return f.keep(&about, func(ctx context.Context, place peers.Place) (*report.Results, error) {
		fresh, servers, err := o.compare(ctx, place)
		about.N, about.Few, about.Window = o.n, min(o.few, o.n), o.window.String()
		about.Versions = append(about.Versions, servers...)
		return fresh, err
	})
}

// inPlace calls a function with a directory and processes of its own. It kills the processes, and keeps the directory
// only after an error that is no interruption.
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
