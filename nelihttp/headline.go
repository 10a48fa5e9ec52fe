package nelihttp

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goneli/neli"
)

// headline returns a sentence about who leads. bad reports that some roles may have no leader.
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
