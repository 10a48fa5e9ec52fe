package nelihttp

import (
	"fmt"
	"net/http"
	"time"

	"github.com/goneli/neli"
)

// silenceLimit is the longest time for which a healthy member may read nothing. Each member announces
// itself every five seconds, and reads its own announcements. Three times HeartbeatTimeout are allowed
// if that is longer. There is no limit for an observer: it announces nothing, so it reads nothing while
// the group has no member. Nor is there one in non-exclusive mode: a member reads only the partitions
// that the group has assigned to it, so a follower without any reads nothing.
const silenceLimit = 15 * time.Second

// health is the answer of /healthz.
type health struct {
	Healthy bool   `json:"healthy"`
	Reason  string `json:"reason,omitempty"`
	about
}

// healthz reports whether this process is able to take part: whether it is live and, if it is a member
// in exclusive mode, reads the log. A follower is healthy.
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
	cfg := h.src.Config()
	if cfg.Observer || cfg.Mode != neli.Exclusive {
		return ""
	}
	limit := max(3*cfg.HeartbeatTimeout, silenceLimit)
	if age := h.src.Stats().RecordAge; age >= limit {
		return fmt.Sprintf("nothing was read from the leader topic for %v; the limit is %v", age.Round(time.Millisecond), limit)
	}
	return ""
}
