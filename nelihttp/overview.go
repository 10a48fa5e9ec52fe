package nelihttp

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/goneli/neli"
)

// maxStandings is the largest number of Standings that are listed one by one.
const maxStandings = 500

// maxHolders is the largest number of holders that are listed if Standings are too many.
const maxHolders = 50

// overview has the Standings, or only numbers if there are too many.
type overview struct {
	Partitions int    `json:"partitions"`
	Roles      counts `json:"roles"`
	Total      int    `json:"total"`           // number of Standings
	Found      int    `json:"found"`           // number of these that match the search
	Query      string `json:"query,omitempty"` // what was searched for
	Cut        bool   `json:"cut"`             // too many: some are not listed

	Standings []neli.Standing `json:"standings"`
	Holders   []share         `json:"holders,omitempty"` // if Cut: those with the most roles of what was found
}

// counts has the number of roles by status.
type counts struct {
	Held    int `json:"held"`
	Vacant  int `json:"vacant"`
	Unknown int `json:"unknown"`
}

// share is the number of roles that one process holds.
type share struct {
	Name   string `json:"name"`
	Member string `json:"member"`
	Roles  int    `json:"roles"`
}

// look returns an overview of what is known now. A query matches holders whose names contain it, and if
// it is a number the Standing of that role. If there are too many Standings, a search lists the first
// ones; without a query there are only numbers.
func look(src source, g *glance, query string) overview {
	all := g.standings
	o := overview{Partitions: src.Partitions(), Total: len(all), Query: query, Standings: []neli.Standing{}}
	by := map[string]*share{}
	role, err := strconv.Atoi(query)
	for i, s := range all {
		n, meant := g.sizes[i], false
		if err == nil {
			for r := range s.Roles() {
				meant = meant || r == role
			}
		}
		switch s.Status {
		case neli.StatusHeld:
			o.Roles.Held += n
		case neli.StatusVacant:
			o.Roles.Vacant += n
		case neli.StatusUnknown:
			o.Roles.Unknown += n
		}
		if query != "" && !meant && (s.Status != neli.StatusHeld || !strings.Contains(s.Holder.Name, query)) {
			continue
		}
		o.Found++
		o.Standings = append(o.Standings, s)
		if s.Status != neli.StatusHeld {
			continue
		}
		if by[s.Holder.Member] == nil {
			by[s.Holder.Member] = &share{Name: s.Holder.Name, Member: s.Holder.Member}
		}
		by[s.Holder.Member].Roles += n
	}
	if o.Found > maxStandings {
		o.Cut = true
		o.Standings = o.Standings[:maxStandings]
		if query == "" {
			o.Standings = o.Standings[:0]
		}
		o.Holders = largest(by)
	}
	return o
}

// largest returns the shares with the most roles.
func largest(by map[string]*share) []share {
	all := make([]share, 0, len(by))
	for _, s := range by {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b share) int {
		return cmp.Or(cmp.Compare(b.Roles, a.Roles), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Member, b.Member))
	})
	return all[:min(len(all), maxHolders)]
}

func (h *handler) standings(w http.ResponseWriter, r *http.Request) {
	if !h.tellsOfOthers(w) {
		return
	}
	g, query := h.known.get(), queryOf(r)
	if query != "" {
		answer(w, http.StatusOK, h.overview(g, query))
		return
	}
	t := g.overview.get()
	write(w, http.StatusOK, t.body, t.err)
}

// overviewAnswer is the answer of /standings.
type overviewAnswer struct {
	about
	overview
}

func (h *handler) overview(g *glance, query string) overviewAnswer {
	return overviewAnswer{h.about(), look(h.src, g, query)}
}

// queryOf returns what is searched for.
func queryOf(r *http.Request) string { return strings.TrimSpace(r.URL.Query().Get("q")) }

func (h *handler) members(w http.ResponseWriter, _ *http.Request) {
	if !h.tellsOfOthers(w) {
		return
	}
	members := h.src.Members()
	if members == nil {
		members = []neli.Member{} // an observer that knows no members
	}
	answer(w, http.StatusOK, struct {
		about
		Members []neli.Member `json:"members"`
	}{h.about(), members})
}

func (h *handler) stats(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, struct {
		about
		Stats neli.Stats `json:"stats"`
	}{h.about(), h.src.Stats()})
}
