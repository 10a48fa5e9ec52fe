package nelihttp

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli"
	"github.com/stretchr/testify/require"
)

// began returns a Standing whose term began some time ago.
func began(s neli.Standing, ago time.Duration) neli.Standing {
	s.Holder.Since = time.Now().Add(-ago)
	return s
}

// laneOf returns a lane as text: the holders, and for how many seconds each.
func laneOf(l lane) string {
	var all []string
	for _, s := range l.slices {
		text := ""
		for _, p := range s.parts {
			text += fmt.Sprintf("%s%s", p.who.kind, p.who.name)
			if p.share < 1 {
				text += fmt.Sprintf("*%.2f", p.share)
			}
			text += "+"
		}
		all = append(all, fmt.Sprintf("%s %v", strings.TrimSuffix(text, "+"), s.to.Sub(s.from).Seconds()))
	}
	return strings.Join(all, ", ")
}

// The first visitor sees the present term since its start. The time before was not watched.
func TestFirstVisitorSeesThePresentTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newScript(began(standing(0, "0", "a", 17), 3*time.Minute), standing(0, "1", "vacant", 0))
		h := newTestHandler(src)
		h.known.get()
		require.Equal(t, "unseen 420, helda 180", laneOf(h.past.lanes[0]))
		require.Equal(t, "unseen 600", laneOf(h.past.lanes[1]), "since when it is vacant is not known")

		time.Sleep(time.Minute) // nobody watches; since the term is the same, a has led all the time
		src.become(began(standing(0, "0", "a", 17), 4*time.Minute), began(standing(0, "1", "b", 20), 10*time.Second))
		h.known.get()
		require.Equal(t, "unseen 360, helda 240", laneOf(h.past.lanes[0]))
		require.Equal(t, "unseen 590, heldb 10", laneOf(h.past.lanes[1]))
	})
}

// newTestHandler returns a handler without its routes.
func newTestHandler(src source) *handler {
	h := &handler{src: src, past: &history{}}
	h.known = &shared[*glance]{compute: h.look}
	h.feed = newFeed(src, h.known, h.past)
	return h
}

// While there is a stream, each change is on the time line. Without one the time is not watched, except
// for the present term.
func TestHistoryFollowsChangesWhileThereIsAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newScript(began(standing(0, "0", "a", 17), time.Minute))
		h := newTestHandler(src)
		_, leave, ok := h.feed.join()
		require.True(t, ok)
		time.Sleep(10 * time.Second)
		src.become(standing(0, "0", "vacant", 0))
		time.Sleep(3 * time.Second)
		src.become(began(standing(0, "0", "b", 20), 0))
		time.Sleep(5 * time.Second)
		leave()
		require.Equal(t, "unseen 522, helda 70, vacant 3, heldb 5", laneOf(h.past.lanes[0]))
		time.Sleep(20 * time.Second)
		src.become(standing(0, "0", "vacant", 0))
		h.known.get()
		require.Equal(t, "unseen 502, helda 70, vacant 3, heldb 5, unseen 20", laneOf(h.past.lanes[0]))
		time.Sleep(time.Hour)
		h.known.get()
		require.Equal(t, "unseen 600", laneOf(h.past.lanes[0]), "what is older than ten minutes is gone")
	})
}

// The history and the page stay small, however many changes, roles and holders there are.
func TestHistoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newScript()
		h := newTestHandler(src)
		h.past.resume()
		r := rand.New(rand.NewPCG(1, 2))
		for _, roles := range []int{8, 100} {
			for range 200 {
				time.Sleep(2 * time.Second)
				var now []neli.Standing
				for i := range roles {
					now = append(now, began(standing(0, fmt.Sprint(i), fmt.Sprint("host", r.IntN(200)), int64(r.IntN(1e6))), 0))
				}
				h.past.observe(glanceOf(now))
				src.mu.Lock()
				src.known = now
				src.mu.Unlock()
			}
			for _, l := range append(h.past.lanes[:], h.past.all) {
				require.LessOrEqual(t, len(l.slices), maxSlices)
				whole := time.Duration(0)
				for _, s := range l.slices {
					share := 0.0
					require.LessOrEqual(t, len(s.parts), maxParts)
					for _, p := range s.parts {
						share += p.share
					}
					require.InDelta(t, 1, share, 1e-6)
					whole += s.to.Sub(s.from)
				}
				if len(l.slices) > 0 {
					require.InDelta(t, 600, whole.Seconds(), 1, "the ten minutes, without a hole")
				}
			}
			page := h.render(h.known.fresh(), "")
			require.NoError(t, page.err)
			t.Logf("%d roles: %d bytes", roles, len(page.body))
			require.Less(t, len(page.body), 350_000)
		}
	})
}

