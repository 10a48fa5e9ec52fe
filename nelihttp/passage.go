package nelihttp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
)

const (
	hopsHeader = "Neli-Hops" // "group=count", one for each group
	maxHops    = 2
	maxOthers  = 8       // groups
	maxGroup   = 3 * 255 // bytes of a group's name, escaped

	// maxReplay is the largest body, in bytes, that is kept so that it can be sent again.
	maxReplay = 64 << 10
)

// hopsOf returns how often a group has forwarded a request, and the counts of other groups. A malformed header counts
// as too often: with it, a stranger can prevent the forwarding of his own request, but not send it in a circle.
func hopsOf(h http.Header, group string) (hops int, others []string) {
	for _, line := range h[hopsHeader] {
		for entry := range strings.SplitSeq(line, ",") { // proxies may have joined lines
			name, count, _ := strings.Cut(strings.TrimSpace(entry), "=")
			n, err := strconv.ParseUint(count, 10, 8)
			switch {
			case err != nil || n == 0 || name == "" || len(name) > maxGroup || name == group && hops > 0 || name != group && len(others) == maxOthers:
				return maxHops, nil
			case name == group:
				hops = int(n)
			default:
				others = append(others, name+"="+count)
			}
		}
	}
	return hops, others
}

// hopsHeaderOf is the header with the count of one group and those of others.
func hopsHeaderOf(others []string, group string, hops int) string {
	return strings.Join(append(others, fmt.Sprintf("%s=%d", group, hops)), ", ")
}

// passage is a request in the form in which it is sent to one holder, or to two in turn.
type passage struct {
	uri   *url.URL // as the client sent it, before handlers changed its path
	hops  string
	body  []byte // if it is known to be small
	again bool   // it can be sent again
}

func newPassage(r *http.Request, hops string) (*passage, error) {
	uri, err := url.ParseRequestURI(r.RequestURI)
	if err != nil {
		return nil, errors.New("the request has no path")
	}
	p := &passage{uri: uri, hops: hops, again: r.ContentLength >= 0 && r.ContentLength <= maxReplay}
	if p.again && r.ContentLength > 0 {
		p.body = make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, p.body); err != nil {
			return nil, errors.New("the body of the request is incomplete")
		}
	}
	return p, nil
}

// rewind gives a request its body again.
func (p *passage) rewind(r *http.Request) {
	if len(p.body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(p.body))
	}
}

// rewrite makes the request to a holder.
func (p *passage) rewrite(q *httputil.ProxyRequest, to *url.URL) {
	q.Out.URL.Path, q.Out.URL.RawPath = p.uri.Path, p.uri.RawPath
	q.SetURL(to)
	// The query stays as it is, even with mistakes, so that the holder finds the same role in it.
	q.Out.URL.RawQuery, q.Out.Host = p.uri.RawQuery, q.In.Host
	if p.body != nil {
		p.rewind(q.Out)
		q.Out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(p.body)), nil }
	}
	q.Out.Header["X-Forwarded-For"] = q.In.Header["X-Forwarded-For"]
	q.SetXForwarded()
	for _, name := range []string{"Forwarded", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if v, ok := q.In.Header[name]; ok {
			q.Out.Header[name] = v
		}
	}
	q.Out.Header[hopsHeader] = []string{p.hops}
}

var errNotLeading = errors.New("the target does not lead")

// send sends a request to a holder and copies the answer. If there is none, it returns why, and has written nothing.
func (f *forwarder) send(w http.ResponseWriter, r *http.Request, p *passage, to target) (no *refusal) {
	// If an idle connection breaks, http.Transport connects again for a request that may be repeated.
	var sent atomic.Bool
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	proxy := httputil.ReverseProxy{
		Transport: f.transport,
		ErrorLog:  f.log,
		Rewrite:   func(q *httputil.ProxyRequest) { p.rewrite(q, to.at) },
		ModifyResponse: func(a *http.Response) error {
			if a.StatusCode == http.StatusMisdirectedRequest && a.Header.Get(notLeader) == f.group {
				return errNotLeading
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { no = f.refusalOf(err, to, sent.Load()) },
	}
	proxy.ServeHTTP(w, r.WithContext(ctx))
	return no
}

// refusalOf says what an error of the proxy means. sent: the holder may have got the request.
func (f *forwarder) refusalOf(err error, to target, sent bool) *refusal {
	var op *net.OpError
	switch {
	case errors.Is(err, errNotLeading):
		return notLeading
	case errors.As(err, &op) && op.Op == "dial" && !sent:
		return &refusal{http.StatusServiceUnavailable, f.timeout - to.holder.Age, "the process that leads the role cannot be reached"}
	}
	return &refusal{http.StatusBadGateway, 0, "the process that leads the role did not answer"}
}
