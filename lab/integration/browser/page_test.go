package browser

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/goneli/neli"
	"github.com/goneli/neli/nelihttp"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// The browser is started once, and each subtest has its own tabs.
func TestPageInChromium(t *testing.T) {
	browser := startBrowser(t)
	for _, c := range []struct {
		name string
		test func(*testing.T, context.Context)
	}{
		{"a row follows the leader, without a reload", rowFollowsTheLeader},
		{"a page whose server has gone says so", staleWhenTheServerHasGone},
		{"without JavaScript the page is loaded anew", refreshWithoutJavaScript},
		{"names are text", namesAreText},
		{"buttons move leadership, and are not there else", buttons},
		{"phones and desks, light and dark", widths},
		{"a crash, an outage and a first visitor", troubles},
		{"the picture in the documents", picture},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, browser) })
	}
}

func rowFollowsTheLeader(t *testing.T, browser context.Context) {
	broker := nelitest.NewBroker(nelitest.Options{})
	a := join(t, broker, "a", nil)
	a.leads(t)
	b := join(t, broker, "b", nil)
	atA, atB := open(t, browser, a.url, chromedp.Func(eventsOnly)), open(t, browser, b.url, chromedp.Func(eventsOnly))
	atA.becomes(row, "0 a this process")
	atB.becomes(row, "0 a")

	broker.CutOff("a", nelitest.LinkAll)
	atB.becomes(row, "0 b this process")
	atA.becomes(row, "0 unknown")
	require.Equal(t, "unknown", atA.eval(`document.querySelector("#standings tbody tr").className.trim()`))
	broker.Restore("a", nelitest.LinkAll)
	atA.becomes(row, "0 b")

	require.Eventually(t, func() bool { return len(b.Members()) == 2 }, patience, 10*time.Millisecond)
	b.transfer(t, 0, "a")
	atA.becomes(row, "0 a this process")
	atB.becomes(row, "0 a")
	atA.loadedOnce()
	atB.loadedOnce()
}

func staleWhenTheServerHasGone(t *testing.T, browser context.Context) {
	a := join(t, nelitest.NewBroker(nelitest.Options{}), "a", nil)
	a.leads(t)
	at := open(t, browser, a.url)
	at.becomes(row, "0 a this process")
	at.becomes(`document.querySelector("#note").innerText`, "")
	a.page.Listener.Close()
	a.page.CloseClientConnections()
	at.becomes(`document.querySelector("#note").innerText.startsWith("No answer from this process since")`, "true")
	require.Equal(t, "stale", at.eval(`document.querySelector("main").className`))
	at.becomes(row, "0 a this process")
	at.loadedOnce()
}

func refreshWithoutJavaScript(t *testing.T, browser context.Context) {
	broker := nelitest.NewBroker(nelitest.Options{})
	a := join(t, broker, "a", nil)
	a.leads(t)
	b := join(t, broker, "b", nil)
	at := open(t, browser, b.url, chromedp.Func(withoutJavaScript))
	at.becomes(row, "0 a")
	a.transfer(t, 0, "b")
	at.becomes(row, "0 b this process")
	require.Equal(t, "undefined", at.eval("window.loadedOnce"), "by loading it anew")
}

func namesAreText(t *testing.T, browser context.Context) {
	broker := nelitest.NewBroker(nelitest.Options{})
	hostile := `"><img src="https://evil.example/x" onerror="hacked=1"><script>hacked=1</script></table></main>`
	a := join(t, broker, "a", func(cfg *neli.Config) { cfg.Name, cfg.LeaderGroupID = hostile, hostile; cfg.LeaderTopic = "t" },
		nelihttp.WithTitle(hostile), nelihttp.WithURL(func(h neli.Holder) string { return "javascript:hacked=1//" + h.Name }))
	a.leads(t)
	at := open(t, browser, a.url)
	at.becomes(row, "0 "+hostile+" this process")
	require.Equal(t, "undefined", at.eval("typeof hacked"))
	require.Equal(t, "0", at.eval(`document.querySelectorAll("img, main a, iframe").length`))
	require.Equal(t, hostile, at.eval(`document.querySelector("h1").innerText`))
}

