package crowd

import (
	"errors"
	"fmt"
	"time"

	"github.com/goneli/neli"
)

// Watched is what was observed of members: how long their steps took, and how often their checks
// were wrong.
type Watched struct {
	Steps  Steps
	Checks Checks
}

func (w *Watched) add(more Watched) {
	w.Steps.add(more.Steps)
	w.Checks.add(more.Checks)
}

// watchedOf adds up what some members have shown since they began.
func watchedOf(members []*neli.Neli, checkers []*checker, t time.Duration) Watched {
	return Watched{stepsOf(members, t), checksOf(checkers)}
}

// Check returns an error if a step of a member took longer than a fiftieth of T, since the member's
// messages and beats are then late by that much. It also returns one if a member's check was false
// and then true again within a term, since the member's task would have stopped without a reason.
func (o *Outcome) Check() error {
	var faults []error
	if o.Checks != nil && o.Checks.False > 0 {
		faults = append(faults, fmt.Errorf("%v: %v", o.Size, o.Checks))
	}
	if o.Steps != nil && o.Steps.Over > 0 {
		faults = append(faults, fmt.Errorf("%v: %d of %d steps were longer than T/50", o.Size, o.Steps.Over, o.Steps.Count))
	}
	return errors.Join(faults...)
}
