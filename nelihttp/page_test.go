package nelihttp

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/stretchr/testify/require"
)

// pageOf returns the page.
func pageOf(t *testing.T, src source, query string, opts ...Option) string {
	t.Helper()
	w, body := ask(t, newHandler(src, opts...), "GET", "/"+query)
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
	return body
}

// rowsOf returns the rows of the table of Standings, as text.
func rowsOf(page string) (rows []string) {
	_, table, _ := strings.Cut(page, `<table id="standings">`)
	table, _, _ = strings.Cut(table, "</table>")
	for _, row := range strings.Split(table, "<tr class=")[1:] {
		_, cells, _ := strings.Cut(row, ">")
		cells = regexp.MustCompile(`<[^>]*>`).ReplaceAllString(strings.ReplaceAll(cells, "<td", "|<td"), "")
		rows = append(rows, strings.Join(strings.Fields(strings.TrimPrefix(cells, "|")), " "))
	}
	return rows
}

func TestPageShowsWhoLeads(t *testing.T) {
	src := newScript(standing(0, "0-2,5", "a", 17), standing(0, "3", "10.0.0.8:80", 21), standing(0, "4", "vacant", 0), standing(1, "6", "unknown", 0))
	src.led = map[int]int64{0: 17, 1: 17, 2: 17, 5: 17}
	src.members = []neli.Member{{Name: "a", ID: "id of a", Self: true, Nominated: true},
		{Name: "10.0.0.8:80", ID: "id of b", Priority: -5, Age: 3 * time.Minute}}
	page := pageOf(t, src, "", WithURL(func(h neli.Holder) string { return "http://" + h.Name + "/neli/" }))
	require.Equal(t, []string{
		"0-2,5|4|a this process|17|90 min|0.2 s ago|0",
		"3|1|10.0.0.8:80|21|90 min|0.2 s ago|0",
		"4|1|vacant||||0",
		"6|1|unknown||||1",
	}, rowsOf(page))
	require.Contains(t, page, `<a href="http://10.0.0.8:80/neli/"><bdi>10.0.0.8:80</bdi></a>`)
	require.Regexp(t, `leads 4 roles</span> <span class="dim">0-2,5`, page)
	require.Contains(t, page, "5 held · <span class=\"bad\">1 vacant</span> · 1 unknown")
	require.Contains(t, page, "3 min ago")
	require.NotContains(t, page, "<th>Zone")
	src.members[1].Zone, src.members[1].Advertise = "<z>", "javascript:alert(1)"
	require.Contains(t, pageOf(t, src, ""), "<td><bdi>&lt;z&gt;</bdi><td><bdi>javascript:alert(1)</bdi>\n")
	require.Contains(t, page, "<h1><bdi>carts</bdi></h1>")
	require.NotContains(t, page, `name="q"`, "nothing to search")

	require.Contains(t, pageOf(t, src, "", WithTitle("Shop <1>")), "<h1><bdi>Shop &lt;1&gt;</bdi></h1>")
	require.Contains(t, pageOf(t, situations()["closed"], ""), `is <span class="bad">closed</span>`)
	require.Contains(t, pageOf(t, situations()["non-exclusive, leading"], ""), "In non-exclusive mode")
}

// Two processes may have the same name. The id decides which row is marked as this process.
func TestPageMarksItsOwnProcessOnly(t *testing.T) {
	namesake := standing(0, "1", "a", 21)
	namesake.Holder.Member = "id of another"
	src := newScript(standing(0, "0", "a", 17), namesake)
	src.members = []neli.Member{{Name: "a", ID: "id of a", Self: true}, {Name: "a", ID: "id of another"}}
	page := pageOf(t, src, "")
	require.Equal(t, []string{"0|1|a this process|17|90 min|0.2 s ago|0", "1|1|a|21|90 min|0.2 s ago|0"}, rowsOf(page))
	require.Equal(t, 3, strings.Count(page, `class="tag">this process`), "a row of either table, and the legend")
}

// The page is small, loads nothing from elsewhere, and allows the browser only its own style and script,
// by their hashes.
func TestPageIsSmallAndSelfContained(t *testing.T) {
	src := situations()["leading"]
	w, page := ask(t, newHandler(src, WithControl(everybody)), "GET", "/")
	require.LessOrEqual(t, len(page), 20_000)
	policy := w.Header().Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'", "form-action 'self'", "connect-src 'self'"} {
		require.Contains(t, policy, part)
	}
	require.NotContains(t, policy, "unsafe")
	for _, kind := range []string{"style", "script"} {
		found := regexp.MustCompile(`(?s)<`+kind+`>(.*?)</`+kind+`>`).FindAllStringSubmatch(page, -1)
		require.Len(t, found, 1)
		require.Contains(t, policy, kind+"-src "+hashOf(found[0][1]))
	}
	require.NotRegexp(t, `(?i)(src|href|action)="?(https?:|//)`, page)
	require.NotRegexp(t, `(?i)\s(style|on\w+)=`, page, "the policy forbids these")
	require.Regexp(t, `<noscript><meta http-equiv="refresh" content="\d+"></noscript>`, page)
}

