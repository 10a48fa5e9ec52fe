package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/goneli/neli/testkit/pause"
)

// pictureLimit is how long a picture may take on a busy machine.
const pictureLimit = 3 * time.Minute

// browser is the operator's Chromium. It runs outside the hosts' network and reaches them through
// proxies on loopback.
type browser struct {
	ctx     context.Context
	cancels []func()
	servers []*http.Server
	urls    map[string]string // of the machines' pages and of Prometheus, for the browser
}

// chromium is the browser's path.
func chromium() (string, error) {
	names := []string{"chromium", "chromium-headless-shell", "chromium-browser", "google-chrome"}
	if named := os.Getenv("NELI_CHROMIUM"); named != "" {
		names = []string{named}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no Chromium: none of %s was found: apt-get install chromium, or name one in NELI_CHROMIUM", strings.Join(names, ", "))
}

// openBrowser starts Chromium, which resolves no names, so that no request leaves the machine.
func openBrowser(ctx context.Context, s *site) (*browser, error) {
	path, err := chromium()
	if err != nil {
		return nil, err
	}
	b := &browser{urls: map[string]string{}}
	for _, name := range machineNames {
		err = errors.Join(err, b.proxy(s, name, s.page(name)))
	}
	if err = errors.Join(err, b.proxy(s, hostMonitor, s.address(hostMonitor, promPort))); err != nil {
		b.close()
		return nil, err
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.DisableGPU, chromedp.NoSandbox,
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"), chromedp.WindowSize(1000, 600))
	alloc, cancel := chromedp.NewExecAllocator(ctx, opts...)
	b.cancels = append(b.cancels, cancel)
	b.ctx, cancel = chromedp.NewContext(alloc)
	b.cancels = append(b.cancels, cancel)
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[int]("1")); err != nil {
		b.close()
		return nil, fmt.Errorf("starting Chromium: %w", err)
	}
	return b, nil
}

func (b *browser) close() {
	for _, cancel := range b.cancels {
		defer cancel() // in reverse order
	}
	for _, s := range b.servers {
		_ = s.Close()
	}
}

// proxy makes a host's server reachable on loopback.
func (b *browser) proxy(s *site, name, address string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	target := &url.URL{Scheme: "http", Host: address}
	server := &http.Server{Handler: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: s.client.Transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0)}} // hosts are cut off on purpose, so errors say nothing
	b.servers = append(b.servers, server)
	b.urls[name] = "http://" + l.Addr().String()
	go func() { _ = server.Serve(l) }() // until close
	return nil
}

// picture opens an address in a new tab, waits until a JavaScript expression is true, and returns a
// screenshot.
func (b *browser) picture(address string, height int64, ready string) ([]byte, error) {
	ctx, cancel := chromedp.NewContext(b.ctx)
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, pictureLimit)
	defer stop()
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1000, height), chromedp.Navigate(address)); err != nil {
		return nil, fmt.Errorf("opening %s: %w", address, err)
	}
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](ready))
		if ok {
			break
		}
		if pauseErr := pause.For(ctx, 100*time.Millisecond); pauseErr != nil {
			return nil, fmt.Errorf("waiting for %s: %w", ready, errors.Join(pauseErr, err))
		}
	}
	shot, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		return nil, err
	}
	return smaller(shot)
}

// smaller compresses a picture as far as possible.
func smaller(shot []byte) ([]byte, error) {
	img, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, img)
	return out.Bytes(), err
}

// holderShown is a JavaScript expression that is true when a page's table shows that holder.
func holderShown(name string) string {
	return fmt.Sprintf(`(() => { const r = document.querySelector("#standings tbody tr"); return !!r && r.cells[2].innerText.startsWith(%q) })()`, name)
}

// graphs is the address of Prometheus' own page of graphs.
func graphs(base string, lasted time.Duration, queries ...string) (address, ready string) {
	values := url.Values{}
	for i, q := range queries {
		g := fmt.Sprintf("g%d.", i)
		values.Set(g+"expr", q)
		values.Set(g+"range_input", fmt.Sprintf("%.0fs", lasted.Seconds()))
		values.Set(g+"step_input", "1")
		values.Set(g+"tab", "0")
	}
	return base + "/classic/graph?" + values.Encode(),
		fmt.Sprintf(`[...document.querySelectorAll(".graph")].filter(g => g.querySelector("svg path")).length === %d`, len(queries))
}
