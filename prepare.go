package neli

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/elector/offer"
	"github.com/goneli/neli/internal/elector/prepare"
	"github.com/goneli/neli/internal/lease"
)

// Causes with which the context of Config.Prepare ends (see context.Cause).
var (
	// ErrLed: this process leads the role now, even if Prepare has not returned yet. Keep what is prepared.
	ErrLed = errors.New("neli: this process leads the role")
	// ErrNotLed: this process will not lead the role for now. Give up what was prepared. The error's text says why.
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
	prepare.Relieved:    "another member stands by for it",
	prepare.Unwanted:    "it is not below Roles, or its log has begun anew",
}

func prepareEnds(why prepare.Why) error {
	if why == prepare.Led {
		return ErrLed
	}
	return fmt.Errorf("%w: %s", ErrNotLed, ends[why])
}

// Preparation counts the roles of others that this process has prepared, and says how it gave up its own.
type Preparation struct {
	// Prepared counts the calls of Config.Prepare that returned nil in time, and Failed those that did not.
	// Led counts the roles that this process led when they were prepared, and LetGo those whose
	// contexts ended otherwise.
	Prepared uint64 `json:"prepared"`
	Failed   uint64 `json:"failed"`
	Led      uint64 `json:"led"`
	LetGo    uint64 `json:"let_go"`
	// Running is how many calls have not returned; the oldest has run for Longest. Stuck is how many of them go on
	// although their contexts have ended. If Stuck stays at MaxPrepares, nothing is prepared any more.
	Running int           `json:"running"`
	Stuck   int           `json:"stuck"`
	Longest time.Duration `json:"longest"`
	// Standbys is the number of roles for which this process stands by (Config.Standby), and StandbysReady how many
	// of them it has prepared.
	Standbys      int `json:"standbys"`
	StandbysReady int `json:"standbys_ready"`

	// GivenWarm counts the roles that this process gave up after their successors had prepared them. The next
	// four count those given up unprepared: GivenLate because half of DrainTimeout was over, GivenFailed because
	// no member prepared them, GivenYoung in a new group, and GivenUnable to members without Prepare, if this
	// process has it. What is given up because Lead or Background has ended counts in none of them. CalledOff
	// counts the roles that it kept, mostly because a member was not ready in time.
	GivenWarm   uint64 `json:"given_warm"`
	GivenLate   uint64 `json:"given_late"`
	GivenFailed uint64 `json:"given_failed"`
	GivenYoung  uint64 `json:"given_young"`
	GivenUnable uint64 `json:"given_unable"`
	CalledOff   uint64 `json:"called_off"`
}

// MarshalJSON writes Longest in seconds.
func (p Preparation) MarshalJSON() ([]byte, error) {
	type plain Preparation
	return json.Marshal(struct {
		plain
		Longest seconds `json:"longest"`
	}{plain(p), seconds(p.Longest)})
}

func preparationOf(p prepare.Counts, g offer.Given) Preparation {
	return Preparation{Prepared: p.Ready, Failed: p.Failed, Led: p.Led, LetGo: p.Ended, Running: p.Running, Stuck: p.Stuck, Longest: p.Longest, Standbys: p.Standbys, StandbysReady: p.StandbysReady,
		GivenWarm: g.Warm, GivenLate: g.Late, GivenFailed: g.Failed, GivenYoung: g.Young, GivenUnable: g.Unable, CalledOff: g.CalledOff}
}

// preparing sets what the elector needs of Config.Prepare.
func (s *settings) preparing(set *elector.Settings) {
	if s.Prepare == nil || s.Observer {
		return
	}
	set.Prepares = &lease.Prepares{Most: s.MaxPrepares, For: s.PrepareTimeout, Standby: s.Standby}
	set.Prepare, set.PrepareEnds = s.Prepare, prepareEnds
}

// checkPrepare checks the fields about preparation, and sets their defaults.
func (s *settings) checkPrepare(f *faults) {
	f.check(s.Prepare == nil || s.Mode != NonExclusive && s.Nomination != NominationAssigned, "Prepare", "",
		"needs Mode Exclusive and NominationOpen: else no leader knows its successor in time")
	f.check(s.Prepare != nil || !s.Standby, "Standby", "", "needs Prepare")
	s.MaxPrepares, s.PrepareTimeout = or(s.MaxPrepares, defaultPrepares), or(s.PrepareTimeout, defaultPrepareTimeout)
	f.check(s.MaxPrepares >= 1 && s.MaxPrepares <= lease.MaxPrepares, "MaxPrepares", s.MaxPrepares, fmt.Sprintf("must be between 1 and %d", lease.MaxPrepares))
	f.check(s.PrepareTimeout >= minTimeout && s.PrepareTimeout <= lease.MaxPrepare, "PrepareTimeout", s.PrepareTimeout,
		fmt.Sprintf("must be between %v and %v", minTimeout, lease.MaxPrepare))
}
