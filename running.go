package neli

import (
	"log/slog"
	"sync/atomic"

	"github.com/goneli/neli/internal/kafkalog"
)

// health is what a Neli has met so far: how its clients fare, and how its log-in does. Settings do
// not change; this does.
type health struct {
	clients kafkalog.Health
	logins  atomic.Uint64    // that failed
	trouble kafkalog.Limiter // of lines on that
	logger  *slog.Logger
}

// loginFailed counts and logs a failure to get a token.
func (h *health) loginFailed(err error) {
	h.logins.Add(1)
	if h.trouble.Due() {
		h.logger.Warn("no token to log in with, retrying", "error", err)
	}
}

// report sets what Stats has of it.
func (h *health) report(s *Stats) {
	s.Reached, s.RefusedSettings = !h.clients.Contact.Lacking(), h.clients.Refusals.Meaning()
	s.ReadersReplaced, s.Throttled = h.clients.Replaced.Load(), h.clients.Throttling.Total()
	s.LoginFailures = h.logins.Load()
}
