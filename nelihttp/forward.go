package nelihttp

import (
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/advertised"
)

// Term is the term of this process in which it serves a request.
type Term struct {
	Role  int
	Token int64 // the fencing token, as Neli.Token returns it
}

// ForwardOption configures Forward.
type ForwardOption func(*forwarder)

// WithTargets sets the function that decides to which addresses requests may be sent. Anybody who can write to the
// leader topic can make a holder's Advertise point to any host, also to one that only this process can reach. So let
// allow return true only for hosts on which members run:
//
//	nelihttp.WithTargets(func(u *url.URL) bool { return strings.HasSuffix(u.Hostname(), ".orders.svc") })
//
// allow gets the scheme, host and path of the address; host:port becomes http://host:port. It is called once or twice
// for each request to forward, on the goroutine of the request, concurrently.
func WithTargets(allow func(*url.URL) bool) ForwardOption {
	return func(f *forwarder) { f.allow = allow }
}

// WithTransport sets the transport of forwarded requests, such as an http.Transport with the certificates and timeouts
// that members need among themselves. Default: one for this Forward alone, with the system's root certificates
// and no proxy. Connecting and TLS may then take HeartbeatTimeout each, and an answer as long as the client waits.
func WithTransport(t http.RoundTripper) ForwardOption {
	return func(f *forwarder) { f.transport = t }
}

// Forward returns a handler that serves a request with next if this process leads the request's role, and otherwise
// sends the request to the process that leads it. So clients may ask any process:
//
//	byKey := func(r *http.Request) (int, error) { return neli.Slot(r.PathValue("key"), shards), nil }
//	mux.Handle("/keys/{key}", nelihttp.Forward(n, byKey, serve, nelihttp.WithTargets(ours)))
//
// Each member must serve these routes at its Config.Advertise: host:port, or an http or https URL, whose path is put
// before the path of the request. An observer forwards everything.
//
// # Serving
//
// This process led the role, with the token of the [Term], at the instant before next was called. It may lose the role
// while next runs, so pass the token to every resource that the request changes. With a [Gate] the process gives the role up
// only after its requests have been answered.
//
// role returns the role of a request. It must return the same in all processes, and must not read the body. If it
// returns an error, the client gets the text of the error with status 400, or with the status that the error's method
// StatusCode() int returns, if that is from 400 to 599. A role that is not from 0 to R−1 is also answered with 400.
//
// # Forwarding
//
// The leader gets the method, path, query, Host, headers and body that the client has sent, even under
// [http.StripPrefix]. Upgrades (WebSocket), streams, trailers of answers and cancellation work. Forward adds the client's
// address to X-Forwarded-For, sets X-Forwarded-Host and X-Forwarded-Proto unless the client sent them, and counts in the header
// Neli-Hops how often the group has forwarded the request. That is twice at most: a process that has just
// handed a role over often knows the successor first. A malformed Neli-Hops counts as twice.
//
// A process that can neither serve nor forward a forwarded request answers 421, with the group in the header
// Neli-Not-Leader. The first process then looks again, once: it serves the request, or sends it to another holder. It
// does so only if Content-Length says that the body has at most 64 KiB, because it keeps such bodies in memory.
//
// # Errors
//
//   - 503 with Retry-After: nothing was done. No holder is known; or its address is not known, not allowed, this
//     process's own, or neither host:port nor http nor https; or connecting failed; or the holder does not lead any more.
//     Retry-After is the rest of the holder's lease as known here, at least a second.
//   - 502: TLS failed, or the connection broke before an answer. The holder may have done what the client asked for.
//
// The body of an error is JSON with the reason as "error".
//
// Forward is safe for concurrent use, and holds no lock while a request is sent. Serving what this
// process leads allocates nothing. role, next and the function of WithTargets run on the goroutine of the request.
// Forward panics if n, role, next or WithTargets is missing, and in non-exclusive mode, where no process knows who leads.
func Forward(n *neli.Neli, role func(*http.Request) (int, error), next func(http.ResponseWriter, *http.Request, Term), opts ...ForwardOption) http.Handler {
	switch {
	case n == nil:
		panic("nelihttp: Forward: n is nil")
	case n.Config().Mode != neli.Exclusive:
		panic("nelihttp: Forward: needs Mode Exclusive: in the other one no process knows who leads")
	case role == nil || next == nil:
		panic("nelihttp: Forward: role or next is nil")
	}
	return newForwarder(member{n}, role, next, opts...)
}

// leaders is what a forwarder needs of a member.
type leaders interface {
	Config() neli.Config
	Roles() int
	Token(role int) (token int64, ok bool)
	Holder(role int) (neli.Holder, bool)
}

type forwarder struct {
	src       leaders
	role      func(*http.Request) (int, error)
	next      func(http.ResponseWriter, *http.Request, Term)
	allow     func(*url.URL) bool
	transport http.RoundTripper
	gate      *Gate         // nil: requests are served whenever this process leads
	group     string        // as headers have it
	self      *url.URL      // this process's address; nil: none
	timeout   time.Duration // T
	log       *log.Logger   // of the proxy
}

