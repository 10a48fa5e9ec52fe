package nelihttp_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/scenario"
	"github.com/goneli/neli/nelihttp"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// visit returns the headline of the page, and the first lane of its time line: who led for how long.
func visit(c *scenario.Cluster, page http.Handler) (headline string, lane []string) {
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequestWithContext(c.Context(), "GET", "/", nil))
	body := w.Body.String()
	require.Equal(c, 200, w.Code)
	found := regexp.MustCompile(`<p id="lead" class="[^"]*"><bdi>([^<]*)</bdi>`).FindStringSubmatch(body)
	require.NotNil(c, found, body)
	_, svg, _ := strings.Cut(body, `<svg class="lane"`)
	svg, _, _ = strings.Cut(svg, "</svg>\n")
	for _, title := range regexp.MustCompile(`<title>([^<]*), \S+ to \S+ UTC, ([^<]*)</title>`).FindAllStringSubmatch(svg, -1) {
		lane = append(lane, title[1]+" "+title[2])
	}
	return found[1], lane
}

// After a crash the page says that the leader led, and how long ago it was last heard. The time
// line shows a gap from its last heartbeat to the successor's claim, even to a visitor who comes
// later for the first time.
func TestPageShowsACrash(t *testing.T) {
	scenario.Simulate(t, nelitest.Options{}, nil, func(c *scenario.Cluster) {
		a := c.Work("a", scenario.Open)
		c.Leader(0, 15*time.Second)
		b := c.Work("b", scenario.Open)
		page, visited := nelihttp.Handler(b.Neli), nelihttp.Handler(b.Neli)
		c.Pass(5 * time.Minute)
		heard := func() time.Duration { h, _ := b.Holder(0); return h.Age }
		c.Eventually(5*time.Second, "a beat", func() bool { return heard() < 5*time.Millisecond })
		headline, _ := visit(c, visited)
		require.Equal(c, "a leads", headline)
		c.Crash(a)
		c.Pass(1500 * time.Millisecond)
		headline, _ = visit(c, visited)
		require.Equal(c, "a leads", headline, "one heartbeat may be late")
		c.Pass(1500 * time.Millisecond)
		headline, lane := visit(c, visited)
		require.Equal(c, "a led; not heard for 3.0 s", headline)
		require.Equal(c, "not heard 3.0 s", lane[len(lane)-1])
		c.Eventually(5*time.Second, "b leads", b.IsLeader)
		c.Pass(3 * time.Minute)
		headline, lane = visit(c, page)
		require.Equal(c, "b leads", headline)
		require.Regexp(c, `^not watched \d+ s; a 5 min; not heard 5.0 s; (vacant 0.0 s; )?b 3 min$`, strings.Join(lane, "; "))
		_, again := visit(c, visited)
		require.Equal(c, lane[len(lane)-1], again[len(again)-1])
	})
}

// In an outage of the broker the page says that its process reads nothing, and why the process is not
// healthy. It does not say that nobody leads.
func TestPageShowsAnOutage(t *testing.T) {
	scenario.Simulate(t, nelitest.Options{}, nil, func(c *scenario.Cluster) {
		c.Work("a", scenario.Open)
		c.Leader(0, 15*time.Second)
		b := c.Work("b", scenario.Open)
		page := nelihttp.Handler(b.Neli)
		c.Pass(time.Minute)
		for _, name := range []string{"a", "b"} {
			c.Broker.CutOff(name, nelitest.LinkAll)
		}
		c.Pass(20 * time.Second)
		headline, lane := visit(c, page)
		require.Regexp(c, `^this process has read nothing for (19|2\d) s`, headline)
		require.Regexp(c, `^unknown (19|2\d) s$`, lane[len(lane)-1])
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequestWithContext(c.Context(), "GET", "/", nil))
		require.Regexp(c, `</bdi></p>\n<p class="bad">nothing was read from the leader topic for`, w.Body.String())
		require.Contains(c, w.Body.String(), "<p>0 held · 1 unknown ")
		require.Contains(c, w.Body.String(), `<tr class="unknown"><td class="roles">0<`)
		for _, name := range []string{"a", "b"} {
			c.Broker.Restore(name, nelitest.LinkAll)
		}
		c.Leader(0, time.Minute)
		c.Pass(10 * time.Second)
		headline, _ = visit(c, page)
		require.Regexp(c, `^[ab] leads$`, headline)
	})
}

// The members' table has the number of roles of each.
func TestPageCountsTheRolesOfEachMember(t *testing.T) {
	scenario.Simulate(t, nelitest.Options{}, nil, func(c *scenario.Cluster) {
		c.Work("a", scenario.Open)
		c.Leader(0, 15*time.Second)
		b := c.Work("b", scenario.Open)
		c.Pass(6 * time.Second)
		_, body := get(c, b, "/")
		require.Regexp(c, `<bdi>a</bdi><td class="n">1<td>yes`, body)
		require.Regexp(c, `<bdi>b</bdi> <span class="tag">this process</span><td class="n">0<td>yes`, body)
	})
}

// A process that leads, and reads nothing any more, names all that led: itself and another that was silent before.
func TestPageNamesAllThatLedBeforeAnOutage(t *testing.T) {
	scenario.Simulate(t, nelitest.Options{}, func(c *scenario.Cluster) { c.Roles = 2 }, func(c *scenario.Cluster) {
		two := func(cfg *neli.Config) {
			scenario.Open(cfg)
			cfg.Roles, cfg.HeartbeatTimeout, cfg.HeartbeatInterval = 2, 20*time.Second, time.Second
		}
		a := c.Work("a", two)
		c.Leader(0, 30*time.Second)
		b := c.Work("b", two)
		c.Eventually(2*time.Minute, "each leads a role", func() bool { return a.IsLeader() && b.IsLeader() })
		page := nelihttp.Handler(a.Neli)
		c.Crash(b)
		c.Pass(4 * time.Second)
		c.Broker.CutOff("a", nelitest.LinkAll)
		c.Pass(6 * time.Second)
		headline, _ := visit(c, page)
		require.Regexp(c, `^this process has read nothing for \d.\d s; before that, a and b led$`, headline)
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequestWithContext(c.Context(), "GET", "/", nil))
		require.Regexp(c, `<time class="bad">1\d s ago</time>`, w.Body.String())
	})
}
