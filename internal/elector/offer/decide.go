package offer

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/handover"
)

// Standing is how far a member is with a role that is offered to it.
type Standing struct {
	Answered bool // the member has answered an offer (with the role, once that is named)
	Ready    bool
	Failed   bool // it says that it has failed
	Late     bool // it has been at work for longer than it may
	Busy     bool // the role has waited for so long that the member must be at work on others
	Silent   bool // it has not answered an offer in time
}

// Standing returns how far a member is with a role for which it was chosen at since.
func (os *Offers) Standing(process string, at Place, since, now clock.Instant) (s Standing) {
	l := os.list(process, at.Shard)
	if l == nil {
		return s
	}
	s.Silent = l.silent(os.wait, now)
	longest := os.to[process].is.For + os.wait
	h := l.named[at.Local]
	if h == nil || h.ran == 0 {
		s.Busy = now.Mono.Sub(since.Mono) >= longest
	}
	if h == nil {
		return s
	}
	s.Answered, s.Ready = h.answered, h.stage == ready
	s.Failed = h.stage == failed
	s.Late = h.stage < ready && h.ran != 0 && now.Mono.Sub(h.ran) >= longest
	return s
}

// Changes is when a Standing may change without a record.
func (os *Offers) Changes(process string, at Place, since clock.Instant) clock.Mono {
	l := os.list(process, at.Shard)
	if l == nil {
		return clock.Never
	}
	longest := os.to[process].is.For + os.wait
	next := since.Mono.Add(longest)
	if h := l.named[at.Local]; h != nil && h.ran != 0 {
		next = h.ran.Add(longest)
	}
	if l.asked != 0 {
		next = min(next, l.asked.Add(os.wait))
	}
	return next
}

// Handing is what a holder knows of a hand-over to a member that prepares roles.
type Handing struct {
	Standing
	Keeps   bool // this process could keep the role
	Takes   bool // the member is there, and would take it
	Another bool // another member would take it, and has not failed it
	Patient bool // there is time left for preparation
}

// Patient reports whether there is time left for preparation: it may take half of a drain timeout that has
// begun. The other half is for the application to finish.
func Patient(begun clock.Instant, drain time.Duration, now clock.Instant) bool {
	return now.Age(begun) < drain/2
}

// Conditions returns what the next step of the hand-over depends on. If the member does not get ready, a
// role that this process could keep is called off. A role that it cannot keep goes to another member. It is
// given up unprepared if there is none, or when the time for preparation is over.
func (h Handing) Conditions() handover.Conditions {
	c := handover.Conditions{Ready: h.Ready && h.Takes && !h.Silent, Refused: !h.Takes || h.Failed, Over: h.Silent}
	if h.Keeps {
		c.Over = c.Over || h.Busy || h.Late
		return c
	}
	c.Another = h.Another && h.Patient
	c.Over = c.Over || !h.Patient
	return c
}

// Cools reports, for a failed hand-over, whether the member is to get nothing for a while, or just not this
// role. A member that was at work on other roles has not failed.
func (h Handing) Cools() (member, role bool) {
	return !h.Takes || h.Silent, h.Takes && !h.Silent && (h.Failed || h.Late)
}
