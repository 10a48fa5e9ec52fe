package nelihttp

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"time"

	"github.com/goneli/neli"
)

// maxMembers is the largest number of members that the page lists.
const maxMembers = 500

var (
	//go:embed page/page.html
	pageText string
	//go:embed page/page.css
	pageStyle string
	//go:embed page/page.js
	pageScript string

	pageTemplate = template.Must(template.New("page").Parse(pageText))
	// pagePolicy allows the page's own style and script, by their hashes, and requests to the page's own origin.
	pagePolicy = fmt.Sprintf("default-src 'none'; style-src %s; script-src %s; connect-src 'self'; img-src data:; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'", hashOf(pageStyle), hashOf(pageScript))
)

// hashOf returns the hash by which a policy allows an inline text.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// pageView is the data of the template. Members choose their names freely; the template escapes them.
type pageView struct {
	about
	overview
	drawing
	Title   string
	Lead    string // who leads
	Bad     bool   // as headline returns it
	Quiet   bool   // some holders are silent, or nothing is read: the page is loaded again soon
	Unwell  string // the reason of /healthz
	Metrics string
	Style   template.CSS
	Script  template.JS
	Mode    neli.Mode
	Timeout time.Duration
	Now     string
	Many    int
	Control bool

	Leads    bool
	Led      int
	LedRoles string

	Rows        []pageRow
	Holders     []pageShare
	Members     []pageMember
	MoreMembers int
	Described   bool // a member has a zone or an address
}

// Exclusive reports whether the group is in exclusive mode, where the log shows who leads.
func (v pageView) Exclusive() bool { return v.Mode == neli.Exclusive }

type pageRow struct {
	Roles     string
	Count     int
	Status    string
	Partition int
	Holder    neli.Holder
	Self      bool
	Link      string
	Since     string
	For, Age  string
	Silent    bool // nothing shows that the holder still leads
}

// Held reports whether there is a holder to show.
func (r pageRow) Held() bool { return r.Status == neli.StatusHeld.String() }

type pageShare struct {
	share
	Self bool
}

type pageMember struct {
	neli.Member
	Age   string
	Roles int
}

func (h *handler) page(w http.ResponseWriter, r *http.Request) {
	g, query := h.known.get(), queryOf(r)
	var t text
	if query == "" {
		t = g.page.get()
	} else {
		t = h.render(g, query)
	}
	if t.err != nil {
		fail(w, http.StatusInternalServerError, t.err.Error())
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", pagePolicy)
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(t.body) // fails if the client is gone
}

func (h *handler) render(g *glance, query string) text {
	var body bytes.Buffer
	err := pageTemplate.Execute(&body, h.view(g, query))
	return text{body.Bytes(), err}
}

func (h *handler) view(g *glance, query string) pageView {
	now := g.at
	v := pageView{about: h.about(), overview: look(h.src, g, query), Title: h.title, Mode: h.src.Config().Mode,
		Style: template.CSS(pageStyle), Script: template.JS(pageScript), Timeout: h.src.Config().HeartbeatTimeout,
		Now: now.UTC().Format(time.DateTime + " MST"), Many: maxStandings, Control: h.allow != nil, Metrics: h.metrics}
	if v.Title == "" {
		v.Title = v.Group
	}
	if g.cutOff > 0 { // while nothing is read, no role is known to be vacant
		v.overview.Roles.Unknown += v.overview.Roles.Vacant
		v.overview.Roles.Vacant = 0
	}
	if led := h.led(); len(led) > 0 {
		v.Leads, v.Led, v.LedRoles = true, len(led), ranges(led)
	}
	members := h.src.Members()
	self := ""
	for _, m := range members {
		if m.Self {
			self = m.ID
		}
	}
	for _, s := range v.Standings {
		v.Rows = append(v.Rows, h.row(g, s, self, now))
	}
	for _, s := range v.overview.Holders {
		v.Holders = append(v.Holders, pageShare{share: s, Self: s.Member == self})
	}
	if v.Exclusive() && h.src.State() == neli.StateLive {
		v.drawing = h.draw(g)
		v.Lead, v.Bad = headline(g)
		v.Quiet = g.cutOff > 0 || slices.ContainsFunc(g.standings, func(s neli.Standing) bool { return g.who(s).kind == unheard })
	}
	v.Unwell = h.unwell()
	holds := map[string]int{}
	for i, s := range g.standings {
		if s.Status == neli.StatusHeld {
			holds[s.Holder.Member] += g.sizes[i]
		}
	}
	v.MoreMembers = max(0, len(members)-maxMembers)
	for _, m := range members[:len(members)-v.MoreMembers] {
		v.Described = v.Described || m.Zone+m.Advertise != ""
		v.Members = append(v.Members, pageMember{Member: m, Age: short(m.Age), Roles: holds[m.ID]})
	}
	return v
}

func (h *handler) row(g *glance, s neli.Standing, self string, now time.Time) pageRow {
	roles := slices.Collect(s.Roles())
	row := pageRow{Roles: ranges(roles), Count: len(roles), Status: s.Status.String(), Partition: s.Partition, Holder: s.Holder}
	if s.Status == neli.StatusVacant && g.cutOff > 0 {
		row.Status = neli.StatusUnknown.String()
	}
	if s.Status == neli.StatusHeld {
		row.Self = s.Holder.Member == self
		row.Silent = g.who(s).kind != byOne
		row.Link = h.link(s.Holder)
		row.Since = s.Holder.Since.UTC().Format(time.RFC3339)
		row.For, row.Age = short(now.Sub(s.Holder.Since)), short(s.Holder.Age)
	}
	return row
}

// short formats a duration for people.
func short(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0f h", d.Hours())
	}
	return fmt.Sprintf("%.0f days", d.Hours()/24)
}
