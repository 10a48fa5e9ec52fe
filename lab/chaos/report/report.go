// Package report writes the report of a run.
package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/goneli/neli/lab/bench/measure"
	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/chaos/oracle"
	"github.com/goneli/neli/lab/chaos/wire"
)

// Subject is everything that is reported.
type Subject struct {
	Settings [][2]string // in the order of the report: seed, versions and so on
	Record   history.Record
	Verdict  oracle.Verdict
	Packets  wire.Count
	Peers    bool // there was no non-exclusive mode
	Dir      string
}

// Name is the name of the file.
const Name = "report.txt"

// Write writes the file.
func Write(s Subject) error {
	file, err := os.Create(filepath.Join(s.Dir, Name))
	if err != nil {
		return err
	}
	Text(file, s)
	return file.Close()
}

// Text writes the report for reading.
func Text(to io.Writer, s Subject) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	defer w.Flush()
	verdict := "OK: no violation"
	if n := len(s.Verdict.Violations); n > 0 {
		verdict = "FAILED: " + violations(n)
	}
	fmt.Fprintf(w, "%s\n\n", verdict)
	for _, v := range s.Verdict.Violations {
		fmt.Fprintf(w, "! %s\n", v)
	}
	if len(s.Verdict.Violations) > 0 {
		fmt.Fprintln(w)
	}
	for _, pair := range s.Settings {
		fmt.Fprintf(w, "%s\t%s\n", pair[0], pair[1])
	}
	if s.Record.Log.Proof != "" {
		fmt.Fprintf(w, "proven by the topic\t%s\n", s.Record.Log.Proof)
	}
	fmt.Fprintf(w, "packets\t%d carried, %d cut off, %d lost, %d dropped from full queues\n",
		s.Packets.Carried, s.Packets.Cut, s.Packets.Lost, s.Packets.Overflowed)
	faultTable(w, s)
	gapTable(w, s)
	failOverTable(w, s)
	storeTable(w, s)
	termTable(w, s)
	longGaps(w, s)
	runRow(w, s)
}

func violations(n int) string {
	if n == 1 {
		return "1 violation"
	}
	return fmt.Sprintf("%d violations", n)
}

func faultTable(w io.Writer, s Subject) {
	fmt.Fprintf(w, "\nFaults\t\t\t\nfrom\tto\tkind\twhat\n")
	for _, f := range sorted(s.Record.Faults) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.at(f.Span.From), s.at(f.Span.To), f.Kind, f.Label)
	}
}

// gapTable lists the times without a leader by kind of fault. A gap of a role lasts from the last
// proof of one leader to the first proof of the next. If the fault struck members, its row has only
// the roles that these led; other roles that moved have a row of their own.
func gapTable(w io.Writer, s Subject) {
	counts, steps := map[string]int{}, map[int]bool{}
	for _, f := range s.Record.Faults {
		if !steps[f.Step] {
			steps[f.Step] = true
			counts[f.Kind]++
		}
	}
	for mode := range history.Modes {
		if mode == history.NonExclusive && s.Peers {
			return
		}
		fmt.Fprintf(w, "\nTime without a leader, %s, ms, over %d roles\t\t\t\t\t\t\n", history.ModeName(mode), s.Record.Roles)
		fmt.Fprintf(w, "after\tfaults\tgaps\tmedian\tp95\tmax\ttotal\n")
		kinds := []string{oracle.NoFault}
		for _, f := range sorted(s.Record.Faults) {
			if !slices.Contains(kinds, f.Kind) {
				kinds = append(kinds, f.Kind)
			}
		}
		slices.Sort(kinds[1:])
		var all []time.Duration
		for _, kind := range kinds {
			var lengths []time.Duration
			for _, g := range s.Verdict.Gaps {
				if g.Mode == mode && g.Kind == kind && !g.Aside {
					lengths = append(lengths, g.Length())
				}
			}
			all = append(all, lengths...)
			if kind != oracle.NoFault || len(lengths) > 0 {
				spreadRow(w, kind, fmt.Sprint(counts[kind]), lengths)
			}
		}
		var aside []time.Duration
		for _, g := range s.Verdict.Gaps {
			if g.Mode == mode && g.Aside {
				aside = append(aside, g.Length())
			}
		}
		spreadRow(w, "of roles whose leader was not struck", "", aside)
		spreadRow(w, "all", fmt.Sprint(len(steps)), append(all, aside...))
	}
	fmt.Fprintf(w, "\nnon-exclusive, longest time that was certainly without a leader\t%d ms\n", ms(s.Verdict.Uncovered))
}

