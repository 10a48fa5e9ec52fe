package browser

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// patience is the longest that any step may take on a busy machine.
const patience = 30 * time.Second

// startBrowser starts Chromium for a test. It resolves no names, so that no request can leave the machine.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)), chromedp.DisableGPU, chromedp.NoSandbox,
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"), chromedp.WindowSize(1100, 800))
	alloc, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	_, err := chromedp.Run(ctx, chromedp.Evaluate[int]("1"))
	require.NoError(t, err, "Chromium does not start")
	t.Cleanup(func() { require.NoError(t, chromedp.Cancel(ctx)) })
	return ctx
}

// chromium returns the browser's path.
func chromium(t *testing.T) string {
	t.Helper()
	names := []string{"chromium", "chromium-headless-shell", "chromium-browser", "google-chrome"}
	if named := os.Getenv("NELI_CHROMIUM"); named != "" {
		names = []string{named}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	require.FailNowf(t, "no Chromium", "none of %s was found: apt-get install chromium (Debian), or name one in NELI_CHROMIUM", strings.Join(names, ", "))
	return ""
}

// tab is a page in the browser, with its requests and its console messages.
type tab struct {
	t    *testing.T
	ctx  context.Context
	host string

	mu         sync.Mutex
	requests   []string
	complaints []string
}

// open opens a URL in a tab of its own.
func open(t *testing.T, browser context.Context, address string, before ...chromedp.Action[chromedp.Void]) *tab {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	ctx, cancel := chromedp.NewContext(browser)
	b := &tab{t: t, ctx: ctx, host: u.Host}
	t.Cleanup(func() {
		cancel()
		b.check()
	})
	require.NoError(t, chromedp.Listen(ctx, b.heard))
	_, err = chromedp.Call(ctx, network.Enable, network.EnableParams{})
	require.NoError(t, err)
	messages := chromedp.Console(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.Source != "network" { // a server that has gone is part of the tests
				b.mu.Lock()
				b.complaints = append(b.complaints, m.String())
				b.mu.Unlock()
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		work.Wait()
	})
	for _, step := range append(before, chromedp.Navigate(address)) {
		b.do(step)
	}
	// This variable is gone if the page is loaded again.
	b.eval("window.loadedOnce = true")
	return b
}

func (b *tab) heard(e any) {
	if r, ok := e.(*network.EventRequestWillBeSent); ok {
		b.mu.Lock()
		b.requests = append(b.requests, r.Request.URL)
		b.mu.Unlock()
	}
}

// check fails the test if the page sent a request to another host, or if the browser refused something that the page
// tried to do.
func (b *tab) check() {
	b.mu.Lock()
	defer b.mu.Unlock()
	require.NotEmpty(b.t, b.requests)
	for _, r := range b.requests {
		u, err := url.Parse(r)
		require.NoError(b.t, err)
		require.True(b.t, u.Scheme == "data" || u.Host == b.host, "the page asked for %s", r)
	}
	require.Empty(b.t, b.complaints, "on the browser's console")
}

func (b *tab) do(step chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, step))
}

// eval returns the value of an expression as text.
func (b *tab) eval(expression string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("String("+expression+")"))
	require.NoError(b.t, err, expression)
	return text
}

// becomes waits until an expression has a value.
func (b *tab) becomes(expression, want string) {
	b.t.Helper()
	last := ""
	require.Eventuallyf(b.t, func() bool {
		last = b.eval(expression)
		return last == want
	}, patience, 20*time.Millisecond, "%s should become %q", expression, want)
}

// loadedOnce fails the test if the page was loaded again.
func (b *tab) loadedOnce() {
	b.t.Helper()
	require.Equal(b.t, "true", b.eval("window.loadedOnce"), "the page was loaded anew")
}

// row is the table of Standings as text: each row's roles, and its holder or status.
const row = `[...document.querySelectorAll("#standings tbody tr")].map(r => r.cells[0].innerText + " " + r.cells[2].innerText).join("; ")`

// eventsOnly fires only short timers, which follow an event. So the page learns of changes only by events.
func eventsOnly(ctx context.Context, _ *chromedp.Target) error {
	_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `{ const f = window.setTimeout; window.setTimeout = (do_, after) => after < 1000 ? f(do_, after) : 0 }`})
	return err
}

func withoutJavaScript(ctx context.Context, _ *chromedp.Target) error {
	_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	return err
}
