package nelihttp

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/goneli/neli"
)

// Option changes what a Handler does.
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

// WithURL says where a holder can be reached, by what it has put into its Name. The page
// then links to it, and /holder/{role}?redirect=1 redirects there. An empty string means
// nowhere; what is no http or https URL with a host counts as that, too, for names
// are whatever the members chose. url is called on the goroutines of requests,
// concurrently. Default: none.
func WithURL(url func(neli.Holder) string) Option { return func(o *options) { o.url = url } }

// WithControl enables POST /stepdown and /transfer for requests for which allow returns
// true, and shows their buttons on the page. Whoever is allowed can move leadership, and
// keep it moving; nobody can make two leaders by it. allow is called on the goroutines of
// requests, concurrently, before anything of the body is read. Requests that a browser
// sends for a page of another origin are refused before it is asked, and so are requests
// to a host name that [WithHosts] does not have. Default, and with a nil allow: there are no
// such routes.
func WithControl(allow func(*http.Request) bool) Option { return func(o *options) { o.allow = allow } }

// WithHosts names the hosts at which people and programs reach this handler, as the Host
// header has them, without ports: "ops.example.com". What changes leadership is done only
// for requests to one of these, to an IP address, or to localhost. Otherwise a web page of
// a stranger, whose name leads here, could send what the browser's user is allowed to
// send. Behind a proxy that replaces the Host header name what it puts there, and let the
// proxy check the name. WithHosts panics if a name is empty, or has a port, a path or a
// wildcard. Default: none.
func WithHosts(names ...string) Option {
	hosts := make([]string, len(names))
	for i, name := range names {
		if name == "" || strings.ContainsAny(name, ":/*@ ") {
			panic(fmt.Sprintf("nelihttp: WithHosts: name %q: must be a host name without port, path or wildcard", name))
		}
		hosts[i] = hostName(name)
	}
	return func(o *options) { o.hosts = append(o.hosts, hosts...) }
}

// WithMetrics has the page link to where the server has its metrics: a path, as it is seen
// from the page ("metrics", "/metrics"), or an http or https URL. It serves none there.
// WithMetrics panics if it is neither. Default: no link.
func WithMetrics(at string) Option {
	if u, err := url.Parse(at); err != nil || u.Scheme != "" && u.Scheme != "http" && u.Scheme != "https" || at == "" {
		panic(fmt.Sprintf("nelihttp: WithMetrics: %q: must be a path, or an http or https URL", at))
	}
	return func(o *options) { o.metrics = at }
}

// Handler returns a handler of the routes in the package comment, for n. It works under
// [http.StripPrefix]. It starts no goroutine by itself; while there are streams of
// events, one Watch of n serves them all, and ends with the last. The page's time line
// knows the changes of that time only. A stream ends with its
// request, and when n is closed or has failed. Handler panics if n is nil.
func Handler(n *neli.Neli, opts ...Option) http.Handler {
	if n == nil {
		panic("nelihttp: Handler: n is nil")
	}
	return newHandler(n, opts...)
}

// handler is what the routes share.
type handler struct {
	src source
	options
	known *shared[*glance]
	past  *history
	feed  *feed
}

func newHandler(src source, opts ...Option) http.Handler {
	h := &handler{src: src, past: &history{}}
	h.known = &shared[*glance]{compute: h.look}
	h.feed = newFeed(src, h.known, h.past)
	for _, o := range opts {
		o(&h.options)
	}
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

// guard sets the headers of all answers, and answers paths that a ServeMux would redirect
// to: it does not know the prefix that was stripped.
func guard(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Cache-Control", "no-store")
		head.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("X-Content-Type-Options", "nosniff")
		switch p := r.URL.Path; {
		case p == "":
			// The prefix itself. Its last segment and a slash lead to the page from there.
			prefix, query, _ := strings.Cut(r.RequestURI, "?")
			head.Set("Location", (&url.URL{Path: "./" + path.Base(prefix) + "/", RawQuery: query}).String())
			w.WriteHeader(http.StatusTemporaryRedirect)
		case p != path.Clean(p):
			http.NotFound(w, r)
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

// statusOnly answers OPTIONS as GET, without the body: load balancers ask so.
func statusOnly(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", "GET, HEAD, OPTIONS")
		serve(silent{w}, r)
	}
}

// silent leaves out the body.
type silent struct{ http.ResponseWriter }

func (silent) Write(b []byte) (int, error)   { return len(b), nil }
func (s silent) Unwrap() http.ResponseWriter { return s.ResponseWriter }
