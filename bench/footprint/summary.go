package footprint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

func (u *Usage) summarise(samples []sample) {
	u.Start = median(samples, func(s sample) time.Duration { return s.start })
	u.Memory = median(samples, func(s sample) uint64 { return s.memory })
	u.Threads = median(samples, func(s sample) int { return s.threads })
}

func median[T cmp.Ordered](samples []sample, of func(sample) T) T {
	values := make([]T, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// Table returns a Markdown table of the programs.
func Table(usages []Usage) string {
	const mb = 1e6
	var b strings.Builder
	b.WriteString("| client | binary | stripped | modules | start until it knows who leads | memory standing by | threads |\n|---|---|---|---|---|---|---|\n")
	for _, u := range usages {
		fmt.Fprintf(&b, "| %s | %.1f MB | %.1f MB | %d |", u.Client, float64(u.Binary)/mb, float64(u.Stripped)/mb, u.Modules)
		if u.Start == 0 {
			b.WriteString(" – | – | – |\n") // only built
			continue
		}
		fmt.Fprintf(&b, " %v | %.1f MB | %d |\n", u.Start.Round(time.Millisecond), float64(u.Memory)/mb, u.Threads)
	}
	return b.String()
}
