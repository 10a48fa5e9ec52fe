//go:build unix

// Package show has what the demos share: they start members as processes of their own, read how these see their leadership,
// one look each millisecond, show who leads, and check at the end that no promise was broken.
package show

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/goneli/neli/lab/nursery"
	"github.com/goneli/neli/lab/witness"
)

// Main runs a demo, or one of its members: the demo starts this program again for each of them. tell is what happens. The columns
// of roles have this width.
func Main(demo string, width int, member func(name string) error, tell func(*Story) error) {
	name := flag.String("member", "", "run as the member of this name (the demo starts itself like this)")
	pause := flag.Duration("pause", 2*time.Second, "time to read, before and after each step")
	flag.Parse()
	var err error
	if *name != "" {
		err = member(*name)
	} else {
		err = run(width, *pause, tell)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", demo, err)
		os.Exit(1)
	}
}

// run runs a demo. It returns an error if the demo could not be completed or a promise was broken.
func run(width int, pause time.Duration, tell func(*Story) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	processes, err := nursery.New("")
	if err != nil {
		return err
	}
	defer processes.Close()
	s := &Story{Ctx: ctx, processes: processes, pause: pause, screen: screen{out: os.Stdout, epoch: witness.Now(), width: width}}
	if err := tell(s); err != nil {
		return err
	}
	return s.conclude()
}
