//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/goneli/neli"
)

// What all members agree on.
const (
	roles   = 4
	timeout = 1500 * time.Millisecond // T: a leader that is not heard of for so long is none
	steady  = 15 * time.Second        // for so long a member must have been there to be given something
)

// report is one line from a member to the demo: all roles that it found itself
// leading when it looked. Times are CLOCK_MONOTONIC.
type report struct {
	At  time.Duration `json:"at"`
	Led []sighting    `json:"led,omitempty"`
}

// sighting is one look at one role that was led.
type sighting struct {
	Role   int           `json:"role"`
	Token  int64         `json:"token"`
	Before time.Duration `json:"before"` // the clock just before the look
	After  time.Duration `json:"after"`  // and just after it
}

// member contends for all roles, and reports every millisecond on standard output
// which of them it leads, until standard input says "close" or ends.
func member(name, bootstrap string) error {
	signal.Ignore(os.Interrupt, syscall.SIGTERM) // Ctrl-C is for the demo, which ends its members
	n, err := neli.New(neli.Config{
		KafkaConfig:      neli.KafkaConfigMap{"bootstrap.servers": bootstrap},
		LeaderGroupID:    "demo",
		Name:             name,
		Roles:            roles,
		Partitions:       roles,
		HeartbeatTimeout: timeout,
	})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- n.Lead(context.Background(), work) }()
	sampled := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(sampled)
		sample(n, stop)
	}()

	awaitClose(os.Stdin)
	err = n.Close()
	close(stop)
	<-sampled
	if lead := <-ended; !errors.Is(lead, neli.ErrClosed) {
		err = errors.Join(err, lead)
	}
	return err
}

// work is where a real member would do something; ctx ends with the leadership.
func work(ctx context.Context, _ neli.Leadership) error {
	<-ctx.Done()
	return nil
}

// awaitClose waits for an orderly end. The end of in means that the demo has died:
// then nothing is worth finishing.
func awaitClose(in io.Reader) {
	if line, _ := bufio.NewReader(in).ReadString('\n'); line != "close\n" {
		os.Exit(1)
	}
}

// sample writes a report every millisecond in which something is led, and one when
// that ends. A write goes to the pipe at once, so SIGKILL loses none.
func sample(n *neli.Neli, stop <-chan struct{}) {
	out := json.NewEncoder(os.Stdout)
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	led := true // so that the first report says that nothing is led yet
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		r := look(n)
		if !led && len(r.Led) == 0 {
			continue
		}
		led = len(r.Led) > 0
		if err := out.Encode(r); err != nil {
			fmt.Fprintln(os.Stderr, "demo: reporting:", err)
			os.Exit(1)
		}
	}
}

func look(n *neli.Neli) report {
	r := report{At: now()}
	for role := range roles {
		before := now()
		token, leads := n.Token(role)
		after := now()
		if leads {
			r.Led = append(r.Led, sighting{Role: role, Token: token, Before: before, After: after})
		}
	}
	return r
}
