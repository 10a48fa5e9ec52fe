package neli

import (
	"log/slog"
	"sync/atomic"

	"github.com/goneli/neli/internal/kafkalog"
)

// health is what changes while a Neli runs, unlike its settings: the state of its clients and of its log-in.
type health struct {
	clients kafkalog.Health
	logins  atomic.Uint64    // counts failures to get a token
	trouble kafkalog.Limiter // limits the log lines about these failures
	logger  *slog.Logger
}

// loginFailed counts and logs a failure to get a token.
func (h *health) loginFailed(err error) {
	h.logins.Add(1)
	if h.trouble.Due() {
		h.logger.Warn("no token to log in with, retrying", "error", err)
	}
}

// report sets the fields of Stats that health knows.
func (h *health) report(s *Stats) {
	s.Reached, s.RefusedSettings = !h.clients.Contact.Lacking(), h.clients.Refusals.Meaning()
	s.ReadersReplaced, s.Throttled = h.clients.Replaced.Load(), h.clients.Throttling.Total()
	s.LoginFailures = h.logins.Load()
}
