package nelihttp

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/goneli/neli"
)

// Option configures a Handler.
type Option func(*options)

type options struct {
	title   string
	url     func(neli.Holder) string
	allow   func(*http.Request) bool
	hosts   []string
	metrics string
}

// WithTitle sets the heading of the page. Default: the name of the group.
func WithTitle(title string) Option { return func(o *options) { o.title = title } }

// WithURL sets a function that returns the URL of a holder, usually its Advertise. The page links to
// it, and /holder/{role}?redirect=1 redirects there. An empty string means that there is none. Since
// members choose what they announce, anything but an http or https URL with a host counts as none, too. url is
// called on the goroutines of requests, concurrently. Default: no URLs.
func WithURL(url func(neli.Holder) string) Option { return func(o *options) { o.url = url } }

// WithControl enables POST /stepdown and /transfer for requests for which allow returns true, and shows
// their buttons on the page. An allowed client can move leadership, again and again, but cannot create
// two leaders. allow is called on the goroutines of requests, concurrently, before the body is read. It
// is not called for requests that a browser sends for a page of another origin, nor for requests to a
// host that [WithHosts] does not allow: these are refused. By default, and with a nil allow, there
// are no such routes. In non-exclusive mode, where nothing can be handed over, there are none either.
func WithControl(allow func(*http.Request) bool) Option { return func(o *options) { o.allow = allow } }

// WithHosts sets the host names by which people and programs reach this handler, as in the Host header
// but without ports: "ops.example.com". Only requests to one of these, to an IP address or to localhost
// may change leadership. Otherwise an attacker's web page whose name resolves to this server could send
// whatever the browser's user is allowed to send. Behind a proxy that replaces the Host header, give the
// name that it sets, and let the proxy check the original one. WithHosts panics if a name is empty, or
// has a port, a path or a wildcard. Default: none.
func WithHosts(names ...string) Option {
	hosts := make([]string, len(names))
	for i, name := range names {
		if strings.Trim(name, ".") == "" || strings.ContainsAny(name, ":/*@ ") {
			panic(fmt.Sprintf("nelihttp: WithHosts: name %q: must be a host name without port, path or wildcard", name))
		}
		hosts[i] = hostName(name)
	}
	return func(o *options) { o.hosts = append(o.hosts, hosts...) }
}

// WithMetrics adds a link to the server's metrics to the page: a path relative to the page ("metrics",
// "/metrics"), or an http or https URL. The Handler itself serves no metrics. WithMetrics panics if at is
// neither. Default: no link.
func WithMetrics(at string) Option {
	if u, err := url.Parse(at); err != nil || u.Scheme != "" && u.Scheme != "http" && u.Scheme != "https" || at == "" {
		panic(fmt.Sprintf("nelihttp: WithMetrics: %q: must be a path, or an http or https URL", at))
	}
	return func(o *options) { o.metrics = at }
}

// Handler returns a handler for the routes in the package comment. It works under [http.StripPrefix] and
// is safe for concurrent use. One Watch of n serves the page's time line and all streams of events; its
// goroutines end when n is closed or fails, so make one Handler for each Neli, and not one for each
// request. A stream ends with its request, or when n is closed or fails. In non-exclusive mode there is
// nothing to watch. Handler panics if n is nil.
func Handler(n *neli.Neli, opts ...Option) http.Handler {
	if n == nil {
		panic("nelihttp: Handler: n is nil")
	}
	h := newState(member{n}, opts...)
	if n.Config().Mode == neli.Exclusive {
		h.feed.keep()
	}
	return h.routes()
}

// handler is the state that the routes share.
type handler struct {
	src source
	options
	known *shared[*glance]
	past  *history
	feed  *feed
}

func newState(src source, opts ...Option) *handler {
	h := &handler{src: src, past: &history{}}
	h.known = &shared[*glance]{compute: h.look}
	h.feed = newFeed(src, h.known, h.past)
	for _, o := range opts {
		o(&h.options)
	}
	if src.Config().Mode != neli.Exclusive {
		h.allow = nil // nothing can be handed over
	}
	return h
}

// newHandler returns a handler whose time line follows changes only while there are streams.
func newHandler(src source, opts ...Option) http.Handler { return newState(src, opts...).routes() }

func (h *handler) routes() http.Handler {
	mux := http.NewServeMux()
	for route, serve := range map[string]http.HandlerFunc{
		"/leader":        h.leader,
		"/leader/{role}": h.leaderOf,
		"/holder/{role}": h.holder,
		"/standings":     h.standings,
		"/members":       h.members,
		"/stats":         h.stats,
		"/events":        h.events,
		"/healthz":       h.healthz,
		"/{$}":           h.page,
	} {
		mux.HandleFunc("GET "+route, serve) // and HEAD
		mux.HandleFunc("OPTIONS "+route, statusOnly(serve))
	}
	if h.allow != nil {
		mux.HandleFunc("POST /stepdown", h.controlled(h.stepDown))
		mux.HandleFunc("POST /transfer", h.controlled(h.transfer))
	}
	return guard(mux)
}

// guard sets the headers of all answers. It also answers paths for which a ServeMux would redirect,
// since the ServeMux does not know the prefix that was stripped.
func guard(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Cache-Control", "no-store")
		head.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		// With no-referrer, browsers send "Origin: null" with the forms of the page, and over plain HTTP
		// no Sec-Fetch-Site, so that controlled would refuse them.
		head.Set("Referrer-Policy", "same-origin")
		head.Set("X-Content-Type-Options", "nosniff")
		switch p := r.URL.Path; {
		case p == "":
			// The path is the prefix itself. Relative to it, its last segment and a slash lead to the page.
			prefix, query, _ := strings.Cut(r.RequestURI, "?")
			to := url.URL{RawPath: "./" + path.Base(prefix) + "/", RawQuery: query}
			to.Path, _ = url.PathUnescape(to.RawPath) // no error, since the server has parsed it
			head.Set("Location", to.String())
			w.WriteHeader(http.StatusTemporaryRedirect)
		case p != path.Clean(p):
			http.NotFound(w, r)
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

// statusOnly answers OPTIONS like GET without body: some load balancers check health this way.
func statusOnly(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", "GET, HEAD, OPTIONS")
		serve(silent{w}, r)
	}
}

// silent is a ResponseWriter that drops the body.
type silent struct{ http.ResponseWriter }

func (silent) Write(b []byte) (int, error)   { return len(b), nil }
func (s silent) Unwrap() http.ResponseWriter { return s.ResponseWriter }
