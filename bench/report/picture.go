package report

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	svg "github.com/ajstarks/svgo/float"

	"github.com/goneli/neli/bench/measure"
)

// Measures, in pixels.
const (
	labelWidth   = 390.0
	plotWidth    = 720.0
	rightMargin  = 40.0
	topMargin    = 84.0
	rowHeight    = 24.0
	bottomMargin = 60.0
)

var colours = map[string]string{"neli": "#2e7d32", "etcd": "#4c78a8", "raft": "#e67e22", "redsync": "#b04a5a"}

// picture draws the fail-over times: a row for each system, a dot for each trial, on
// one logarithmic axis.
type picture struct {
	*svg.SVG
	rows          []System
	least, most   float64 // of the axis, ms
	width, height float64
}

// machines are what the systems were measured on.
func (r *Results) machines() string {
	var all []string
	for _, id := range r.runsOf("systems") {
		if run := r.run(id); run.Machine != "" && !slices.Contains(all, run.Machine) {
			all = append(all, run.Machine)
		}
	}
	return strings.Join(all, "; ")
}

// Picture is an SVG.
func (r *Results) Picture() string {
	p := &picture{least: math.Inf(1), most: math.Inf(-1)}
	for _, s := range r.Systems {
		if s.Results != nil && len(s.Killed) > 0 {
			p.rows = append(p.rows, s)
			spread := measure.SpreadOf(s.Killed)
			p.least, p.most = min(p.least, spread.Min, s.Lease), max(p.most, spread.Max, s.Lease)
		}
	}
	if len(p.rows) == 0 {
		p.least, p.most = 1, 10
	}
	p.least, p.most = math.Max(1, p.least/1.3), p.most*1.3
	p.width = labelWidth + plotWidth + rightMargin
	p.height = topMargin + rowHeight*float64(len(p.rows)) + bottomMargin
	var text bytes.Buffer
	p.SVG = svg.New(&text)
	p.Start(p.width, p.height, `font-family="Helvetica, Arial, sans-serif" font-size="11"`)
	p.Rect(0, 0, p.width, p.height, "fill:white")
	p.Text(12, 24, "SIGKILL of the leader → the next one leads", "font-size:18px;font-weight:bold;fill:#222")
	p.Text(12, 44, fmt.Sprintf("each dot a trial; ticks: median and lease time; milliseconds, logarithmic; %s", r.machines()), "fill:#555")
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

// axis has a line at 1, 2 and 5 times each power of ten.
func (p *picture) axis() {
	bottom := p.y(len(p.rows)) - rowHeight/2
	for power := 1.0; power <= p.most; power *= 10 {
		for _, f := range []float64{1, 2, 5} {
			at := f * power
			if at < p.least || at > p.most {
				continue
			}
			p.Line(p.x(at), topMargin, p.x(at), bottom, "stroke:#ddd;stroke-width:0.8")
			for _, y := range []float64{topMargin - 8, bottom + 16} {
				p.Text(p.x(at), y, duration(at), "text-anchor:middle;fill:#555")
			}
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
	colour := colours[s.Family]
	if i%2 == 1 {
		p.Rect(0, y-rowHeight/2, p.width, rowHeight, "fill:#000;fill-opacity:0.03")
	}
	p.Text(labelWidth-12, y+4, s.Family+", "+s.Bed+", "+s.Setting, "text-anchor:end;fill:#222")
	p.Line(p.x(s.Lease), y-10, p.x(s.Lease), y+10, "stroke:#222;stroke-width:1;stroke-dasharray:2 2")
	for n, ms := range s.Killed {
		// Spread over the height by the golden ratio: neighbours do not hide each other.
		_, part := math.Modf(float64(n) * math.Phi)
		p.Circle(p.x(ms), y-7+14*part, 2.6, "fill:"+colour+";fill-opacity:0.55")
	}
	spread := measure.SpreadOf(s.Killed)
	p.Group()
	p.Title(fmt.Sprintf("%s: %s ms", s.Setting, span(spread)))
	p.Line(p.x(spread.Median), y-10, p.x(spread.Median), y+10, "stroke:"+colour+";stroke-width:2.4")
	p.Gend()
}

func span(s measure.Spread) string {
	return fmt.Sprintf("%s [%s–%s]", figure(s.Median), figure(s.Min), figure(s.Max))
}

func (p *picture) legend() {
	x, y := labelWidth, p.height-18
	for _, family := range []string{"neli", "etcd", "raft", "redsync"} {
		p.Circle(x, y-4, 4, "fill:"+colours[family])
		p.Text(x+10, y, family, "fill:#333")
		x += 80
	}
	p.Line(x, y-12, x, y+2, "stroke:#222;stroke-dasharray:2 2")
	p.Text(x+8, y, "lease", "fill:#333")
	p.Line(x+70, y-12, x+70, y+2, "stroke:#2e7d32;stroke-width:2.4")
	p.Text(x+78, y, "median", "fill:#333")
}
