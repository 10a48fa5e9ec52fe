package history

import (
	"encoding/xml"
	"fmt"
	"hash/fnv"
	"io"
	"strings"
	"time"
)

// The time line's measures, in pixels.
const (
	svgWidth, svgLeft, svgTop = 1000, 90, 24
	svgRow, svgBar            = 18, 14
	svgRows, svgBars          = 500, 2000 // rows at most, and bars in a row
)

// SVG draws terms, sorted by role, as a row of bars for each, without scripts. A member has one colour. until is the
// right edge. A Claim without time is leftmost. Hidden terms and those beyond 500 rows of 2,000 bars are only counted.
func SVG(w io.Writer, terms []Term, until time.Time) error {
	var b strings.Builder
	from := until
	rows := map[[2]int]int{}
	for _, t := range terms {
		if key := [2]int{t.Role, t.Partition}; len(rows) < svgRows {
			if _, is := rows[key]; !is {
				rows[key] = len(rows)
			}
		}
		for _, at := range []time.Time{t.From, t.Until} {
			if !at.IsZero() && at.Before(from) {
				from = at
			}
		}
	}
	height := svgTop + svgRow*len(rows) + 8
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", svgWidth, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", svgWidth, height)
	fmt.Fprintf(&b, `<text x="%d" y="14">%s</text><text x="%d" y="14" text-anchor="end">%s</text>`+"\n", svgLeft, stamp(from), svgWidth-8, stamp(until))
	x := func(at time.Time, unset int) int {
		if at.IsZero() {
			return unset
		}
		span := max(until.Sub(from), time.Millisecond)
		part := float64(at.Sub(from)) / float64(span)
		return svgLeft + int(min(max(part, 0), 1)*(svgWidth-8-svgLeft))
	}
	bars := map[int]int{} // by row: how many there are
	ends := map[int]int{} // and where the last one ends
	left := 0
	for _, t := range terms {
		row, is := rows[[2]int{t.Role, t.Partition}]
		begin, end := x(t.From, svgLeft), x(t.Until, svgWidth-8)
		if t.End == Lost && t.Until.IsZero() {
			end = begin
		}
		end = max(end, begin+2)
		if !is || bars[row] == svgBars || end == begin+2 && end <= ends[row] { // the last bar covers it
			left++
			continue
		}
		y := svgTop + svgRow*row
		if bars[row] == 0 {
			fmt.Fprintf(&b, `<text x="4" y="%d">role %d</text>`+"\n", y+11, t.Role)
		}
		bars[row]++
		ends[row] = max(ends[row], end)
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s" stroke="#fff"><title>%s</title></rect>`+"\n",
			begin, y, end-begin, svgBar, colour(t.Member), escaped(title(t)))
		if name := clip(t.Name, (end-begin)/8); name != "" {
			fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`+"\n", begin+3, y+11, escaped(name))
		}
	}
	if left > 0 {
		fmt.Fprintf(&b, `<text x="4" y="%d">and %d terms that are not drawn</text>`+"\n", height-2, left)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func title(t Term) string {
	return fmt.Sprintf("role %d, token %d: %s (%s), from %s until %s, %s", t.Role, t.Token, t.Name, t.Member, stamp(t.From), stamp(t.Until), t.End)
}

func stamp(at time.Time) string {
	if at.IsZero() {
		return "…"
	}
	return at.UTC().Format("2006-01-02T15:04:05.000Z")
}

// colour is light, so that black text can be read on it.
func colour(member string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(member))
	return fmt.Sprintf("hsl(%d,60%%,75%%)", h.Sum32()%360)
}

// clip cuts a name to at most most characters, and to none if most is below 3.
func clip(name string, most int) string {
	runes := []rune(name)
	if most < 3 {
		return ""
	}
	return string(runes[:min(len(runes), most)])
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder takes everything
	return b.String()
}
