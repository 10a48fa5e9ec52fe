//go:build unix

// Command demo-peers shows elections without a broker. Five processes run on one machine, each with a small
// log. A process leads the roles that it holds in three of the five logs. The demo kills a leader together
// with its log, suspends and wakes a process, restarts one with an empty log, partitions the network three
// to two, and measures what the members believed meanwhile.
//
//	go run ./demo-peers
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/goneli/neli/examples/internal/show"
)

func main() {
	memberName := flag.String("member", "", "run as the member of this name (the demo starts itself like this)")
	hosts := flag.String("hosts", "", "the list of log hosts, name=address, for -member")
	pause := flag.Duration("pause", 2*time.Second, "time to read, before and after each step")
	flag.Parse()
	if *memberName != "" {
		exitOn(member(*memberName, *hosts))
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	exitOn(demo(ctx, *pause))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo-peers:", err)
		os.Exit(1)
	}
}

// demo runs the demo. It returns an error if the demo could not be completed or a promise was broken.
func demo(ctx context.Context, pause time.Duration) error {
	// On Linux the members die with the thread that starts them, so this thread must last.
	runtime.LockOSThread()
	hosts := freeAddresses("anna", "boris", "clara", "dora", "emil")
	w := show.NewWatch(os.Stdout, show.Now(), 24)
	s := &story{&show.Story{Ctx: ctx, Watch: w, Pause: pause,
		Args: func(name string) []string { return []string{"-member", name, "-hosts", hosts} }}}
	defer s.KillAll()
	stopWatch := w.Start()
	err := s.tell()
	stopWatch()
	if err != nil {
		return err
	}
	return w.Conclude(s.Steps)
}

// freeAddresses returns a list of log hosts on free ports. The ports are below those that the system uses
// for outgoing connections, so that they stay free while a host restarts.
func freeAddresses(names ...string) string {
	var list []string
	for len(list) < len(names) {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000))
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		defer l.Close() // all at the end, so that no port is used twice
		list = append(list, names[len(list)]+"="+address)
	}
	return strings.Join(list, ",")
}
