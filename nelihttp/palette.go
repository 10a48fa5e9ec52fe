package nelihttp

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/goneli/neli"
)

// colours is the number of holders that have a colour, a pattern and a letter of their own.
const colours = 8

// palette assigns colours to names. A name gets the colour that its hash selects, or the next free one,
// and keeps it while it is shown.
type palette [colours]string

// assign gives each of at most eight names a colour.
func (p *palette) assign(names []string) map[string]int {
	given := map[string]int{}
	for i, has := range p {
		if has == "" {
			continue
		}
		if slices.Contains(names, has) {
			given[has] = i
		} else {
			p[i] = ""
		}
	}
	for _, name := range slices.Sorted(slices.Values(names)) {
		if _, has := given[name]; has {
			continue
		}
		h := fnv.New32a()
		h.Write([]byte(name))
		for i := range colours {
			if at := (int(h.Sum32()%colours) + i) % colours; p[at] == "" {
				p[at], given[name] = name, at
				break
			}
		}
	}
	return given
}

// shown returns a name for graphics and titles: cut, and without characters that change the direction
// of the text beside it.
func shown(name string) string {
	const longest = 60
	name = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.C, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) {
			return unicode.ReplacementChar
		}
		return r
	}, name)
	if runes := []rune(name); len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return name
}

// pattern is drawn on top of a colour, so that holders can be told apart without colours.
type pattern struct {
	Slot int
	Path string
}

// Patterns returns the patterns, for the template.
func (drawing) Patterns() []pattern {
	paths := [colours]string{"", "M-2 2 2-2M0 8 8 0M6 10 10 6", "M4 0V8", "M0 4H8", "M-2 6 2 10M0 0 8 8M6-2 10 2", "M4 0V8M0 4H8", "M3 4H5M4 3V5", "M0 8 8 0M0 0 8 8"}
	all := make([]pattern, colours)
	for i, path := range paths {
		all[i] = pattern{i, path}
	}
	return all
}

// headline says who leads. bad: a role is vacant, a holder is silent, or nothing is read.
func headline(g *glance) (text string, bad bool) {
	leads, led, age := map[string]bool{}, map[string]bool{}, time.Duration(0)
	roles, missing := 0, false
	for i, s := range g.standings {
		switch {
		case g.who(s).kind == byOne:
			leads[s.Holder.Name] = true
			roles += g.sizes[i]
		case s.Status == neli.StatusHeld:
			led[s.Holder.Name] = true
			age = max(age, s.Holder.Age)
		case s.Status == neli.StatusVacant:
			missing = true
		}
	}
	was := ""
	if len(led) > 0 {
		was = listed(led) + " led"
	}
	switch {
	case g.cutOff > 0:
		text = "this process has read nothing for " + short(g.cutOff)
		if maps.Copy(led, leads); len(led) > 0 {
			text += "; before that, " + listed(led) + " led"
		}
		return text, true
	case len(leads) > 0 && len(led) > 0:
		return fmt.Sprintf("%s; %s, not heard for %s", present(leads, roles), was, short(age)), true
	case len(led) > 0:
		return fmt.Sprintf("%s; not heard for %s", was, short(age)), true
	case len(leads) > 0:
		return present(leads, roles), missing
	case missing:
		return "nobody leads", true
	}
	return "the leader is not known yet", false
}

// present returns a sentence about the present leaders.
func present(names map[string]bool, roles int) string {
	all := listed(names)
	switch {
	case len(names) == 1:
		return all + " leads"
	case strings.HasSuffix(all, " processes"):
		return fmt.Sprintf("%s lead %d roles", all, roles)
	}
	return all + " lead"
}

// listed returns the names in order, or how many they are.
func listed(names map[string]bool) string {
	var all []string
	for name := range names {
		all = append(all, shown(name))
	}
	slices.Sort(all)
	if len(all) == 1 {
		return all[0]
	}
	if text := strings.Join(all[:len(all)-1], ", ") + " and " + all[len(all)-1]; len(all) <= 3 && len(text) <= 60 {
		return text
	}
	return fmt.Sprintf("%d processes", len(all))
}
