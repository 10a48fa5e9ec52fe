package nelihttp

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxCells is the largest number of cells in the map of roles.
const maxCells = 240

// drawing is the time line and the map. Positions and sizes are in percent.
type drawing struct {
	Legend []legend
	Lanes  []laneView
	Tall   bool // there is one lane for all roles
	Cells  []cell
	Few    bool // a cell has room for a number
	Each   int  // number of roles in a cell
	Map    string
}

type legend struct {
	Class, Letter, Name string
	Roles               int
	Self, Now           bool // Now: Roles is shown
}

type laneView struct {
	Name, Says string
	Boxes      []box
}

type box struct {
	Class, Title, Label string
	X, Y, W, H          string
}

type cell struct {
	Number, Title string
	Boxes         []box
}

// draw makes the time line and the map of a glance.
func (h *handler) draw(g *glance) drawing {
	now := map[who]int{}
	total := 0
	for i, s := range g.standings {
		now[g.who(s)] += g.sizes[i]
		total += g.sizes[i]
	}
	if total == 0 {
		return drawing{}
	}
	d := drawing{Tall: total > maxLanes}
	lanes, names, at, classes := h.past.lanesFor(total, now)
	for i, l := range lanes {
		name := names[i]
		d.Lanes = append(d.Lanes, viewOf(name, l, at, classes))
	}
	d.Legend = legendOf(lanes, now, classes, h.src.Config().Name)
	if total > 1 {
		d.cells(g, total, classes)
	}
	return d
}

// lanesFor returns copies of the lanes shown for total roles, their names, the newest time, and the colours.
func (p *history) lanesFor(total int, now map[who]int) (lanes [][]slice, names []string, at time.Time, classes map[string]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if total > maxLanes {
		lanes, names = [][]slice{slices.Clone(p.all.slices)}, []string{"all roles"}
	} else {
		for r := range total {
			lanes, names = append(lanes, slices.Clone(p.lanes[r].slices)), append(names, fmt.Sprint("role ", r))
		}
	}
	return lanes, names, p.at, p.colours.assign(largestNames(lanes, now, total, p.colours))
}

// largestNames returns the holders that get a colour: those with the most roles, now and before. A
// holder loses its colour only to one that is clearly larger.
func largestNames(lanes [][]slice, now map[who]int, total int, has palette) []string {
	weight := map[string]float64{}
	for w, n := range now {
		if w.kind == byOne {
			weight[w.name] += 2 * float64(n) / float64(total)
		}
	}
	for _, l := range lanes {
		for _, s := range l {
			for _, p := range s.parts {
				if p.who.kind == byOne {
					weight[p.who.name] += p.share * float64(s.to.Sub(s.from)) / float64(window) / float64(len(lanes))
				}
			}
		}
	}
	var names []string
	for name := range weight {
		names = append(names, name)
		if slices.Contains(has[:], name) {
			weight[name] *= 1.2
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(weight[b], weight[a]), cmp.Compare(a, b)) })
	return names[:min(len(names), colours)]
}

// lookOf returns the CSS class, the letter and the text of a holder or status.
func lookOf(w who, classes map[string]int) (class, letter, name string) {
	if w.kind != byOne {
		names := map[kind]string{unheard: "not heard", vacant: "vacant", unknown: "unknown", unseen: "not watched", others: "others"}
		return string(w.kind), "", names[w.kind]
	}
	if c, ok := classes[w.name]; ok {
		return "c" + strconv.Itoa(c), string(rune('A' + c)), shown(w.name)
	}
	return "others", "", "others"
}

func legendOf(lanes [][]slice, now map[who]int, classes map[string]int, self string) []legend {
	var all []legend
	for name := range classes {
		class, letter, text := lookOf(who{byOne, name}, classes)
		all = append(all, legend{class, letter, text, now[who{byOne, name}], name == self, true})
	}
	slices.SortFunc(all, func(a, b legend) int { return cmp.Or(cmp.Compare(b.Roles, a.Roles), cmp.Compare(a.Letter, b.Letter)) })
	was, roles := map[string]bool{}, map[string]int{}
	for w, n := range now {
		class, _, _ := lookOf(w, classes)
		was[class] = true
		roles[class] += n
	}
	for _, l := range lanes {
		for _, s := range l {
			for _, p := range s.parts {
				class, _, _ := lookOf(p.who, classes)
				was[class] = true
			}
		}
	}
	for _, k := range []kind{others, unheard, unknown, vacant, unseen} {
		if was[string(k)] {
			class, _, text := lookOf(who{kind: k}, classes)
			all = append(all, legend{Class: class, Name: text, Roles: roles[class], Now: k != unseen})
		}
	}
	return all
}

