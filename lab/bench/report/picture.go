package report

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	svg "github.com/ajstarks/svgo/float"

	"github.com/goneli/neli/lab/bench/measure"
)

// Measures, in pixels.
const (
	labelWidth   = 250.0
	plotWidth    = 600.0
	rightMargin  = 30.0
	topMargin    = 84.0
	rowHeight    = 28.0
	bottomMargin = 60.0
)

// style has the colours, with a background of its own, so that the picture can be read on light and
// dark pages, even if a page's theme differs from the reader's system.
const style = `
text{fill:#24292f}.dim{fill:#57606a}.ground{fill:#fff}.stripe{fill:#000;fill-opacity:.04}.grid{stroke:#d0d7de;stroke-width:.8}
.lease{stroke:#24292f;stroke-dasharray:2 2}.median{stroke-width:2.4}.crash{fill-opacity:.6}.hand{fill:none;stroke-width:1.3}
.neli{fill:#1a7f37;stroke:#1a7f37}.etcd{fill:#0969da;stroke:#0969da}.raft{fill:#bc4c00;stroke:#bc4c00}.redsync{fill:#a0457a;stroke:#a0457a}
.crash{stroke:none}.hand{fill:none}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.dim{fill:#9198a1}.ground{fill:#0d1117}.stripe{fill:#fff;fill-opacity:.05}.grid{stroke:#30363d}.lease{stroke:#e6edf3}
.neli{fill:#3fb950;stroke:#3fb950}.etcd{fill:#58a6ff;stroke:#58a6ff}.raft{fill:#f0883e;stroke:#f0883e}.redsync{fill:#db61a2;stroke:#db61a2}.crash{stroke:none}.hand{fill:none}}
`

var families = []string{"neli", "etcd", "raft", "redsync"}

// picture draws the time without a leader: a row for each system of the summary, a dot for
// each trial, filled after a crash, hollow at a hand-over, on one logarithmic axis.
type picture struct {
	*svg.SVG
	rows          []row
	least, most   float64 // of the axis, ms
	width, height float64
}

func class(names string) string { return `class="` + names + `"` }

// machines describes the machines on which the systems were measured. Where they differ, it lists
// the possibilities, joined by "or".
func (r *Results) machines() string {
	var all [][]string // by part of a machine's description: its different values
	for _, id := range r.runs() {
		for i, part := range strings.Split(r.run(id).Machine, ", ") {
			if i == len(all) {
				all = append(all, nil)
			}
			if part != "" && !slices.Contains(all[i], part) {
				all[i] = append(all[i], part)
			}
		}
	}
	var parts []string
	for _, part := range all {
		if len(part) > 0 {
			parts = append(parts, strings.Join(part, " or "))
		}
	}
	return strings.Join(parts, ", ")
}

// Picture is an SVG.
func (r *Results) Picture() string {
	p := &picture{least: math.Inf(1), most: math.Inf(-1)}
	for _, s := range r.shown() {
		if len(s.Killed) == 0 {
			continue
		}
		p.rows = append(p.rows, s)
		for _, ms := range slices.Concat(s.Killed, s.Gap, []float64{s.Lease}) {
			p.least, p.most = min(p.least, ms), max(p.most, ms)
		}
	}
	if len(p.rows) == 0 {
		p.least, p.most = 1, 10
	}
	p.least, p.most = math.Max(0.5, p.least/1.3), p.most*1.3
	p.width = labelWidth + plotWidth + rightMargin
	p.height = topMargin + rowHeight*float64(len(p.rows)) + bottomMargin
	var text bytes.Buffer
	p.SVG = svg.New(&text)
	p.Startview(p.width, p.height, 0, 0, p.width, p.height)
	p.Style("text/css", style+"text{font:12px Helvetica,Arial,sans-serif}.title{font-size:18px;font-weight:bold}")
	p.Rect(0, 0, p.width, p.height, class("ground"))
	p.Text(12, 24, "Time without a leader", class("title"))
	p.Text(12, 44, fmt.Sprintf("each dot a trial, logarithmic; %s", r.machines()), class("dim"))
	p.axis()
	for i := range p.rows {
		p.row(i)
	}
	p.legend()
	p.End()
	return text.String()
}

func (p *picture) x(ms float64) float64 {
	return labelWidth + plotWidth*math.Log(max(ms, p.least)/p.least)/math.Log(p.most/p.least)
}

func (p *picture) y(row int) float64 { return topMargin + rowHeight*(float64(row)+0.5) }

// axis has a line at each power of ten.
func (p *picture) axis() {
	bottom := p.y(len(p.rows)) - rowHeight/2
	for at := 1.0; at <= p.most; at *= 10 {
		if at < p.least {
			continue
		}
		p.Line(p.x(at), topMargin, p.x(at), bottom, class("grid"))
		for _, y := range []float64{topMargin - 8, bottom + 16} {
			p.Text(p.x(at), y, duration(at), class("dim")+` text-anchor="middle"`)
		}
	}
}

func duration(ms float64) string {
	if ms >= 1000 {
		return fmt.Sprintf("%g s", ms/1000)
	}
	return fmt.Sprintf("%g ms", ms)
}

func (p *picture) row(i int) {
	s, y := p.rows[i], p.y(i)
	if i%2 == 1 {
		p.Rect(0, y-rowHeight/2, p.width, rowHeight, class("stripe"))
	}
	p.Text(labelWidth-12, y+4, s.Called, `text-anchor="end"`)
	p.Line(p.x(s.Lease), y-11, p.x(s.Lease), y+11, class("lease"))
	for kind, values := range s.kinds() {
		p.Group()
		p.Title(fmt.Sprintf("%s, %s: %s ms", s.Called, kind, span(measure.SpreadOf(values))))
		for n, ms := range values {
			// Spread over the height by the golden ratio: neighbours do not hide each other.
			_, part := math.Modf(float64(n) * math.Phi)
			p.Circle(p.x(ms), y-8+16*part, 3, class(s.Family+" "+kind))
		}
		median := p.x(measure.SpreadOf(values).Median)
		p.Line(median, y-11, median, y+11, class(s.Family+" median"))
		p.Gend()
	}
}

// kinds are the trials that are drawn.
func (s row) kinds() iter.Seq2[string, []float64] {
	return func(yield func(string, []float64) bool) {
		_ = yield("crash", s.Killed) && len(s.Gap) > 0 && yield("hand", s.Gap)
	}
}

func span(s measure.Spread) string {
	return fmt.Sprintf("%s [%s–%s]", figure(s.Median), figure(s.Min), figure(s.Max))
}

func (p *picture) legend() {
	x, y := 12.0, p.height-18
	for _, family := range families {
		p.Circle(x+4, y-4, 4, class(family+" crash"))
		p.Text(x+14, y, family)
		x += 84
	}
	for _, kind := range []struct{ class, text string }{{"crash", "after SIGKILL of the leader"}, {"hand", "at a hand-over"}} {
		p.Circle(x+4, y-4, 4, class("neli "+kind.class))
		p.Text(x+14, y, kind.text)
		x += 190
	}
	p.Line(x-40, y-12, x-40, y+2, class("neli median"))
	p.Text(x-32, y, "median")
	p.Line(x+40, y-12, x+40, y+2, class("lease"))
	p.Text(x+48, y, "lease")
}
