//go:build unix

// Package show has what the demos share: they start members as processes of their own, read how these see their leadership,
// one look each millisecond, show who leads, and check at the end that no promise was broken.
package show

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/goneli/neli/lab/nursery"
	"github.com/goneli/neli/lab/witness"
)

// conclude prints what happened. Its error lists broken promises.
func (s *Story) conclude() error {
	fmt.Fprintf(s.out, "\nWhat happened, by the members' own looks at their leadership, one each millisecond:\n\n")
	table := tabwriter.NewWriter(s.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "event\trole\tfrom\tto\tnext leader after\twithout a leader")
	changes, looks, terms, faults := s.judge()
	took := make([]time.Duration, len(s.steps)) // from a step until the last role that moved had its next leader
	for i, step := range s.steps {
		event := step.what
		for _, c := range changes {
			led := c.to.Proven().From
			if led < step.at || i+1 < len(s.steps) && led >= s.steps[i+1].at {
				continue
			}
			took[i] = max(took[i], led-step.at)
			fmt.Fprintf(table, "%s\t%d\t%s #%d\t%s #%d\t%v\t%v\n", event, c.to.Role, c.from.Member, c.from.Token, c.to.Member, c.to.Token,
				rough(led-step.at), rough(led-c.from.Proven().To))
			event = ""
		}
		if event != "" {
			fmt.Fprintf(table, "%s\t–\t\t\tno role moved\n", event)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "\n%d looks at a leader, %d terms of leadership checked against each other.\n", looks, terms)
	if len(faults) > 0 {
		return fmt.Errorf("VIOLATIONS:\n%s", strings.Join(faults, "\n"))
	}
	fmt.Fprintln(s.out, "Overlaps: none. Tokens: strictly increasing in every role.")
	s.compare(took)
	return nil
}

// change is a change of leader, or a new term of the same one.
type change struct{ from, to witness.Term }

// judge returns all changes in chronological order, how often a look found a leader, the number of terms, and broken promises.
func (s *Story) judge() (changes []change, looks int64, terms int, faults []string) {
	for role := range Roles {
		var of []witness.Term
		for _, p := range s.Members {
			runs := p.Samples.Runs().Of(0, role)
			of = append(of, witness.Terms(p.Name, runs)...)
			for _, r := range runs {
				if r.Answer != witness.No {
					looks += r.Samples
				}
			}
		}
		slices.SortFunc(of, func(a, b witness.Term) int { return cmp.Compare(a.First.After, b.First.After) })
		for i := 1; i < len(of); i++ {
			changes = append(changes, change{of[i-1], of[i]})
		}
		terms += len(of)
		faults = append(faults, witness.TermFaults(of)...)
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.to.First.After, b.to.First.After) })
	return changes, looks, terms, faults
}

// longestBar is the length of the longest bar, in cells.
const longestBar = 50

// compare prints a bar for each step that has one: how long it took until the last of the roles that moved had its next leader.
func (s *Story) compare(took []time.Duration) {
	bars, longest := map[string]time.Duration{}, time.Duration(0)
	for i, step := range s.steps {
		if step.bar != "" && took[i] > 0 {
			bars[step.bar], longest = took[i], max(longest, took[i])
		}
	}
	if len(bars) > 0 {
		fmt.Fprintf(s.out, "\nKilled → all of its roles led again:\n\n")
	}
	for _, step := range s.steps {
		if d, ok := bars[step.bar]; ok {
			fmt.Fprintf(s.out, "%-20s▏%s %v\n", step.bar, strings.Repeat("█", int(d*longestBar/longest)), rough(d))
		}
	}
}

// rough rounds a duration for the reader.
func rough(d time.Duration) time.Duration {
	if d < 100*time.Millisecond {
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}

// Main runs a demo, or one of its members: the demo starts this program again for each of them. tell is what happens in
// the demo. width is the width of the columns of roles.
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