// percent formats a share with at most two decimals.
func percent(share float64) string {
	return strconv.FormatFloat(math.Round(1e4*share)/1e2, 'f', -1, 64) + "%"
}

// viewOf draws a lane.
func viewOf(name string, l []slice, at time.Time, classes map[string]int) laneView {
	v := laneView{Name: name}
	begin := at.Add(-window)
	x := func(t time.Time) float64 { return max(0, float64(t.Sub(begin))/float64(window)) }
	var says []string
	for _, s := range l {
		y, title := 0.0, ""
		for i, p := range merged(s.parts, classes) {
			class, letter, text := lookOf(p.who, classes)
			b := box{Class: class, X: percent(x(s.from)), W: percent(x(s.to) - x(s.from)), Y: percent(y), H: percent(p.share)}
			if x(s.to)-x(s.from) > .04 && p.share > .15 {
				b.Label = strings.TrimSpace(letter + " " + text)
			}
			if p.share < .995 {
				text += fmt.Sprintf(" %.0f%%", 100*p.share)
			}
			b.Title = fmt.Sprintf("%s, %s to %s UTC, %s", text, s.from.UTC().Format(time.TimeOnly), s.to.UTC().Format(time.TimeOnly), short(s.to.Sub(s.from)))
			y += p.share
			if i > 0 {
				title += ", "
			}
			title += text
			v.Boxes = append(v.Boxes, b)
		}
		says = append(says, title+" for "+short(s.to.Sub(s.from)))
	}
	slices.Reverse(says)
	if len(says) > 5 {
		says = append(says[:5], "and more")
	}
	v.Says = name + ", newest first: " + strings.Join(says, "; before that ")
	return v
}

// merged joins the parts that have no colour of their own.
func merged(parts []part, classes map[string]int) (out []part) {
	rest := part{who: who{kind: others}}
	for _, p := range parts {
		if class, _, _ := lookOf(p.who, classes); class == "others" {
			rest.share += p.share
		} else {
			out = append(out, p)
		}
	}
	if rest.share > 0 {
		out = append(out, rest)
	}
	return out
}

// cells draws the map.
func (d *drawing) cells(g *glance, total int, classes map[string]int) {
	d.Each = (total + maxCells - 1) / maxCells
	d.Few = total <= 64
	counts := make([]map[who]int, (total+d.Each-1)/d.Each)
	for i := range counts {
		counts[i] = map[who]int{}
	}
	for _, s := range g.standings {
		w := g.who(s)
		if _, named := classes[w.name]; w.kind == byOne && !named {
			w = who{kind: others}
		}
		for r := range s.Roles() {
			if r/d.Each < len(counts) {
				counts[r/d.Each][w]++
			}
		}
	}
	for i, count := range counts {
		first, last := i*d.Each, min((i+1)*d.Each, total)-1
		c := cell{Title: fmt.Sprintf("roles %d-%d: ", first, last)}
		if first == last {
			c.Title = fmt.Sprintf("role %d: ", first)
		}
		if d.Few {
			c.Number = strconv.Itoa(first)
		}
		x := 0.0
		var says []string
		for _, p := range partsOf(count, last-first+1) {
			class, letter, text := lookOf(p.who, classes)
			c.Boxes = append(c.Boxes, box{Class: class, X: percent(x), W: percent(p.share), Y: "0", H: "100%"})
			x += p.share
			if d.Few {
				c.Number += letter
			}
			if n := count[p.who]; n < last-first+1 {
				text += " " + strconv.Itoa(n)
			}
			says = append(says, text)
		}
		c.Title += strings.Join(says, ", ")
		d.Cells = append(d.Cells, c)
	}
	d.Map = fmt.Sprintf("map of %d roles in %d cells; the list above shows how many each process has", total, len(counts))
}
