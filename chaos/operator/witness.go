package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/goneli/neli/testkit/witness"
)

const overlapWord = "overlap"

// stint is one job's life, from its first line to its last.
type stint struct {
	witness.Span
	token int64
	name  string // of the machine
	found bool   // that another job had the lock
}

// readStints reads what jobs have written, in the order of their first lines.
func readStints(r io.Reader) ([]stint, error) {
	var all []stint
	for lines := bufio.NewScanner(r); ; {
		if !lines.Scan() {
			return all, lines.Err()
		}
		var at, token int64
		var name string
		if _, err := fmt.Sscanf(lines.Text(), "%d %d %s", &at, &token, &name); err != nil {
			return nil, fmt.Errorf("a job wrote %q: %w", lines.Text(), err)
		}
		i := slices.IndexFunc(all, func(s stint) bool { return s.token == token && s.name == name })
		if i < 0 {
			i = len(all)
			all = append(all, stint{Span: witness.Span{From: time.Duration(at)}, token: token, name: name})
		}
		all[i].To = time.Duration(at)
		all[i].found = all[i].found || strings.HasSuffix(lines.Text(), overlapWord)
	}
}

// overlaps is how many jobs ran while another one did, by the lock or by their lines.
func overlaps(all []stint) (n int) {
	for i, s := range all {
		if s.found || slices.ContainsFunc(all[:i], func(o stint) bool { return o.Meets(s.Span) }) {
			n++
		}
	}
	return n
}

// idle returns the times in a span when no job ran. Gaps shorter than a few lines of one job do not
// count.
func idle(all []stint, within witness.Span) []witness.Span {
	spans := make([]witness.Span, len(all))
	for i, s := range all {
		spans[i] = s.Span
	}
	return slices.DeleteFunc(witness.Without(within, spans), func(s witness.Span) bool { return s.Length() < 3*pace })
}
