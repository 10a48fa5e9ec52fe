package nelihttp

import (
	"fmt"
	"net/http"
	"time"

	"github.com/goneli/neli"
)

// silenceLimit is the longest time for which a healthy process may read nothing. Each member announces
// itself every five seconds, and reads its own announcements. Three times HeartbeatTimeout are allowed
// if that is longer, for non-exclusive mode, where beats are rarer.
const silenceLimit = 15 * time.Second

// health is the answer of /healthz.
type health struct {
	Healthy bool   `json:"healthy"`
	Reason  string `json:"reason,omitempty"`
	about
}

// healthz reports whether this process is able to take part: whether it is live and reads the log. A
// follower is healthy.
func (h *handler) healthz(w http.ResponseWriter, _ *http.Request) {
	a := health{about: h.about(), Reason: h.unwell()}
	a.Healthy = a.Reason == ""
	status := http.StatusOK
	if !a.Healthy {
		status = http.StatusServiceUnavailable
	}
	answer(w, status, a)
}

func (h *handler) unwell() string {
	if s := h.src.State(); s != neli.StateLive {
		return "this process is " + s.String()
	}
	limit := max(3*h.src.Config().HeartbeatTimeout, silenceLimit)
	if age := h.src.Stats().LastRecord; age >= limit {
		return fmt.Sprintf("nothing was read from the leader topic for %v; the limit is %v", age.Round(time.Millisecond), limit)
	}
	return ""
}