func glanceOf(known []neli.Standing) *glance {
	g := &glance{at: time.Now(), standings: known, sizes: make([]int, len(known))}
	for i, s := range known {
		for range s.Roles() {
			g.sizes[i]++
		}
	}
	return g
}

// A hundred thousand roles of a hundred holders are drawn as a few cells, each with a title.
func TestMapOfManyRoles(t *testing.T) {
	var known []neli.Standing
	for i := range 100 {
		known = append(known, standing(0, fmt.Sprintf("%d-%d", i*1000, i*1000+999), fmt.Sprint("host", i%10), int64(i)))
	}
	page := pageOf(t, newScript(known...), "")
	require.Equal(t, 240, strings.Count(page, "<svg><title>roles "))
	require.Contains(t, page, "<title>roles 0-416: host0</title>")
	require.Contains(t, page, "map of 100000 roles in 240 cells")
	require.Contains(t, page, "417 roles per cell")
	require.Contains(t, page, "10 processes lead 100000 roles")
	require.Less(t, len(page), 80_000)
}

// A holder keeps its colour while others come and go, and no two have the same.
func TestColoursAreStable(t *testing.T) {
	var p palette
	first := p.assign([]string{"a", "b", "c"})
	again := p.assign([]string{"0", "1", "b", "c", "a", "2", "3", "4"})
	used := map[int]bool{}
	for name, c := range again {
		require.False(t, used[c], name)
		used[c] = true
	}
	for name, c := range first {
		require.Equal(t, c, again[name], name)
	}
	var q palette
	require.Equal(t, first, q.assign([]string{"c", "a", "b"}), "whatever process has the page")
}

// Names in titles and labels are escaped, cut, and cannot change the direction of the text.
func TestHostileNamesInGraphics(t *testing.T) {
	for _, name := range []string{`</title><script>x`, `"><rect onload=x`, "a\u202eb\u2066", strings.Repeat("W", 1000), "\xff"} {
		page := pageOf(t, newScript(standing(0, "0", name, 17), standing(0, "1", "b", 18)), "")
		page, _, _ = strings.Cut(page, "<h2>Roles</h2>")
		_, page, _ = strings.Cut(page, `<main>`)
		require.NotContains(t, page, "<script")
		require.NotRegexp(t, `<rect [^>]*onload`, page)
		require.NotContains(t, page, "\u202e")
		require.NotContains(t, page, "\u2066")
		require.NotContains(t, page, strings.Repeat("W", 61))
		require.Equal(t, strings.Count(page, "<title>"), strings.Count(page, "</title>"))
	}
}

// heard returns a Standing whose holder was heard some time ago.
func heard(s neli.Standing, ago time.Duration) neli.Standing {
	s.Holder.Age = ago
	return s
}

// A follower's headline names the leaders too, ordered by name.
func TestHeadline(t *testing.T) {
	for want, known := range map[string][]neli.Standing{
		"b leads":                             {standing(0, "0-3", "b", 21)},
		"b and c lead":                        {standing(0, "0", "c", 21), standing(0, "1", "b", 22)},
		"b leads; c led, not heard for 3.0 s": {standing(0, "0", "b", 21), heard(standing(0, "1", "c", 22), 3*time.Second)},
		"c led; not heard for 3.0 s":          {heard(standing(0, "0-3", "c", 22), 3*time.Second)},
		"b and c led; not heard for 4.0 s":    {heard(standing(0, "0", "c", 22), 3*time.Second), heard(standing(0, "1", "b", 22), 4*time.Second)},
		"nobody leads":                        {standing(0, "0", "vacant", 0)},
		"the leader is not known yet":         {standing(0, "0", "unknown", 0)},
		"4 processes lead 4 roles":            {standing(0, "0", "b", 1), standing(0, "1", "c", 2), standing(0, "2", "d", 3), standing(0, "3", "e", 4)},
	} {
		page := pageOf(t, newScript(known...), "")
		require.Regexp(t, `<p id="lead"[^>]*><bdi>`+want+`</bdi>`, page)
	}
}

func TestLinkToMetrics(t *testing.T) {
	src := situations()["leading"]
	require.NotContains(t, pageOf(t, src, ""), ">metrics<")
	require.Contains(t, pageOf(t, src, "", WithMetrics("/metrics")), `<a href="/metrics">metrics</a>`)
	for _, bad := range []string{"", "javascript:alert(1)", "data:x", "http://["} {
		require.Panics(t, func() { WithMetrics(bad) }, bad)
	}
}
