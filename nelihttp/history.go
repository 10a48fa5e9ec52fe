package nelihttp

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/goneli/neli"
)

const (
	window    = 10 * time.Minute // what the time line shows
	maxLanes  = 8                // up to this many roles, each has a lane
	maxSlices = 60               // in a lane
	maxParts  = 12               // in a slice
	backSteps = 24               // steps into which an unwatched time is divided, in the lane of all roles
)

// history records who led in the last ten minutes, as far as this handler knows: it sees every look
// of the feed, from the time of Handler on. Of the time before, and while the feed does not run, it
// knows only since when the present terms have lasted, from the holders' Since. The rest is shown as not
// watched. Its size does not depend on the numbers of roles, holders and changes.
type history struct {
	mu         sync.Mutex
	runs       int       // runs of the feed at present
	continuous bool      // no change was missed since at
	at         time.Time // of the newest look or later pause; zero: none
	lanes      [maxLanes]lane
	all        lane
	colours    palette
}

// lane records who led one role, or all of them, over time.
type lane struct {
	slices  []slice
	current []part // at the newest look
}

// slice is a period with the shares in it, or with their means if they changed.
type slice struct {
	from, to time.Time
	parts    []part
}

// part is the share of the roles that one holder had, from 0 to 1.
type part struct {
	who   who
	share float64
}

// who is a holder, or another status of roles, that is drawn in one colour.
type who struct {
	kind kind
	name string // if held
}

type kind string

const (
	byOne   kind = "held"
	others  kind = "others"
	vacant  kind = "vacant"
	unheard kind = "silent" // held, but two heartbeats are missing
	unknown kind = "unknown"
	unseen  kind = "unseen"
)

func whoOf(s neli.Standing) who {
	switch s.Status {
	case neli.StatusHeld:
		return who{byOne, s.Holder.Name}
	case neli.StatusVacant:
		return who{kind: vacant}
	}
	return who{kind: unknown}
}

// resume notes that changes are watched from now on.
func (p *history) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs++
}

// pause notes that a run stops watching changes.
func (p *history) pause(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs--; p.runs > 0 {
		return
	}
	if now = now.Round(0); p.continuous && now.After(p.at) {
		for i := range p.lanes {
			p.lanes[i].add(p.at, now, p.lanes[i].current)
		}
		p.all.add(p.at, now, p.all.current)
		p.at = now
	}
	p.continuous = false
}

// observe notes a look.
func (p *history) observe(g *glance) {
	if len(g.standings) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := g.at.Round(0)
	if now.Before(p.at) {
		if p.at.Sub(now) < time.Second {
			return // another look has overtaken this one
		}
		p.at, p.lanes, p.all, p.continuous = time.Time{}, [maxLanes]lane{}, lane{}, false // the clock was set back
	}
	from := p.at
	if now.Sub(from) > window {
		from = now.Add(-window)
	}
	for i, s := range firstRoles(g) {
		p.lanes[i].advance(from, now, s, g, p.continuous)
	}
	next := sharesOf(g)
	defer p.mute(g)
	if p.continuous {
		p.all.add(from, now, p.all.current)
	} else {
		p.all.backfill(from, now, g)
	}
	p.all.current = next
	p.at, p.continuous = now, p.runs > 0
}

// mute shows silent holders as silent since their last evidence, or as unknown if this process is cut off.
func (p *history) mute(g *glance) {
	for _, s := range g.standings {
		w := g.who(s)
		if s.Status != neli.StatusHeld || w.kind == byOne {
			continue
		}
		from := g.at.Round(0).Add(-s.Holder.Age)
		p.all.mute(s.Holder.Name, from, w)
		for r := range s.Roles() {
			if r >= maxLanes {
				break
			}
			p.lanes[r].mute(s.Holder.Name, from, w)
			p.lanes[r].current = []part{{w, 1}}
		}
	}
}

// mute replaces the holder called name by another kind, from a time on. Kind unknown also replaces silence.
func (l *lane) mute(name string, from time.Time, as who) {
	meant := func(w who) bool { return w == who{byOne, name} || w.kind == unheard && as.kind == unknown }
	for i := 0; i < len(l.slices); i++ {
		s := l.slices[i]
		if !s.to.After(from) || !slices.ContainsFunc(s.parts, func(p part) bool { return meant(p.who) }) {
			continue
		}
		if s.from.Before(from) {
			l.slices[i].to = from
			l.slices = slices.Insert(l.slices, i+1, slice{from, s.to, s.parts})
			continue // with the part that was split off
		}
		count := map[who]float64{}
		for _, p := range s.parts {
			if meant(p.who) {
				p.who = as
			}
			count[p.who] += p.share
		}
		l.slices[i].parts = nil
		for w, share := range count {
			l.slices[i].parts = append(l.slices[i].parts, part{w, share})
		}
		l.slices[i].parts = tidy(l.slices[i].parts)
	}
	l.tidy()
}

// firstRoles returns the Standings of the roles that have lanes of their own.
func firstRoles(g *glance) map[int]neli.Standing {
	first := map[int]neli.Standing{}
	for _, s := range g.standings {
		for r := range s.Roles() {
			if r >= maxLanes {
				break
			}
			first[r] = s
		}
	}
	return first
}

