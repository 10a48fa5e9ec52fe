//go:build unix

package show

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

// lane is who leads a role, by the member's own reports; "": no member.
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

// Lanes are the leaders of all roles.
type Lanes [Roles]lane

// Shared reports whether all roles are led by these members, and each member in must leads at least one.
func (l Lanes) Shared(must, members []string) bool {
	led := 0
	for _, m := range members {
		share := len(l.Share(m))
		if share == 0 && slices.Contains(must, m) {
			return false
		}
		led += share
	}
	return led == Roles
}

// Share returns the roles that a member leads.
func (l Lanes) Share(member string) []int {
	var share []int
	for role, lane := range l {
		if lane.member == member {
			share = append(share, role)
		}
	}
	return share
}

const (
	// fresh is the greatest age of a leader's last report at which it is still shown as leader.
	fresh = 250 * time.Millisecond
	// tick is how often the display looks for changes. Changes within a tick are shown in one line.
	tick = 50 * time.Millisecond
	// patience is the longest wait for anything.
	patience = 40 * time.Second
)

// Watch receives the members' reports, shows changes as they happen, and records the terms for the final
// check.
type Watch struct {
	mu       sync.Mutex
	out      io.Writer
	epoch    time.Duration
	history  history
	current  Lanes
	seen     [Roles]time.Duration // the last report of each present leader
	idle     map[string]time.Duration
	reports  int
	shown    Lanes
	width    int
	headless bool // the names of the columns have to be printed
}

// NewWatch returns a Watch that writes to out, in columns of this width. It shows times since epoch.
func NewWatch(out io.Writer, epoch time.Duration, width int) *Watch {
	return &Watch{out: out, epoch: epoch, width: width, idle: map[string]time.Duration{}}
}

// Heard takes a report.
func (w *Watch) Heard(member string, r Report) {
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

// Lanes returns who leads now.
func (w *Watch) Lanes() Lanes {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lanesAt(Now())
}

func (w *Watch) lanesAt(t time.Duration) Lanes {
	l := w.current
	for role := range l {
		if t-w.seen[role] > fresh {
			l[role] = lane{}
		}
	}
	return l
}

// IdleSince returns when member first said, at t or later, that it leads nothing.
func (w *Watch) IdleSince(member string, t time.Duration) (time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.idle[member]
	return at, ok && at >= t
}

// Say prints one line of the story.
func (w *Watch) Say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.out, "\n%s  %s\n", w.stamp(Now()), fmt.Sprintf(format, args...))
	w.headless = true
}

func (w *Watch) stamp(t time.Duration) string {
	return fmt.Sprintf("%5.1f s", (t - w.epoch).Seconds())
}

// Start shows changes from now on, until the function that it returns is called.
func (w *Watch) Start() (stop func()) {
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

// show prints the leaders, if they have changed.
func (w *Watch) show() {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := Now()
	l := w.lanesAt(t)
	if l == w.shown {
		return
	}
	w.shown = l
	if w.headless {
		w.headless = false
		fmt.Fprintln(w.out, w.columns("       ", [Roles]string{"role 0", "role 1", "role 2", "role 3"}))
	}
	var cells [Roles]string
	for role, lane := range l {
		cells[role] = lane.String()
	}
	fmt.Fprintln(w.out, w.columns(w.stamp(t), cells))
}

func (w *Watch) columns(stamp string, cells [Roles]string) string {
	var line strings.Builder
	line.WriteString(stamp + "  ")
	for _, cell := range cells {
		fmt.Fprintf(&line, "  %-*s", w.width, cell)
	}
	return strings.TrimRight(line.String(), " ")
}

// Await waits until ok returns true.
func (w *Watch) Await(ctx context.Context, what string, ok func() bool) error {
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

// Step is something that was done to a member.
type Step struct {
	What string
	At   time.Duration
}

// Conclude prints what happened. Its error lists broken promises.
func (w *Watch) Conclude(steps []Step) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.out, "\nWhat happened, by the members' own looks at their leadership, one each millisecond:\n\n")
	table := tabwriter.NewWriter(w.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "event\trole\tfrom\tto\tnext leader after\twithout a leader")
	for i, s := range steps {
		next := Now()
		if i+1 < len(steps) {
			next = steps[i+1].At
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
func (w *Watch) tabulate(out io.Writer, s Step, next time.Duration) {
	event := s.What
	for _, h := range w.history.handovers() {
		if h.to.from < s.At || h.to.from >= next {
			continue
		}
		fmt.Fprintf(out, "%s\t%d\t%s #%d\t%s #%d\t%v\t%v\n", event, h.to.role,
			h.from.member, h.from.token, h.to.member, h.to.token, Rough(h.to.from-s.At), Rough(h.gap))
		event = ""
	}
	if event != "" {
		fmt.Fprintf(out, "%s\t–\t\t\tno role moved\n", event)
	}
}

// bar is the length of the longest bar, in cells.
const bar = 50

// Compare prints a bar for each step that has a name in names. The bar shows how long it took until the
// last of the roles that moved had its next leader.
func (w *Watch) Compare(steps []Step, names map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	longest, took := time.Duration(0), map[string]time.Duration{}
	for i, s := range steps {
		next := Now()
		if i+1 < len(steps) {
			next = steps[i+1].At
		}
		for _, h := range w.history.handovers() {
			if names[s.What] != "" && h.to.from >= s.At && h.to.from < next {
				took[s.What] = max(took[s.What], h.to.from-s.At)
			}
		}
		longest = max(longest, took[s.What])
	}
	fmt.Fprintf(w.out, "\nKilled → all of its roles led again:\n\n")
	for _, s := range steps {
		if d, ok := took[s.What]; ok {
			cells := strings.Repeat("█", int(d*bar/longest))
			fmt.Fprintf(w.out, "%-20s▏%s %v\n", names[s.What], cells, Rough(d))
		}
	}
}

// Rough rounds a duration for the reader.
func Rough(d time.Duration) time.Duration {
	if d < 100*time.Millisecond {
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}
