package nelihttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goneli/neli"
)

// maxBody is the largest body of a request, in bytes.
const maxBody = 4096

// controlled lets only permitted requests change leadership. It refuses those that a page of another
// origin sends through the browser of a permitted user.
func (h *handler) controlled(do func(*http.Request) error) http.HandlerFunc {
	origin := http.NewCrossOriginProtection()
	return func(w http.ResponseWriter, r *http.Request) {
		if err := origin.Check(r); err != nil {
			fail(w, http.StatusForbidden, err.Error())
			return
		}
		if name := hostName(r.Host); !h.serves(name) {
			fail(w, http.StatusForbidden, fmt.Sprintf("host %.255q: must be an IP address, localhost, or a name given to nelihttp.WithHosts", name))
			return
		}
		if !h.allow(r) {
			fail(w, http.StatusForbidden, "not allowed")
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		// A handover takes as long as the application takes to finish. An error means that the server has
		// no deadlines to lift.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		err := do(r)
		h.known.forget() // so that the next page shows the result
		switch {
		case err != nil:
			fail(w, statusOf(err), err.Error())
		case strings.Contains(r.Header.Get("Accept"), "text/html"): // a form of the page
			w.Header().Set("Location", "./")
			w.WriteHeader(http.StatusSeeOther)
		default:
			answer(w, http.StatusOK, h.about())
		}
	}
}

// hostName returns a Host header without its port, in the form in which names are compared: in lower
// case, without brackets and the final dot.
func hostName(header string) string {
	name := header
	if host, _, err := net.SplitHostPort(header); err == nil {
		name = host
	}
	if inner, ok := strings.CutPrefix(name, "["); ok && strings.HasSuffix(inner, "]") {
		name = strings.TrimSuffix(inner, "]")
	}
	return strings.ToLower(strings.TrimSuffix(name, "."))
}

// serves reports whether a page that a browser has loaded from this host name is ours. Once an attacker's
// page is loaded, its name can be made to resolve to this server (DNS rebinding), and the browser then
// treats it as a page of the same origin. Neither an address nor localhost can be abused so.
func (o *options) serves(name string) bool {
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return name == "localhost" || slices.Contains(o.hosts, name)
}

func (h *handler) stepDown(r *http.Request) error { return h.src.StepDown(r.Context()) }

func (h *handler) transfer(r *http.Request) error {
	role, to, err := transferOf(r)
	if err != nil {
		return badRequest{err}
	}
	if h.src.Config().Nomination != neli.NominationOpen {
		return never{errors.New("with Nomination Assigned the consumer group decides who leads: nothing can be transferred")}
	}
	return h.src.Transfer(r.Context(), role, to)
}

// transferOf reads the role and the member of a transfer, from JSON or a form.
func transferOf(r *http.Request) (role int, to string, err error) {
	var asked struct {
		Role *int   `json:"role"`
		To   string `json:"to"`
	}
	switch kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind {
	case "application/json":
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			return 0, "", err
		}
	case "application/x-www-form-urlencoded":
		if err := r.ParseForm(); err != nil {
			return 0, "", err
		}
		role, err := strconv.Atoi(r.PostForm.Get("role"))
		if err != nil {
			return 0, "", fmt.Errorf("role %.40q: must be a number", r.PostForm.Get("role"))
		}
		asked.Role, asked.To = &role, r.PostForm.Get("to")
	default:
		return 0, "", fmt.Errorf("content type %.40q: must be application/json or application/x-www-form-urlencoded", kind)
	}
	switch {
	case asked.Role == nil:
		return 0, "", errors.New("role is missing")
	case asked.To == "":
		return 0, "", errors.New("to is missing: the name or id of a member")
	}
	return *asked.Role, asked.To, nil
}

// badRequest is an error in the request itself.
type badRequest struct{ error }

// never is the error for what this process's configuration rules out: trying again is of no use.
type never struct{ error }

func statusOf(err error) int {
	var bad badRequest
	var ruledOut never
	switch {
	case errors.As(err, &bad):
		return http.StatusBadRequest
	case errors.As(err, &ruledOut):
		return http.StatusConflict
	case errors.Is(err, neli.ErrNotLeader), errors.Is(err, neli.ErrLeadsAlready), errors.Is(err, neli.ErrNotDone), errors.Is(err, neli.ErrObserver):
		return http.StatusConflict
	case errors.Is(err, neli.ErrNoMember):
		return http.StatusNotFound
	case errors.Is(err, neli.ErrNoAnswer):
		return http.StatusGatewayTimeout
	}
	return http.StatusServiceUnavailable
}