// failOverTable has the figures of docs/failover.md, if faults struck leaders only.
func failOverTable(w io.Writer, s Subject) {
	fmt.Fprintf(w, "\nFail-over, exclusive, s\t\t\t\t\nafter\tfaults\tmedian\tworst\tbound\n")
	for _, o := range s.Verdict.FailOvers {
		var seconds []float64
		for _, l := range o.Lengths {
			seconds = append(seconds, l.Seconds())
		}
		d := measure.SpreadOf(seconds)
		fmt.Fprintf(w, "%s\t%d\t%.2f\t%.2f\t%.1f\n", o.Kind, d.N, d.Median, d.Max, o.Bound.Seconds())
	}
}

func spreadRow(w io.Writer, kind, count string, lengths []time.Duration) {
	var all []float64
	var total time.Duration
	for _, l := range lengths {
		all, total = append(all, measure.Milliseconds(l)), total+l
	}
	d := measure.SpreadOf(all)
	if d.N == 0 {
		fmt.Fprintf(w, "%s\t%s\t0\t–\t–\t–\t0\n", kind, count)
		return
	}
	fmt.Fprintf(w, "%s\t%s\t%d\t%.0f\t%.0f\t%.0f\t%d\n", kind, count, d.N, d.Median, d.P95, d.Max, ms(total))
}

func storeTable(w io.Writer, s Subject) {
	c := s.Verdict.Writes
	fmt.Fprintf(w, "\nStore\t\n")
	fmt.Fprintf(w, "writes accepted\t%d\n", c.Accepted)
	fmt.Fprintf(w, "writes rejected by their token\t%d\n", c.Rejected)
	fmt.Fprintf(w, "writes of unknown outcome\t%d\n", c.Unknown)
	fmt.Fprintf(w, "writes not sent\t%d\n", c.NotSent)
	fmt.Fprintf(w, "reads\t%d\n", c.Reads)
	fmt.Fprintf(w, "claims of terms, by fences\t%d\n", c.Claims)
	fmt.Fprintf(w, "stale writes that the unguarded register took\t%d\n", c.Stale)
	for role, verdict := range s.Verdict.Registers {
		fmt.Fprintf(w, "register of role %d\t%s\n", role, verdict)
	}
}

func termTable(w io.Writer, s Subject) {
	fmt.Fprintf(w, "\nTerms, exclusive\t\t\t\t\nrole\ttoken\tmember\tfrom\tto\n")
	for role, terms := range s.Verdict.Terms {
		for _, t := range terms {
			fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%s\n", role, t.Token, t.Member, s.at(t.First.After), s.at(t.Last.Before))
		}
	}
}

func longGaps(w io.Writer, s Subject) {
	const long = time.Second
	fmt.Fprintf(w, "\nGaps longer than %v\t\t\t\t\nmode\trole\tfrom\tms\tafter\n", long)
	for _, g := range s.Verdict.Gaps {
		if g.Length() >= long {
			fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%s\n", history.ModeName(g.Mode), g.Role, s.at(g.From), ms(g.Length()), g.Kind)
		}
	}
}

// runRow is this run's row for the table of docs/correctness.md. Its longest time without a leader counts only
// faults that have a bound and struck the role's leader.
func runRow(w io.Writer, s Subject) {
	sorts := map[string]int{}
	for _, f := range s.Record.Faults {
		sorts[f.Sort]++
	}
	var kinds []string
	for _, sort := range slices.Sorted(maps.Keys(sorts)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", sorts[sort], sort))
	}
	terms, longest, bound, kind := 0, time.Duration(0), time.Duration(0), "–"
	for _, of := range s.Verdict.Terms {
		terms += len(of)
	}
	for _, o := range s.Verdict.FailOvers {
		if l := slices.Max(o.Lengths); l > longest {
			longest, bound, kind = l, o.Bound, o.Kind
		}
	}
	fmt.Fprintf(w, "\n| hours | faults | terms | violations | longest time without a leader, its bound, s |\n")
	fmt.Fprintf(w, "| %.1f | %d: %s | %d | %d | %.1f, %.1f (%s) |\n", (s.Record.End - s.Record.Start).Hours(), len(s.Record.Faults),
		strings.Join(kinds, ", "), terms, len(s.Verdict.Violations), longest.Seconds(), bound.Seconds(), kind)
}

func ms(d time.Duration) int64 { return d.Round(time.Millisecond).Milliseconds() }

// at writes a time since the start, in seconds.
func (s Subject) at(t time.Duration) string {
	return fmt.Sprintf("%.3f", (t - s.Record.Start).Seconds())
}

func sorted(faults []history.Fault) []history.Fault {
	return slices.SortedStableFunc(slices.Values(faults), func(a, b history.Fault) int {
		return cmp.Compare(a.Span.From, b.Span.From)
	})
}