// advance adds the state of one role until now. The present term is known since its start.
func (l *lane) advance(from, now time.Time, s neli.Standing, g *glance, continuous bool) {
	next := []part{{whoOf(s), 1}}
	if s.Status != neli.StatusHeld {
		next[0].who = g.who(s)
	}
	before := []part{{who{kind: unseen}, 1}}
	if continuous && l.current != nil {
		before = l.current
	}
	began := now
	if s.Status == neli.StatusHeld && s.Holder.Since.Before(now) {
		began = s.Holder.Since
		if began.Before(from) {
			began = from
		}
	}
	l.add(from, began, before)
	l.add(began, now, next)
	l.current = next
}

// sharesOf returns the share of each holder at a look.
func sharesOf(g *glance) []part {
	count, total := map[who]int{}, 0
	for i, s := range g.standings {
		count[g.who(s)] += g.sizes[i]
		total += g.sizes[i]
	}
	return partsOf(count, total)
}

// backfill adds what is known of a time that was not watched: the present terms, since their start.
func (l *lane) backfill(from, now time.Time, g *glance) {
	step := now.Sub(from) / backSteps
	if step <= 0 {
		return
	}
	var begin [backSteps]map[who]int // the terms that have lasted since the beginning of a step
	total := 0
	for i, s := range g.standings {
		total += g.sizes[i]
		if s.Status != neli.StatusHeld {
			continue
		}
		n := max(0, (s.Holder.Since.Sub(from)+step-1)/step)
		if n >= backSteps {
			continue
		}
		if begin[n] == nil {
			begin[n] = map[who]int{}
		}
		begin[n][whoOf(s)] += g.sizes[i]
	}
	known, rest := map[who]int{}, total
	for n, new := range begin {
		for w, roles := range new {
			known[w] += roles
			rest -= roles
		}
		known[who{kind: unseen}] = rest
		to := from.Add(time.Duration(n+1) * step)
		if n == backSteps-1 {
			to = now
		}
		l.add(from.Add(time.Duration(n)*step), to, partsOf(known, total))
	}
}

// partsOf returns the shares, sorted by kind and name. If there are too many, the smallest become "others".
func partsOf(count map[who]int, total int) []part {
	var parts []part
	for w, n := range count {
		if n > 0 {
			parts = append(parts, part{w, float64(n) / float64(total)})
		}
	}
	slices.SortFunc(parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(b.share, a.share), compareWho(a.who, b.who))
	})
	return tidy(parts)
}

// tidy keeps the largest parts, in the order in which they are shown.
func tidy(parts []part) []part {
	if len(parts) > maxParts {
		rest := part{who: who{kind: others}}
		for _, p := range parts[maxParts-1:] {
			rest.share += p.share
		}
		parts = append(parts[:maxParts-1:maxParts-1], rest)
	}
	slices.SortFunc(parts, func(a, b part) int { return compareWho(a.who, b.who) })
	return parts
}

var order = map[kind]int{byOne: 0, others: 1, unheard: 2, unknown: 3, vacant: 4, unseen: 5}

func compareWho(a, b who) int {
	return cmp.Or(cmp.Compare(order[a.kind], order[b.kind]), cmp.Compare(a.name, b.name))
}

// add appends a period. If there are too many slices, it joins the two neighbours that are shortest together.
func (l *lane) add(from, to time.Time, parts []part) {
	if !to.After(from) || parts == nil {
		return
	}
	if n := len(l.slices); n > 0 && l.slices[n-1].to.Equal(from) && slices.Equal(l.slices[n-1].parts, parts) {
		l.slices[n-1].to = to
	} else {
		l.slices = append(l.slices, slice{from, to, parts})
	}
	oldest := to.Add(-window)
	l.slices = slices.DeleteFunc(l.slices, func(s slice) bool { return !s.to.After(oldest) })
	if first := &l.slices[0]; first.from.Before(oldest) {
		first.from = oldest
	}
	l.tidy()
}

// tidy joins neighbours that are the same, and while there are too many slices the two neighbours
// that are shortest together.
func (l *lane) tidy() {
	for i := len(l.slices) - 1; i > 0; i-- {
		if a, b := l.slices[i-1], l.slices[i]; a.to.Equal(b.from) && slices.Equal(a.parts, b.parts) {
			l.slices[i-1].to = b.to
			l.slices = slices.Delete(l.slices, i, i+1)
		}
	}
	for len(l.slices) > maxSlices {
		at := 0
		for i := range len(l.slices) - 1 {
			if l.slices[i+1].to.Sub(l.slices[i].from) < l.slices[at+1].to.Sub(l.slices[at].from) {
				at = i
			}
		}
		l.slices[at] = mean(l.slices[at], l.slices[at+1])
		l.slices = slices.Delete(l.slices, at+1, at+2)
	}
}

// mean joins two neighbours.
func mean(a, b slice) slice {
	sum, whole := map[who]float64{}, b.to.Sub(a.from)
	for _, s := range []slice{a, b} {
		for _, p := range s.parts {
			sum[p.who] += p.share * float64(s.to.Sub(s.from)) / float64(whole)
		}
	}
	var parts []part
	for w, share := range sum {
		parts = append(parts, part{w, share})
	}
	slices.SortFunc(parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(b.share, a.share), compareWho(a.who, b.who))
	})
	return slice{a.from, b.to, tidy(parts)}
}
