package browser

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/goneli/neli"
	"github.com/goneli/neli/nelihttp"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// member is a process with a page.
type member struct {
	*neli.Neli
	page *httptest.Server
	url  string
}

// join starts a member that contends. T is long, so that no leader lapses while the browser has all cores.
func join(t *testing.T, broker *nelitest.Broker, name string, change func(*neli.Config), opts ...nelihttp.Option) *member {
	t.Helper()
	cfg := neli.Config{LeaderGroupID: "invoices", Name: name, HeartbeatTimeout: 5 * time.Second, Provider: broker.Provider(name)}
	if change != nil {
		change(&cfg)
	}
	n, err := neli.New(cfg)
	require.NoError(t, err)
	work := time.NewTicker(5 * time.Millisecond)
	t.Cleanup(work.Stop) // after Close, which waits for the task
	_, err = n.Background(func() { <-work.C })
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/neli/", http.StripPrefix("/neli", nelihttp.Handler(n, opts...)))
	m := &member{Neli: n, page: httptest.NewServer(mux)}
	m.url = m.page.URL + "/neli/"
	t.Cleanup(func() {
		require.NoError(t, n.Close()) // streams end with it
		m.page.Close()
	})
	return m
}

// transfer hands a role over to a member that is up. It tries again if the member answers too late, on a busy machine.
func (m *member) transfer(t *testing.T, role int, to string) {
	t.Helper()
	require.Eventually(t, func() bool {
		err := m.Transfer(t.Context(), role, to)
		if !errors.Is(err, neli.ErrNoMember) && !errors.Is(err, neli.ErrNoAnswer) {
			assert.NoError(t, err)
			return true
		}
		return false
	}, patience, 20*time.Millisecond)
}

func (m *member) leads(t *testing.T) {
	t.Helper()
	require.Eventually(t, m.IsLeader, patience, 5*time.Millisecond)
}

const (
	// led is true once every role of the demo has a leader.
	led    = `(setSpeed(8), !!document.querySelector("#roles .tag") && !document.querySelector("#roles .none"))`
	leader = `document.querySelector("#roles .tag").firstChild.textContent.trim()` // of role 0, if it has one
)

func TestDemoPage(t *testing.T) {
	browser := startBrowser(t)
	path, err := filepath.Abs("../../demo-page/demo.html")
	require.NoError(t, err)
	require.FileExists(t, path, "make demo-page writes it")
	for _, mode := range []string{"exclusive", "non-exclusive"} {
		url := "file://" + path + "#" + mode
		t.Run("a stranger at "+mode, func(t *testing.T) { stranger(t, open(t, browser, url)) })
		t.Run("200 random presses at "+mode, func(t *testing.T) { presses(t, open(t, browser, url), mode == "exclusive") })
		onAllScreens(t, browser, "demo-"+mode, url, led)
	}
}

// stranger kills a leader, suspends and wakes another, and reads what the page says about that.
func stranger(t *testing.T, at *tab) {
	at.becomes(led, "true")
	for _, action := range []string{"kill", "suspend"} {
		member := at.eval(leader)
		at.do(chromedp.Click(fmt.Sprintf("#%s .%s", member, action)))
		at.becomes(fmt.Sprintf(`el("tale").querySelector(".%s")?.innerText.includes("%s is ")`, action, member), "true")
		at.becomes(fmt.Sprintf(`%s && %s !== "%s"`, led, leader, member), "true")
	}
	at.becomes(`document.querySelector(".Suspended .age").innerText.includes("over")`, "true")
	at.do(chromedp.Click(".Suspended .wake"))
	at.becomes(`el("tale").querySelector(".wake")?.innerText.includes("whatever it believed")`, "true")
	paused := at.eval("(setSpeed(0), now())")
	require.Equal(t, paused, at.eval("now()"), "the clock stands while the page is paused")
}

// presses presses a button at random each second of the demo's time. While more than four things are broken it only
// repairs, so that most roles have leaders. At the end it repairs everything.
func presses(t *testing.T, at *tab, exclusive bool) {
	at.becomes(led, "true")
	at.eval(`(pressed = 0, random = 1, next = now(), setInterval(() => {
		const all = of => [...document.querySelectorAll(of)].filter(b => !b.hidden), broken = all("article :is(.wake, .mend, .fast, .start)")
		const can = broken.length > 4 ? broken : all("article button")
		if (pressed >= 200 || now() < next) return
		can[(random = random * 48271 % 0x7fffffff) % can.length].click()
		pressed++
		next = now() + 1000
	}, 5))`)
	for n := 25; n <= 200; n += 25 {
		at.becomes(fmt.Sprintf("pressed >= %d", n), "true")
	}
	at.eval(`document.querySelectorAll(".wake, .mend, .fast, .start").forEach(b => b.click())`)
	at.becomes(led, "true")
	require.Equal(t, "false", at.eval(`/undefined|null|failed/.test(el("tale").innerText)`), at.eval(`el("tale").innerText`))
	if exclusive {
		require.Equal(t, "1,1,1,1", at.eval("most"), "the largest number of leaders of each role")
	}
	require.Empty(t, at.eval(`el("note").textContent`), "the program has ended")
}
