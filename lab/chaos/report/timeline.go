package report

import (
	"fmt"
	"io"
	"slices"
	"time"

	svg "github.com/ajstarks/svgo/float"

	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/chaos/oracle"
	"github.com/goneli/neli/lab/chaos/plan"
	"github.com/goneli/neli/lab/witness"
)

// Measures, in pixels.
const (
	leftMargin   = 150.0
	rightMargin  = 30.0
	topMargin    = 84.0
	laneHeight   = 15.0
	barHeight    = 11.0
	groupGap     = 14.0
	bottomMargin = 70.0
)

// Fault colours, by action: a kill must be told from a cut-off at a glance.
var faultColours = map[string]string{
	"killed": "#c0392b", "stopped": "#8e44ad", "cut off": "#e67e22",
	"packets lost": "#2980b9", "slow": "#16a085", "restarted": "#7f8c8d",
	"handed over": "#c2185b", "unhealthy": "#827717", "deceived": "#34495e",
}

// Term colours. Neighbours differ, and none is the colour of a fault.
var termColours = []string{"#4c78a8", "#f2b134", "#59a14f", "#76b7b2", "#b07aa1", "#9c755f", "#86bcb6", "#d4a6c8"}

const gapColour = "#e4002b"

// timeline draws one run.
type timeline struct {
	Subject
	*svg.SVG
	scale         float64 // pixels a second
	width, height float64
	y             float64
}

// Timeline writes the picture: a lane for each host with its faults and, for each mode and role, a
// lane for each member with its terms.
func Timeline(to io.Writer, s Subject) {
	seconds := (s.Record.End - s.Record.Start).Seconds()
	t := &timeline{Subject: s, SVG: svg.New(to), scale: min(14, max(2, 12000/max(1, seconds)))}
	lanes := float64(len(s.Hosts) + history.Modes*s.Record.Roles*(1+len(s.Members)))
	groups := float64(1 + history.Modes*s.Record.Roles)
	t.width = leftMargin + seconds*t.scale + rightMargin
	t.width = max(t.width, 1100)
	t.height = topMargin + lanes*laneHeight + groups*groupGap + bottomMargin
	t.Start(t.width, t.height, `font-family="Helvetica, Arial, sans-serif" font-size="10"`)
	defer t.End()
	t.Rect(0, 0, t.width, t.height, "fill:white")
	t.title()
	t.y = topMargin
	t.bands()
	t.axis()
	t.faultLanes()
	for mode := range history.Modes {
		for role := range s.Record.Roles {
			t.group(mode, role)
		}
	}
	t.legend()
}

func (t *timeline) title() {
	head := ""
	for i, pair := range t.Settings {
		if i > 0 {
			head += " · "
		}
		head += pair[0] + " " + pair[1]
	}
	verdict, colour := "no violation", "#2e7d32"
	if n := len(t.Verdict.Violations); n > 0 {
		verdict, colour = fmt.Sprintf("%s: see %s", violations(n), TextName), gapColour
	}
	t.text(12, 24, "Chaos on a real cluster: "+verdict, "font-size:18px;font-weight:bold;fill:"+colour)
	t.text(12, 42, head, "font-size:11px;fill:#555")
}

func (t *timeline) x(at time.Duration) float64 {
	at = min(max(at, t.Record.Start), t.Record.End)
	return leftMargin + (at-t.Record.Start).Seconds()*t.scale
}

// bands shades the time of each fault over all lanes.
func (t *timeline) bands() {
	for _, f := range t.Record.Faults {
		x := t.x(f.Span.From)
		t.Rect(x, t.y-6, max(1, t.x(f.Span.To)-x), t.height-t.y-bottomMargin+6, "fill:"+faultColours[f.Sort]+";fill-opacity:0.09")
	}
}

// axis has a tick each ten seconds, above and below.
func (t *timeline) axis() {
	bottom := t.height - bottomMargin
	for at := t.Record.Start; at <= t.Record.End; at += 10 * time.Second {
		x := t.x(at)
		t.Line(x, t.y-6, x, bottom, "stroke:#ccc;stroke-width:0.6")
		label := fmt.Sprintf("%d s", int((at - t.Record.Start).Seconds()))
		t.text(x, t.y-10, label, "text-anchor:middle;fill:#555")
		t.text(x, bottom+14, label, "text-anchor:middle;fill:#555")
	}
}

// faultLanes has a bar for each fault in the lane of each host that it strikes.
func (t *timeline) faultLanes() {
	t.text(12, t.y+10, "faults", "font-weight:bold;fill:#222")
	for _, host := range t.Hosts {
		t.text(leftMargin-8, t.y+10, host, "text-anchor:end;fill:#333")
		t.Line(leftMargin, t.y+laneHeight/2, t.x(t.Record.End), t.y+laneHeight/2, "stroke:#e5e5e5")
		lane := slices.DeleteFunc(sorted(t.Record.Faults), func(f history.Fault) bool { return !slices.Contains(f.Targets, host) })
		for i, f := range lane {
			label, room := "", t.width
			if host == f.Targets[0] {
				label = f.Label
			}
			if i+1 < len(lane) {
				room = t.x(lane[i+1].Span.From)
			}
			t.bar(f.Span, faultColours[f.Sort], f.Kind+": "+f.Label, label, room)
		}
		t.y += laneHeight
	}
	t.y += groupGap
}