// Members may choose any name.
func TestHostileNames(t *testing.T) {
	for _, name := range []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</table></main><form action=//evil.example>`,
		`javascript:alert(1)`, `{{.Name}}`, `</style><style>*{display:none}`, "a\u202eb\x00\r\n", `&lt;b&gt;`, `'-alert(1)-'`, "\xff\xfe", strings.Repeat("W", 1000)} {
		src := newScript(standing(0, "0", name, 17))
		src.members = []neli.Member{{Name: name, ID: name}}
		page := pageOf(t, src, "?q="+strings.ReplaceAll("%22%3E%3Cscript%3E1", "1", "x"), WithTitle(name),
			WithURL(func(h neli.Holder) string { return "https://x/?" + h.Name }))
		require.Equal(t, 1, strings.Count(page, "<script"), name)
		require.Equal(t, 1, strings.Count(page, "<style"), name)
		require.Equal(t, 1, strings.Count(page, "<main"), name)
		require.NotContains(t, page, "<img", name)
		require.NotContains(t, page, "evil.example>", name)
		page = pageOf(t, src, "")
		require.Len(t, rowsOf(page), 1, name)

		_, text := ask(t, newHandler(src), "GET", "/standings")
		require.NotContains(t, text, "<", name)
		jsonOf(t, text)
	}
}

// crowd returns a source of n Standings of two roles each. "odd" holds every third.
func crowd(n int) *script {
	var known []neli.Standing
	for i := range n {
		name := fmt.Sprintf("member %d", i%100)
		if i%3 == 0 {
			name = "odd"
		}
		known = append(known, standing(0, fmt.Sprintf("%d,%d", i, 100_000+i), name, int64(i)))
	}
	return newScript(known...)
}

// If there are more than 500 groups of roles, the page has only numbers, and a search by role or by part of a name.
func TestManyGroupsAreSummedUp(t *testing.T) {
	page := pageOf(t, crowd(500), "")
	require.Len(t, rowsOf(page), 500)
	require.NotContains(t, page, `name="q"`)

	src := crowd(1600)
	page = pageOf(t, src, "")
	require.Empty(t, rowsOf(page))
	require.Less(t, len(page), 60_000)
	require.Contains(t, page, "1600 of 1600 groups of roles: too many to show, please search")
	require.Regexp(t, `<td><bdi>odd</bdi><td class="n">1068\n`, page)
	require.Equal(t, maxHolders, strings.Count(page, `<tr><td>`), "the largest holders")

	page = pageOf(t, src, "?q=100017")
	require.Equal(t, []string{"17,100017|2|member 17|17|90 min|0.2 s ago|0"}, rowsOf(page))
	require.Contains(t, page, "1 of 1600 groups of roles")
	require.Contains(t, page, `value="100017"`)
	require.Len(t, rowsOf(pageOf(t, src, "?q=member+17")), 11)
	page = pageOf(t, src, "?q=odd")
	require.Len(t, rowsOf(page), maxStandings)
	require.Contains(t, page, "534 of 1600 groups of roles, the first 500 are shown")
	page = pageOf(t, src, "?q=nobody")
	require.Empty(t, rowsOf(page))
	require.Contains(t, page, "0 of 1600")

	_, text := ask(t, newHandler(src), "GET", "/standings")
	answer := jsonOf(t, text)
	require.Equal(t, []any{true, 1600.0, []any{}}, []any{answer["cut"], answer["total"], answer["standings"]})
	require.Len(t, answer["holders"], maxHolders)
	_, text = ask(t, newHandler(src), "GET", "/standings?q=100017")
	require.Len(t, jsonOf(t, text)["standings"], 1)
}

// The page stays short with many members, and with roles that form many ranges.
func TestLongListsAreCut(t *testing.T) {
	var ragged []string
	for i := range 10_000 {
		ragged = append(ragged, fmt.Sprint(2*i))
	}
	src := newScript(standing(0, strings.Join(ragged, ","), "a", 1))
	for i := range 700 {
		src.members = append(src.members, neli.Member{Name: "m", ID: fmt.Sprint(i)})
	}
	page := pageOf(t, src, "")
	require.Contains(t, page, "194,196,198,…")
	require.Contains(t, page, "and 200 more")
	require.Equal(t, "", ranges(nil))
	require.Equal(t, "0-2,4", ranges([]int{0, 1, 2, 4}))
}

func TestShortDurations(t *testing.T) {
	for want, d := range map[string]time.Duration{"0 s": -time.Second, "0.3 s": 250*time.Millisecond + 1, "12 s": 12 * time.Second,
		"3 min": 3 * time.Minute, "5 h": 5 * time.Hour, "4 days": 100 * time.Hour} {
		require.Equal(t, want, short(d))
	}
}
