package browser

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/goneli/neli"
	"github.com/goneli/neli/nelihttp"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// On narrow and wide screens, in light and dark mode, nothing is wider than the window, the browser logs no errors,
// and the graphics have the colours of the mode. With NELI_PICTURES=folder each case writes a picture.
func widths(t *testing.T, browser context.Context) {
	broker := nelitest.NewBroker(nelitest.Options{})
	few := func(cfg *neli.Config) { cfg.Roles = 6 }
	a := join(t, broker, "10.0.0.7:8080", few, nelihttp.WithMetrics("metrics"), nelihttp.WithControl(func(*http.Request) bool { return false }))
	a.leads(t)
	b := join(t, broker, "10.0.0.8:8080", few)
	join(t, broker, "billing-7d9f8b6c5-x2x9q.eu-central-1.compute.internal:8080", few)
	require.Eventually(t, func() bool { return len(a.Members()) == 3 }, patience, 10*time.Millisecond)
	watching := open(t, browser, a.url)
	watching.becomes(row, "0-5 10.0.0.7:8080 this process")
	a.transfer(t, 4, "10.0.0.8:8080")
	a.transfer(t, 5, "billing-7d9f8b6c5-x2x9q.eu-central-1.compute.internal:8080")
	watching.becomes(`document.querySelectorAll(".map svg").length + " " + document.querySelectorAll(".lane").length`, "6 6")
	long := join(t, nelitest.NewBroker(nelitest.Options{}), strings.Repeat("W", 256), func(cfg *neli.Config) { cfg.Roles = 1000 })
	long.leads(t)
	for name, m := range map[string]*member{"leader": a, "follower": b, "long": long} {
		onAllScreens(t, browser, name, m.url, `document.querySelectorAll(".lane rect").length > 0 && document.querySelectorAll(".legend li").length > 0`)
	}
}

// The same holds while a leader is silent, while the brokers cannot be reached, and for the first visitor of a
// process that has read nothing yet.
func troubles(t *testing.T, browser context.Context) {
	broker := nelitest.NewBroker(nelitest.Options{})
	slow := func(cfg *neli.Config) {
		cfg.Roles, cfg.HeartbeatTimeout, cfg.HeartbeatInterval = 6, 20*time.Second, 500*time.Millisecond
	}
	a := join(t, broker, "10.0.0.7:8080", slow)
	a.leads(t)
	b := join(t, broker, "10.0.0.8:8080", slow)
	require.Eventually(t, func() bool { return len(a.Members()) == 2 }, patience, 10*time.Millisecond)
	a.transfer(t, 3, "10.0.0.8:8080")
	a.transfer(t, 4, "10.0.0.8:8080")
	broker.CutOff("10.0.0.9:8080", nelitest.LinkAll)
	first := join(t, broker, "10.0.0.9:8080", slow)
	onAllScreens(t, browser, "first", first.url, `document.querySelector("#lead").innerText.includes("not known yet")`)
	broker.CutOff("10.0.0.8:8080", nelitest.LinkAll) // as if it had crashed
	onAllScreens(t, browser, "crash", a.url, `document.querySelector("#lead").innerText.includes("not heard for")`)
	broker.CutOff("10.0.0.7:8080", nelitest.LinkAll)
	onAllScreens(t, browser, "outage", a.url, `document.querySelector("#lead").innerText.includes("has read nothing for")`)
	onAllScreens(t, browser, "outage-follower", b.url, `document.querySelector("#lead").innerText.includes("has read nothing for")`)
}

// onAllScreens opens a page on each width and in each mode, and waits until it is as expected. It closes the page after
// each: a browser has at most six connections to a server, and each page keeps one.
func onAllScreens(t *testing.T, browser context.Context, name, url, expected string) {
	for _, width := range []int64{390, 1280} {
		for _, scheme := range []string{"light", "dark"} {
			t.Run(fmt.Sprintf("%s-%d-%s", name, width, scheme), func(t *testing.T) {
				at := open(t, browser, url, chromedp.EmulateViewport(width, 900), chromedp.Func(preferring(scheme)))
				at.becomes(expected, "true")
				require.Equal(t, fmt.Sprint(width), at.eval("innerWidth"))
				require.Equal(t, "true", at.eval("document.documentElement.scrollWidth <= innerWidth"), at.eval("document.documentElement.scrollWidth"))
				dark := at.eval(`getComputedStyle(document.body).backgroundColor.match(/\d+/g).every(c => c < 50)`)
				require.Equal(t, fmt.Sprint(scheme == "dark"), dark)
				require.Equal(t, "true", at.eval(`[...document.querySelectorAll(".lane rect, .map rect")].every(r => getComputedStyle(r).fill !== "rgb(0, 0, 0)")`))
				if folder := os.Getenv("NELI_PICTURES"); folder != "" {
					png, err := chromedp.Run(at.ctx, chromedp.FullScreenshot(100))
					require.NoError(t, err)
					require.NoError(t, os.WriteFile(filepath.Join(folder, filepath.Base(t.Name())+".png"), png, 0o644))
				}
			})
		}
	}
}

// preferring returns an action that sets dark or light mode.
func preferring(scheme string) func(context.Context, *chromedp.Target) error {
	return func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	}
}