// group has the lanes of one role in one mode.
func (t *timeline) group(mode, role int) {
	t.text(12, t.y+10, fmt.Sprintf("%s, role %d", history.ModeName(mode), role), "font-weight:bold;fill:#222")
	t.Rect(leftMargin, t.y+2, t.x(t.Record.End)-leftMargin, laneHeight-4, "fill:#e8f5e9")
	for _, g := range t.Verdict.Gaps {
		if g.Mode == mode && g.Role == role {
			t.bar(g.Span, gapColour, "no leader", fmt.Sprintf("%.1f s", g.Length().Seconds()), inside)
		}
	}
	t.y += laneHeight
	for _, host := range t.Members {
		t.text(leftMargin-8, t.y+10, host, "text-anchor:end;fill:#333")
		for _, l := range t.Record.Lives {
			if l.Host == host {
				t.life(l)
				t.led(l, mode, role)
			}
		}
		if mode == history.Exclusive {
			t.writes(host, role)
		}
		t.y += laneHeight
	}
	t.y += groupGap
}

// life is a thin line while the member runs, dashed while it is suspended.
func (t *timeline) life(l history.Life) {
	y := t.y + laneHeight/2
	if x := t.x(l.Born); l.Died > t.Record.Start {
		t.Line(x, y, t.x(l.Died), y, "stroke:#999;stroke-width:1")
	}
	for _, s := range l.Stops {
		t.Rect(t.x(s.From), y-3, max(1, t.x(s.To)-t.x(s.From)), 6, "fill:#8e44ad;fill-opacity:0.35")
	}
	if l.Killed && l.Died < t.Record.End {
		t.cross(t.x(l.Died), y, "#c0392b")
	}
}

// led draws the terms of one incarnation, coloured by token or, without tokens, by member.
func (t *timeline) led(l history.Life, mode, role int) {
	if mode == history.Exclusive {
		for i, term := range t.Verdict.Terms[role] {
			if term.Member == l.Member {
				t.bar(term.Proven(), termColours[i%len(termColours)],
					fmt.Sprintf("%s led role %d under token %d", term.Member, role, term.Token), fmt.Sprint(term.Token), inside)
			}
		}
		return
	}
	host := slices.Index(t.Members, l.Host)
	for _, s := range oracle.Presumed(l, role, t.Presumption) {
		if s.To > t.Record.Start {
			t.bar(s, termColours[host%len(termColours)], fmt.Sprintf("%s led role %d", l.Member, role), "", inside)
		}
	}
}

// writes draws the rejected writes of a host.
func (t *timeline) writes(host string, role int) {
	for _, l := range t.Record.Lives {
		if l.Host != host {
			continue
		}
		for _, op := range t.Record.Ops {
			if op.Member == l.Member && op.Role == role && op.Outcome == history.Rejected {
				x := t.x(op.Invoked)
				t.Group()
				t.Title(fmt.Sprintf("a stale write of %s, token %d, was rejected at %s s", op.Member, op.Token, t.at(op.Invoked)))
				t.Polygon([]float64{x - 4, x + 4, x}, []float64{t.y + 1, t.y + 1, t.y + 9}, "fill:#111")
				t.Gend()
			}
		}
	}
}

// bar draws a span in the present lane. Its label is inside if it fits, or else to the right of the
// bar if it fits there, left of room.
func (t *timeline) bar(s witness.Span, colour, tip, label string, room float64) {
	x := t.x(s.From)
	w := max(1, t.x(s.To)-x)
	t.Group()
	t.Title(fmt.Sprintf("%s: %s to %s s", tip, t.at(s.From), t.at(s.To)))
	t.Rect(x, t.y+2, w, barHeight, "fill:"+colour)
	t.Gend()
	const perLetter = 5.2
	wide := float64(len([]rune(label))) * perLetter
	switch {
	case label == "":
	case wide+4 < w:
		t.text(x+3, t.y+11, label, "font-size:9px;fill:white")
	case x+w+4+wide < room:
		t.text(x+w+3, t.y+11, label, "font-size:9px;fill:#222")
	case room == t.width:
		t.text(x-3, t.y+11, label, "font-size:9px;fill:#222;text-anchor:end")
	}
}

// inside, as the argument room, allows no label beside the bar.
const inside = 0

func (t *timeline) cross(x, y float64, colour string) {
	style := "stroke-width:1.6;stroke:" + colour
	t.Line(x-3.5, y-3.5, x+3.5, y+3.5, style)
	t.Line(x-3.5, y+3.5, x+3.5, y-3.5, style)
}

func (t *timeline) legend() {
	y := t.height - 30
	x := 12.0
	item := func(label string, draw func()) {
		draw()
		t.text(x+20, y+9, label, "fill:#333")
		x += 32 + 5.6*float64(len([]rune(label)))
	}
	box := func(colour string) func() {
		return func() { t.Rect(x, y, 14, 11, "fill:"+colour) }
	}
	for _, sort := range plan.Sorts {
		item(sort, box(faultColours[sort]))
	}
	item("no leader", box(gapColour))
	item("a term (exclusive: a colour and its token; non-exclusive: a colour per member)", box(termColours[0]))
	item("runs", func() { t.Line(x, y+5, x+14, y+5, "stroke:#999") })
	item("killed", func() { t.cross(x+7, y+5, "#c0392b") })
	item("stale write, rejected", func() {
		t.Polygon([]float64{x + 3, x + 11, x + 7}, []float64{y + 1, y + 1, y + 9}, "fill:#111")
	})
	item("cut a – b: both ways, a → b: what a sends", func() {})
}

func (t *timeline) text(x, y float64, s, style string) { t.Text(x, y, s, style) }
