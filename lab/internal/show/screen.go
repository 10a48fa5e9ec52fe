//go:build unix

package show

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/goneli/neli/lab/witness"
)

const (
	// fresh is the greatest age of a leader's last look at which it is still shown as leader.
	fresh = 250 * time.Millisecond
	// tick is how often the screen shows changes. Changes within a tick are in one line.
	tick = 50 * time.Millisecond
)

// lane is who leads a role, by the member's own looks; "": no member.
type lane struct {
	member string
	token  int64
}

func (l lane) String() string {
	if l.member == "" {
		return "—"
	}
	return fmt.Sprintf("%s #%d", l.member, l.token)
}

type lanes [Roles]lane

// leaders returns who leads now.
func (s *Story) leaders() (now lanes) {
	var newest [Roles]time.Duration
	for _, p := range s.Members {
		for role := range now {
			r, ok := p.Samples.Latest(0, role)
			if ok && r.Answer != witness.No && witness.Now()-r.Last.After <= fresh && r.Last.After > newest[role] {
				now[role], newest[role] = lane{p.Name, r.Answer}, r.Last.After
			}
		}
	}
	return now
}

// Shares returns how many roles each member leads now.
func (s *Story) Shares() map[string]int {
	shares := map[string]int{}
	for _, l := range s.leaders() {
		shares[l.member]++
	}
	return shares
}

// screen shows who leads, in columns of this width, and what is said. It shows times since epoch.
type screen struct {
	out      io.Writer
	epoch    time.Duration
	width    int
	shown    lanes
	looked   time.Duration
	headless bool // the names of the columns have to be printed
}

func (s *screen) say(format string, args ...any) {
	fmt.Fprintf(s.out, "\n%s  %s\n", s.stamp(witness.Now()), fmt.Sprintf(format, args...))
	s.headless = true
}

func (s *screen) stamp(t time.Duration) string {
	return fmt.Sprintf("%5.1f s", (t - s.epoch).Seconds())
}

// show prints the leaders, if they have changed.
func (s *screen) show(now lanes) {
	t := witness.Now()
	if t-s.looked < tick {
		return
	}
	s.looked = t
	if now == s.shown {
		return
	}
	s.shown = now
	if s.headless {
		s.headless = false
		fmt.Fprintln(s.out, s.columns("       ", "role 0", "role 1", "role 2", "role 3"))
	}
	fmt.Fprintln(s.out, s.columns(s.stamp(t), now[0], now[1], now[2], now[3]))
}

func (s *screen) columns(stamp string, cells ...any) string {
	line := stamp + "  "
	for _, cell := range cells {
		line += fmt.Sprintf("  %-*v", s.width, cell)
	}
	return strings.TrimRight(line, " ")
}
