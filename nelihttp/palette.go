package nelihttp

import (
	"hash/fnv"
	"slices"
	"strings"
	"unicode"
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
