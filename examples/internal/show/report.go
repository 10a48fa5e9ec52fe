//go:build unix

// Package show has what the demos share: member processes that report once a millisecond which roles they
// lead, and a watch that shows the reports and checks them.
package show

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/goneli/neli"
)

// Roles is the number of roles.
const Roles = 4

// Report is one line from a member to the demo: all roles that it found itself leading
// when it looked. Times are CLOCK_MONOTONIC.
type Report struct {
	At  time.Duration `json:"at"`
	Led []Sighting    `json:"led,omitempty"`
}

// Sighting is one look that found one role led.
type Sighting struct {
	Role   int           `json:"role"`
	Token  int64         `json:"token"`
	Before time.Duration `json:"before"` // the clock just before the look
	After  time.Duration `json:"after"`  // the clock just after it
}

// Orders yields the demo's orders to a member, until "close". If in ends before that, the demo has died,
// and the member exits at once.
func Orders(in io.Reader) iter.Seq[string] {
	return func(yield func(string) bool) {
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			if lines.Text() == "close" || !yield(lines.Text()) {
				return
			}
		}
		os.Exit(1)
	}
}

// Sample writes a report every millisecond while the member leads something, and one more when that ends.
// A write goes to the pipe at once, so SIGKILL loses none.
func Sample(n *neli.Neli, stop <-chan struct{}) {
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

func look(n *neli.Neli) Report {
	r := Report{At: Now()}
	for role := range Roles {
		before := Now()
		token, leads := n.Token(role)
		after := Now()
		if leads {
			r.Led = append(r.Led, Sighting{Role: role, Token: token, Before: before, After: after})
		}
	}
	return r
}
