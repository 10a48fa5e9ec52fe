package vacancy

import (
	"time"

	"github.com/goneli/neli/internal/clock"
)

// Pacing delays Claims in one log. After an outage every process would otherwise claim everything,
// and the log would never recover from that.
type Pacing struct {
	tries     int        // k: consecutive Claims that did not come back in time
	notBefore clock.Mono // no Claim before then
	thinkAt   clock.Mono // roles that others should have claimed are not reconsidered before then
}

// maxTries limits to 8T · U(½, 3/2) the pause between Claims that do not come back.
const maxTries = 6

// Returned notes that a Claim has come back, in time or not. Others sent theirs at about the same
// time, so their Claims arrive within about as long again.
func (p *Pacing) Returned(inTime bool, took, t time.Duration, random func(time.Duration) time.Duration, now clock.Instant) {
	if inTime {
		p.tries, p.notBefore = 0, 0
		p.thinkAt = now.Mono.Add(took)
		return
	}
	p.Late(t, random, now)
}

// Late notes that a Claim did not come back in time.
func (p *Pacing) Late(t time.Duration, random func(time.Duration) time.Duration, now clock.Instant) {
	p.tries = min(p.tries+1, maxTries)
	p.notBefore = now.Mono.Add(Backoff(p.tries, t, random))
}

// Hold delays the next Claim.
func (p *Pacing) Hold(until clock.Mono) { p.notBefore = max(p.notBefore, until) }

// ClaimsAt is the earliest time of the next Claim.
func (p *Pacing) ClaimsAt() clock.Mono { return p.notBefore }

// Think sets the earliest time at which roles that others should have claimed are reconsidered, and
// ThinksAt returns it.
func (p *Pacing) Think(at clock.Mono) { p.thinkAt = at }

func (p *Pacing) ThinksAt() clock.Mono { return p.thinkAt }

// Backoff is T/8 · 2^k · U(½, 3/2). With less, repeated Claims would keep the log as busy as the lost ones did.
func Backoff(k int, t time.Duration, random func(time.Duration) time.Duration) time.Duration {
	d := clock.Pause(t) << k
	return d/2 + random(d)
}