func buttons(t *testing.T, browser context.Context) {
	const count = `document.querySelectorAll("button, input").length`
	broker := nelitest.NewBroker(nelitest.Options{})
	allowed := nelihttp.WithControl(func(r *http.Request) bool { return r.Host != "" })
	a := join(t, broker, "a", nil, allowed)
	a.leads(t)
	b := join(t, broker, "b", nil)
	require.Equal(t, "0", open(t, browser, b.url).eval(count))

	at := open(t, browser, a.url)
	require.Equal(t, "4", at.eval(count))
	require.Eventually(t, func() bool { return len(a.Members()) == 2 }, patience, 10*time.Millisecond)
	at.do(chromedp.SendKeys(`input[name="role"]`, "0"))
	at.do(chromedp.SendKeys(`input[name="to"]`, "b"))
	at.do(chromedp.Click(`form[action="transfer"] button`))
	b.leads(t)
	at.becomes(row, "0 b")
	require.Equal(t, a.url, at.eval("location.href"), "back on the page")

	require.Eventually(t, func() bool { return len(b.Members()) == 2 }, patience, 10*time.Millisecond)
	b.transfer(t, 0, "a")
	a.leads(t)
	at.do(chromedp.Click(`form[action="stepdown"] button`))
	b.leads(t)
	at.becomes(row, "0 b")
}

// picture makes docs/pages.png and docs/pages-crash.png, if NELI_PICTURE names the first one's file.
func picture(t *testing.T, browser context.Context) {
	broker := nelitest.NewBroker(nelitest.Options{})
	six := func(cfg *neli.Config) { cfg.Roles = 6 }
	a := join(t, broker, "10.0.0.7:8080", six)
	a.leads(t)
	at := open(t, browser, a.url)
	at.do(chromedp.EmulateViewport(1000, 450))
	b, c := join(t, broker, "10.0.0.8:8080", six), join(t, broker, "10.0.0.9:8080", six)
	require.Eventually(t, func() bool { return len(a.Members()) == 3 }, patience, 10*time.Millisecond)
	for i, m := range []struct {
		to   *member
		role int
	}{{b, 3}, {c, 5}, {c, 3}, {b, 1}, {a, 5}, {b, 3}, {c, 5}, {b, 4}} {
		if os.Getenv("NELI_PICTURE") != "" && i > 0 {
			<-time.After(9 * time.Second) // so that the time line has something to show
		}
		require.Eventually(t, func() bool {
			for _, from := range []*member{a, b, c} {
				if from != m.to && from.IsLeaderOf(m.role) {
					_ = from.Transfer(t.Context(), m.role, m.to.Config().Name)
				}
			}
			return m.to.IsLeaderOf(m.role)
		}, patience, 100*time.Millisecond)
	}
	at.becomes(`document.querySelectorAll(".map svg").length + document.querySelector("#lead").className`, "6")
	png, err := chromedp.Run(at.ctx, chromedp.FullScreenshot(100))
	require.NoError(t, err)
	require.Equal(t, "\x89PNG", string(png[:4]))
	if file := os.Getenv("NELI_PICTURE"); file != "" {
		require.NoError(t, os.WriteFile(file, png, 0o644))
	}

	broker.CutOff(c.Config().Name, nelitest.LinkAll) // as if it had crashed
	at.becomes(`/, not heard for [2-4][.]/.test(document.querySelector("#lead").innerText)`, "true")
	if file := os.Getenv("NELI_PICTURE"); file != "" {
		png, err = chromedp.Run(at.ctx, chromedp.FullScreenshot(100))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(strings.TrimSuffix(file, ".png")+"-crash.png", png, 0o644))
	}
}
