//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// lane is who leads a role, as far as its own word goes; nobody if member is "".
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

// lanes are the leaders of all roles.
type lanes [roles]lane

// shared tells whether all roles are led by these members, and those of them that
// must lead one do.
func (l lanes) shared(must, members []string) bool {
	led := 0
	for _, m := range members {
		share := len(l.share(m))
		if share == 0 && slices.Contains(must, m) {
			return false
		}
		led += share
	}
	return led == roles
}

// share returns the roles that a member leads.
func (l lanes) share(member string) []int {
	var share []int
	for role, lane := range l {
		if lane.member == member {
			share = append(share, role)
		}
	}
	return share
}

const (
	// fresh is how old a leader's last word may be for it to be shown as leader.
	fresh = 250 * time.Millisecond
	// tick is how often the display looks for changes; those in between become one
	// line.
	tick = 50 * time.Millisecond
	// patience is for how long anything may be waited for.
	patience = 40 * time.Second
)

// watch takes the members' reports, shows changes as they happen and keeps what
// has to be proved.
type watch struct {
	mu       sync.Mutex
	out      io.Writer
	epoch    time.Duration
	history  history
	current  lanes
	seen     [roles]time.Duration // the last word of each current leader
	idle     map[string]time.Duration
	reports  int
	shown    lanes
	headless bool // the columns' names are due
}

func newWatch(out io.Writer, epoch time.Duration) *watch {
	return &watch{out: out, epoch: epoch, idle: map[string]time.Duration{}}
}

// heard takes a report.
func (w *watch) heard(member string, r report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reports++
	if len(r.Led) == 0 {
		w.idle[member] = r.At
	}
	for role := range w.current {
		if w.current[role].member == member {
			w.current[role] = lane{}
		}
	}
	for _, s := range r.Led {
		w.history.add(member, s)
		w.current[s.Role], w.seen[s.Role] = lane{member, s.Token}, s.After
	}
}

// lanes returns who leads at this moment.
func (w *watch) lanes() lanes {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lanesAt(now())
}

func (w *watch) lanesAt(t time.Duration) lanes {
	l := w.current
	for role := range l {
		if t-w.seen[role] > fresh {
			l[role] = lane{}
		}
	}
	return l
}

// idleSince returns when member first said, at t or later, that it leads nothing.
func (w *watch) idleSince(member string, t time.Duration) (time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.idle[member]
	return at, ok && at >= t
}

// say prints one line of the story.
func (w *watch) say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.out, "\n%s  %s\n", w.stamp(now()), fmt.Sprintf(format, args...))
	w.headless = true
}

func (w *watch) stamp(t time.Duration) string {
	return fmt.Sprintf("%5.1f s", (t - w.epoch).Seconds())
}

// start shows changes from now on, until the function that it returns is called.
func (w *watch) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				w.show()
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// show prints who leads what, if that has changed.
func (w *watch) show() {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := now()
	l := w.lanesAt(t)
	if l == w.shown {
		return
	}
	w.shown = l
	if w.headless {
		w.headless = false
		fmt.Fprintln(w.out, columns("       ", [roles]string{"role 0", "role 1", "role 2", "role 3"}))
	}
	var cells [roles]string
	for role, lane := range l {
		cells[role] = lane.String()
	}
	fmt.Fprintln(w.out, columns(w.stamp(t), cells))
}

func columns(stamp string, cells [roles]string) string {
	var line strings.Builder
	line.WriteString(stamp + "  ")
	for _, cell := range cells {
		fmt.Fprintf(&line, "  %-12s", cell)
	}
	return strings.TrimRight(line.String(), " ")
}

// await waits until ok says so.
func (w *watch) await(ctx context.Context, what string, ok func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%s: not within %v", what, patience))
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
	return nil
}

// step is something that was done to a member.
type step struct {
	what string
	at   time.Duration
}

// conclude prints what happened. The error tells of broken promises.
func (w *watch) conclude(steps []step) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.out, "\nWhat happened, by the members' own looks at their leadership, one each millisecond:\n\n")
	table := tabwriter.NewWriter(w.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "event\trole\tfrom\tto\tnext leader after\twithout a leader")
	for i, s := range steps {
		next := now()
		if i+1 < len(steps) {
			next = steps[i+1].at
		}
		w.tabulate(table, s, next)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	found := w.history.violations()
	fmt.Fprintf(w.out, "\n%d reports, %d terms of leadership checked against each other.\n", w.reports, len(w.history.terms))
	if len(found) == 0 {
		fmt.Fprintln(w.out, "Overlaps: none. Tokens: strictly increasing in every role.")
		return nil
	}
	return fmt.Errorf("VIOLATIONS:\n%s", strings.Join(found, "\n"))
}

// tabulate writes the handovers between s and the next step.
func (w *watch) tabulate(out io.Writer, s step, next time.Duration) {
	event := s.what
	for _, h := range w.history.handovers() {
		if h.to.from < s.at || h.to.from >= next {
			continue
		}
		fmt.Fprintf(out, "%s\t%d\t%s #%d\t%s #%d\t%v\t%v\n", event, h.to.role,
			h.from.member, h.from.token, h.to.member, h.to.token, rough(h.to.from-s.at), rough(h.gap))
		event = ""
	}
	if event != "" {
		fmt.Fprintf(out, "%s\t–\t\t\tno role moved\n", event)
	}
}

// rough rounds to what a reader wants to know.
func rough(d time.Duration) time.Duration {
	if d < 100*time.Millisecond {
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}
