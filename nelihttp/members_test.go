package nelihttp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/scenario"
	"github.com/goneli/neli/nelihttp"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// get sends a GET to a member.
func get(c *scenario.Cluster, m *scenario.Member, path string) (status int, body string) {
	w := httptest.NewRecorder()
	nelihttp.Handler(m.Neli).ServeHTTP(w, httptest.NewRequestWithContext(c.Context(), "GET", path, nil))
	return w.Code, w.Body.String()
}

// statuses returns the status codes of a member's answers to GET of several routes.
func statuses(c *scenario.Cluster, m *scenario.Member, paths ...string) string {
	var all []string
	for _, p := range paths {
		status, _ := get(c, m, p)
		all = append(all, fmt.Sprint(status))
	}
	return strings.Join(all, " ")
}

// names returns the holders in a member's /standings, or the status of roles without one.
func names(c *scenario.Cluster, m *scenario.Member) (out []string) {
	_, body := get(c, m, "/standings")
	var a struct{ Standings []neli.Standing }
	require.NoError(c, json.Unmarshal([]byte(body), &a), body)
	for _, s := range a.Standings {
		out = append(out, strings.TrimSpace(s.Status.String()+" "+s.Holder.Name))
	}
	return out
}

// Whole members on a broker in memory: leading, following, cut off, taken over, closed.
func TestMembersAnswer(t *testing.T) {
	routes := []string{"/leader", "/leader/0", "/holder/0", "/standings", "/healthz"}
	scenario.Simulate(t, nelitest.Options{}, nil, func(c *scenario.Cluster) {
		a := c.Work("a", scenario.Open)
		require.Equal(c, "503 503 404 200 200", statuses(c, a, routes...), "just begun")
		c.Leader(0, 15*time.Second)
		b, o := c.Work("b", scenario.Open), c.Join("o", func(cfg *neli.Config) { cfg.Observer = true })
		c.Pass(10 * time.Second)
		require.Equal(c, "200 200 200 200 200", statuses(c, a, routes...))
		require.Equal(c, "503 503 200 200 200", statuses(c, b, routes...))
		require.Equal(c, "503 503 200 200 200", statuses(c, o, routes...))
		for _, m := range []*scenario.Member{a, b, o} {
			require.Equal(c, []string{"held a"}, names(c, m))
			_, page := get(c, m, "/")
			require.Contains(c, page, `<tr class="held`)
			require.Equal(c, m == a, strings.Contains(page, `<tr class="held self">`), "the mark of who is asked")
		}

		c.Broker.CutOff("a", nelitest.LinkAll)
		c.Eventually(15*time.Second, "b leads", func() bool { return b.IsLeaderOf(0) })
		require.Equal(c, "503 503", statuses(c, a, "/leader", "/leader/0"), "by its own clock")
		c.Pass(time.Second)
		require.Equal(c, "200 200 200 200 200", statuses(c, b, routes...))
		require.Equal(c, []string{"vacant"}, names(c, a), "it reads nothing")
		require.Equal(c, []string{"held b"}, names(c, o))
		c.Pass(15 * time.Second)
		require.Equal(c, "503", statuses(c, a, "/healthz"))
		c.Broker.Restore("a", nelitest.LinkAll)
		c.Pass(10 * time.Second)
		require.Equal(c, "503 503 200 200 200", statuses(c, a, routes...))
		require.Equal(c, []string{"held b"}, names(c, a))

		require.NoError(c, b.Close())
		require.Equal(c, "503 503 503 503 503 503 200", statuses(c, b, append(routes, "/members", "/stats")...))
		c.Eventually(time.Second, "a leads", func() bool { return a.IsLeader() })
		require.Equal(c, "200 200 200 200 200", statuses(c, a, routes...))
	})
}

// An observer announces nothing. It is healthy even if no member is left whose records it could read.
func TestAnObserverOfAGroupWithoutMembersIsHealthy(t *testing.T) {
	scenario.Simulate(t, nelitest.Options{}, nil, func(c *scenario.Cluster) {
		a := c.Work("a", scenario.Open)
		c.Leader(0, 15*time.Second)
		o := c.Join("o", func(cfg *neli.Config) { cfg.Observer = true })
		c.Pass(10 * time.Second)
		require.Equal(c, "200", statuses(c, o, "/healthz"))
		require.NoError(c, a.Close())
		c.Pass(time.Minute)
		status, body := get(c, o, "/healthz")
		require.Equal(c, 200, status, body)
		require.NoError(c, o.Close())
		require.Equal(c, "503", statuses(c, o, "/healthz"))
	})
}

// In non-exclusive mode a process can say whether it leads, but not who else does.
func TestMembersAnswerInNonExclusiveMode(t *testing.T) {
	scenario.Simulate(t, nelitest.Options{}, scenario.Overlapping, func(c *scenario.Cluster) {
		a := c.Work("a", func(cfg *neli.Config) { cfg.Mode = neli.NonExclusive })
		c.Leader(0, time.Minute)
		require.Equal(c, "200 200 503 404 404 404 404 200 200", statuses(c, a, "/leader", "/leader/0", "/leader/1", "/holder/0", "/standings",
			"/members", "/events", "/healthz", "/"))
	})
}

// The buttons of the page work.
func TestControlOfMembers(t *testing.T) {
	scenario.Simulate(t, nelitest.Options{}, nil, func(c *scenario.Cluster) {
		a := c.Work("a", scenario.Open)
		c.Leader(0, 15*time.Second)
		b := c.Work("b", scenario.Open)
		c.Pass(6 * time.Second)
		post := func(m *scenario.Member, path, body string) int {
			r := httptest.NewRequestWithContext(c.Context(), "POST", path, strings.NewReader(body))
			r.Host = "localhost"
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			nelihttp.Handler(m.Neli, nelihttp.WithControl(func(*http.Request) bool { return true })).ServeHTTP(w, r)
			return w.Code
		}
		require.Equal(c, 409, post(b, "/transfer", "role=0&to=a"), "it does not lead")
		require.Equal(c, 404, post(a, "/transfer", "role=0&to=z"))
		require.True(c, a.IsLeader())
		require.Equal(c, 200, post(a, "/transfer", "role=0&to=b"))
		c.Eventually(time.Second, "b leads", b.IsLeader)
		require.Equal(c, 200, post(b, "/stepdown", ""))
		require.False(c, b.IsLeader())
		c.Eventually(time.Second, "a leads", a.IsLeader)
		require.NoError(c, a.Close())
		require.Equal(c, 503, post(a, "/stepdown", ""))
	})
}
