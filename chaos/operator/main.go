package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/goneli/neli/chaos/jail"
	"github.com/goneli/neli/testkit/kafkatest"
)

// First arguments that give this program another task than the demonstration.
const (
	roleMachine = "machine" // the first process of a machine
	roleJob     = "job"     // the command that neli runs
)

// limit bounds the whole demonstration.
const limit = 20 * time.Minute

func main() {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case roleMachine:
			os.Exit(beMachine(os.Args[2:]))
		case roleJob:
			os.Exit(beJob(os.Args[2]))
		}
	}
	os.Exit(run())
}

type options struct {
	root string // of the repository
	out  string // directory of logs
}

func run() int {
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err == nil {
		err = possible()
	}
	code := 2
	if err == nil {
		code, err = jail.Run(limit, func(ctx context.Context) (int, error) { return show(ctx, o) })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		return 2
	}
	return code
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("operator", flag.ContinueOnError)
	flags.StringVar(&o.root, "root", "..", "the repository, to build from and to write documents to")
	flags.StringVar(&o.out, "out", "chaos-report/operator", "directory of the machines' logs; an existing one is replaced")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	root, rootErr := filepath.Abs(o.root)
	out, outErr := filepath.Abs(o.out)
	return options{root, out}, errors.Join(rootErr, outErr)
}

// possible returns an error that names everything that is missing here.
func possible() error {
	missing := []error{jail.Possible(), kafkatest.Find()}
	if _, err := exec.LookPath("prometheus"); err != nil {
		missing = append(missing, fmt.Errorf("%w: apt-get install prometheus", err))
	}
	if _, err := chromium(); err != nil {
		missing = append(missing, err)
	}
	return errors.Join(missing...)
}

// show runs the demonstration, in the jail.
func show(ctx context.Context, o options) (int, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	s, err := build(ctx, o, log)
	defer s.close()
	if err != nil {
		return 0, fmt.Errorf("building: %w", err)
	}
	desk, err := openBrowser(ctx, s)
	if err != nil {
		return 0, err
	}
	defer desk.close()
	d := &demonstration{site: s, desk: desk}
	if err := d.disturb(ctx); err != nil {
		return 0, err
	}
	story, err := d.tell(ctx)
	if err != nil {
		return 0, err
	}
	fmt.Print(story.markdown())
	if err := d.publish(story); err != nil {
		return 0, err
	}
	if story.overlaps > 0 {
		return 1, nil
	}
	return 0, nil
}

// revision is the commit that was shown; "+" if the tree had changes.
func revision(ctx context.Context, root string) string {
	out, err := exec.CommandContext(ctx, "git", "-C", root, "describe", "--always", "--abbrev=8", "--dirty=+").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
