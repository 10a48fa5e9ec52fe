//go:build unix

// Command demo shows leader election at work, on one machine and without your own Kafka. It starts an
// embedded broker and several member processes. It kills one, suspends and wakes another, closes one,
// starts one and kills that with a sentinel running, and it measures what the members believed meanwhile.
//
//	go run ./demo
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/goneli/neli/examples/internal/show"
)

func main() {
	memberName := flag.String("member", "", "run as the member of this name (the demo starts itself like this)")
	bootstrap := flag.String("bootstrap", "", "the broker, for -member")
	sentinel := flag.String("sentinel", "", "the socket of a sentinel, for -member")
	pause := flag.Duration("pause", 2*time.Second, "time to read, before and after each step")
	flag.Parse()
	if *memberName != "" {
		exitOn(member(*memberName, *bootstrap, *sentinel))
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	exitOn(demo(ctx, *pause))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// demo runs the demo. It returns an error if the demo could not be completed or a promise was broken.
func demo(ctx context.Context, pause time.Duration) error {
	// On Linux the members die with the thread that starts them, so this thread must last.
	runtime.LockOSThread()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(time.Second))
	if err != nil {
		return fmt.Errorf("starting the embedded broker: %w", err)
	}
	defer broker.Close()

	w := show.NewWatch(os.Stdout, show.Now(), 12)
	s := &story{bootstrap: broker.ListenAddrs()[0]}
	s.Story = &show.Story{Ctx: ctx, Watch: w, Pause: pause,
		Args: func(name string) []string {
			return []string{"-member", name, "-bootstrap", s.bootstrap, "-sentinel", s.sentinel}
		}}
	defer s.endSentinel()
	defer s.KillAll()
	stopWatch := w.Start()
	err = s.tell()
	stopWatch()
	if err != nil {
		return err
	}
	err = w.Conclude(s.Steps)
	w.Compare(s.Steps, s.bars)
	return err
}
