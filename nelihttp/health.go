package nelihttp

import (
	"fmt"
	"net/http"
	"time"

	"github.com/goneli/neli"
)

// silenceLimit is for how long a healthy process of a group reads nothing, at most: each
// member announces itself every five seconds, and reads its own announcements, too. With a
// long HeartbeatTimeout three of these are allowed, for non-exclusive mode, whose beats are rarer.
const silenceLimit = 15 * time.Second

// health is the answer of /healthz.
type health struct {
	Healthy bool   `json:"healthy"`
	Reason  string `json:"reason,omitempty"`
	about
}

// healthz says whether this process is able to take part: it is live and reads the log.
// A follower is healthy.
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
	limit := max(3*h.src.HeartbeatTimeout(), silenceLimit)
	if age := h.src.Stats().LastRecord; age >= limit {
		return fmt.Sprintf("nothing has been read of the leader topic for %v, and %v is the limit", age.Round(time.Millisecond), limit)
	}
	return ""
}