func newForwarder(src leaders, role func(*http.Request) (int, error), next func(http.ResponseWriter, *http.Request, Term), opts ...ForwardOption) *forwarder {
	cfg := src.Config()
	handler := slog.DiscardHandler
	if cfg.Logger != nil {
		handler = cfg.Logger.Handler()
	}
	f := &forwarder{src: src, role: role, next: next, group: url.QueryEscape(cfg.LeaderGroupID), self: advertised.URL(cfg.Advertise),
		timeout: cfg.HeartbeatTimeout, log: slog.NewLogLogger(handler, slog.LevelDebug)}
	for _, o := range opts {
		o(f)
	}
	if f.allow == nil {
		panic("nelihttp: Forward: WithTargets is missing: it says to which addresses requests may be sent")
	}
	if f.transport == nil {
		f.transport = &http.Transport{DialContext: (&net.Dialer{Timeout: f.timeout}).DialContext, TLSHandshakeTimeout: f.timeout,
			ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 100, IdleConnTimeout: 90 * time.Second, ExpectContinueTimeout: time.Second,
			DisableCompression: true}
	}
	return f
}

func (f *forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	role, err := f.role(r)
	if err != nil {
		fail(w, statusIn(err), err.Error())
		return
	}
	if token, ok := f.src.Token(role); ok {
		f.serve(w, r, Term{role, token})
		return
	}
	f.forward(w, r, role)
}

// serve serves a request in a term, unless the gate does not let it in.
func (f *forwarder) serve(w http.ResponseWriter, r *http.Request, in Term) {
	if f.gate != nil {
		t := f.gate.enter(in)
		if t == nil {
			hops, _ := hopsOf(r.Header, f.group)
			f.refuse(w, hops, &refusal{http.StatusServiceUnavailable, 0, fmt.Sprintf("role %d: this process begins or ends its term", in.Role)})
			return
		}
		defer t.work.Done()
	}
	f.next(w, r, in)
}

// statusIn returns the status that an error of the role function asks for.
func statusIn(err error) int {
	var coded interface{ StatusCode() int }
	if errors.As(err, &coded) {
		if s := coded.StatusCode(); s >= 400 && s <= 599 {
			return s
		}
	}
	return http.StatusBadRequest
}

// forward sends a request to the holder of its role. If the holder does not lead, only the process to which
// the client has sent the request looks again: otherwise each process on the way would double the requests.
func (f *forwarder) forward(w http.ResponseWriter, r *http.Request, role int) {
	hops, others := hopsOf(r.Header, f.group)
	to, no := f.find(role)
	if hops >= maxHops {
		no = &refusal{http.StatusServiceUnavailable, 0, fmt.Sprintf("role %d: the request was forwarded too often", role)}
	}
	if no != nil {
		f.refuse(w, hops, no)
		return
	}
	out, err := newPassage(r, hopsHeaderOf(others, f.group, hops+1))
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	if no = f.send(w, r, out, to); no == notLeading && hops == 0 && out.again {
		if token, ok := f.src.Token(role); ok {
			out.rewind(r)
			f.serve(w, r, Term{role, token})
			return
		}
		before := to
		if to, no = f.find(role); no == nil && to.holder.Member == before.holder.Member && to.holder.Token == before.holder.Token {
			no = notLeading
		}
		if no == nil {
			no = f.send(w, r, out, to)
		}
	}
	if no != nil {
		f.refuse(w, hops, no)
	}
}

// target is where the requests for a role are sent.
type target struct {
	holder neli.Holder
	at     *url.URL
}

// find returns the target of a role, or why there is none.
func (f *forwarder) find(role int) (target, *refusal) {
	if r := f.src.Roles(); role < 0 || role >= r {
		return target{}, &refusal{http.StatusBadRequest, 0, fmt.Sprintf("role %d: must be from 0 to %d", role, r-1)}
	}
	h, ok := f.src.Holder(role)
	if !ok {
		return target{}, &refusal{http.StatusServiceUnavailable, 0, fmt.Sprintf("role %d: no holder is known", role)}
	}
	at, why, wait := advertised.URL(h.Advertise), "", f.timeout-h.Age
	switch {
	case h.Advertise == "":
		why = "the address of its holder is not known"
	case at == nil:
		why = "the address of its holder is neither host:port nor an http or https URL, or has an IPv6 zone"
	case f.self != nil && strings.EqualFold(at.Host, f.self.Host) && at.Path == f.self.Path:
		why, wait = "this process is known as its holder, and does not lead it any more", 0
	case !f.allow(at):
		why = "the address of its holder is not allowed"
	default:
		return target{h, at}, nil
	}
	return target{}, &refusal{http.StatusServiceUnavailable, wait, fmt.Sprintf("role %d: %s", role, why)}
}

// refusal says why a request is neither served nor sent on.
type refusal struct {
	status int           // for a client
	wait   time.Duration // until it may try again, a second at least
	why    string
}

// notLeading is the refusal of a holder that has answered that it does not lead.
var notLeading = &refusal{http.StatusServiceUnavailable, 0, "the process that led the role does not lead it any more"}

// notLeader is the header of a 421, with the name of the group. A 421 without it is the application's.
const notLeader = "Neli-Not-Leader"

// refuse tells a client when to try again, and a forwarding process to look again, except with 502.
func (f *forwarder) refuse(w http.ResponseWriter, hops int, no *refusal) {
	status := no.status
	switch {
	case hops > 0 && status != http.StatusBadGateway:
		status = http.StatusMisdirectedRequest
		w.Header().Set(notLeader, f.group)
	case status == http.StatusServiceUnavailable:
		seconds := (max(no.wait, time.Second) + time.Second - 1) / time.Second
		w.Header().Set("Retry-After", strconv.Itoa(int(seconds)))
	}
	w.Header().Set("Cache-Control", "no-store")
	fail(w, status, no.why)
}
