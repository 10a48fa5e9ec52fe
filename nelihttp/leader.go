package nelihttp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/goneli/neli"
)

// about says which process answers: in every answer except errors.
type about struct {
	Group string `json:"group"`
	Name  string `json:"name"`
	State string `json:"state"`
}

func (h *handler) about() about {
	cfg := h.src.Config()
	return about{Group: cfg.LeaderGroupID, Name: cfg.Name, State: h.src.State().String()}
}

// leading is the answer of /leader and /leader/{role}.
type leading struct {
	Leader bool `json:"leader"`
	about
	Role   *int         `json:"role,omitempty"`
	Token  *int64       `json:"token,omitempty"`  // of this process's term
	Holder *neli.Holder `json:"holder,omitempty"` // as read from the log: this process or another
	Roles  string       `json:"roles,omitempty"`  // led by this process; at most maxRanges ranges
	Count  int          `json:"count,omitempty"`
}

func (h *handler) leader(w http.ResponseWriter, _ *http.Request) {
	a := leading{about: h.about()}
	if roles := h.led(); len(roles) > 0 {
		a.Leader, a.Roles, a.Count = true, ranges(roles), len(roles)
	}
	answer(w, leadStatus(a.Leader), a)
}

// led returns the roles that this process leads. It checks leadership last, since listing many roles takes a
// while, and returns none if the process no longer leads by then.
func (h *handler) led() []int {
	roles := slices.Collect(h.src.Led())
	if !h.src.IsLeader() {
		return nil
	}
	return roles
}

func (h *handler) leaderOf(w http.ResponseWriter, r *http.Request) {
	role, ok := roleOf(w, r)
	if !ok {
		return
	}
	a := leading{about: h.about(), Role: &role}
	if holder, ok := h.src.Holder(role); ok {
		a.Holder = &holder
	}
	// The check comes last, so that nothing slow comes between it and the answer.
	if token, ok := h.src.Token(role); ok {
		a.Leader, a.Token = true, &token
	} else {
		a.Leader = h.src.IsLeaderOf(role) // non-exclusive mode has no tokens
	}
	answer(w, leadStatus(a.Leader), a)
}

func leadStatus(leads bool) int {
	if leads {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}

// held is the answer of /holder/{role}.
type held struct {
	about
	Role   int         `json:"role"`
	Holder neli.Holder `json:"holder"`
}

func (h *handler) holder(w http.ResponseWriter, r *http.Request) {
	role, ok := roleOf(w, r)
	if !ok || !h.tellsOfOthers(w) {
		return
	}
	holder, ok := h.src.Holder(role)
	if !ok {
		fail(w, http.StatusNotFound, fmt.Sprintf("role %d: no holder is known", role))
		return
	}
	if r.URL.Query().Get("redirect") == "1" {
		if to := h.link(holder); to != "" {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusTemporaryRedirect)
			return
		}
		fail(w, http.StatusNotFound, fmt.Sprintf("role %d: the URL of its holder is not known", role))
		return
	}
	answer(w, http.StatusOK, held{about: h.about(), Role: role, Holder: holder})
}

// link returns the URL of a holder; empty if it is not known.
func (h *handler) link(of neli.Holder) string {
	if h.url == nil {
		return ""
	}
	u, err := url.Parse(h.url(of))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return u.String()
}

// roleOf reads the role in the path. If it is invalid, it answers with an error and returns false.
func roleOf(w http.ResponseWriter, r *http.Request) (int, bool) {
	text := r.PathValue("role")
	role, err := strconv.ParseUint(text, 10, 31)
	if err != nil || strconv.FormatUint(role, 10) != text {
		fail(w, http.StatusBadRequest, fmt.Sprintf("role %.40q: must be a number from 0, without sign or leading zeros", text))
		return 0, false
	}
	return int(role), true
}

// tellsOfOthers reports whether this process can say who else leads. If not, it answers with an error.
func (h *handler) tellsOfOthers(w http.ResponseWriter) bool {
	switch {
	case h.src.Config().Mode != neli.Exclusive:
		fail(w, http.StatusNotFound, "in non-exclusive mode the log does not show who leads")
	case h.src.State() != neli.StateLive:
		fail(w, http.StatusServiceUnavailable, "this process is "+h.src.State().String())
	default:
		return true
	}
	return false
}

type failure struct {
	Error string `json:"error"`
}

func fail(w http.ResponseWriter, status int, text string) { answer(w, status, failure{text}) }

// answer writes v as JSON.
func answer(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	write(w, status, body, err)
}

// write writes a line of JSON, or why there is none.
func write(w http.ResponseWriter, status int, body []byte, err error) {
	if err != nil { // such as a Status that has no text
		status = http.StatusInternalServerError
		body, _ = json.Marshal(failure{err.Error()})
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(slices.Concat(body, []byte{'\n'})) // fails if the client is gone
}
