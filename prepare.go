package neli

import (
	"errors"
	"fmt"
	"time"

	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/elector/prepare"
	"github.com/goneli/neli/internal/lease"
)

// Causes with which the context of Config.Prepare ends (see context.Cause).
var (
	// ErrLed: this process leads the role now. What was prepared is for its leader.
	ErrLed = errors.New("neli: this process leads the role")
	// ErrNotLed: this process will not lead the role for now. Give up what was prepared. The text says why.
	ErrNotLed = errors.New("neli: this process does not get the role")
)

const (
	defaultPrepares       = 16
	defaultPrepareTimeout = 30 * time.Second
)

// ends are the texts of ErrNotLed.
var ends = map[prepare.Why]string{
	prepare.Failed:      "Prepare returned an error",
	prepare.Late:        "Prepare has taken PrepareTimeout",
	prepare.CalledOff:   "its leader keeps it, or gives it to another member",
	prepare.Elsewhere:   "another member leads it",
	prepare.Unconfirmed: "its leader has not offered it for 2T",
	prepare.Unwilling:   "this process closes, has stepped down or is unhealthy",
	prepare.Unwanted:    "it is not below Roles, or its log has begun anew",
}

func prepareEnds(why prepare.Why) error {
	if why == prepare.Led {
		return ErrLed
	}
	return fmt.Errorf("%w: %s", ErrNotLed, ends[why])
}

// preparing sets what the elector needs of Config.Prepare.
func (s *settings) preparing(set *elector.Settings) {
	if s.Prepare == nil || s.Observer {
		return
	}
	set.Prepares = &lease.Prepares{Most: s.MaxPrepares, For: s.PrepareTimeout}
	set.Prepare, set.PrepareEnds = s.Prepare, prepareEnds
}

// checkPrepare checks the fields about preparation, and sets their defaults.
func (s *settings) checkPrepare(f *faults) {
	f.check(s.Prepare == nil || s.Mode != NonExclusive && s.Nomination != NominationAssigned, "Prepare", "",
		"needs Mode Exclusive and NominationOpen: else no leader knows its successor in time")
	s.MaxPrepares, s.PrepareTimeout = or(s.MaxPrepares, defaultPrepares), or(s.PrepareTimeout, defaultPrepareTimeout)
	f.check(s.MaxPrepares >= 1 && s.MaxPrepares <= lease.MaxPrepares, "MaxPrepares", s.MaxPrepares, fmt.Sprintf("must be between 1 and %d", lease.MaxPrepares))
	f.check(s.PrepareTimeout >= minTimeout && s.PrepareTimeout <= lease.MaxPrepare, "PrepareTimeout", s.PrepareTimeout,
		fmt.Sprintf("must be between %v and %v", minTimeout, lease.MaxPrepare))
}
