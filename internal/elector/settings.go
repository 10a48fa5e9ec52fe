package elector

import (
	"context"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/term"
)

// Settings are what a Node is told once: as many as the Config that they come from has for
// it. Times and randomness are given to it.
type Settings struct {
	Process    string        // random: this process among all
	Name       string        // for people
	Group      string        // records of others are skipped
	T          time.Duration // the lease
	Rho        float64       // ρ
	Every      time.Duration // between beats
	Drain      time.Duration // how long the application may take to finish
	AnswerWait time.Duration // how long a holder waits for the one that is to lead next
	RejoinWait time.Duration // how long a nominator may take to tell a woken process of its lost session
	Nominated  bool          // a Nominator says who may claim; else any process may
	Observer   bool          // claims and says nothing
	Majority   bool          // the logs are small ones, and a role is led by whoever holds it on most of them
	TokenBase  int64         // added to the tokens that the application is told
	Priority   int
	Preference func(Member, int) int
	Rebalance  bool
	Requests   bool                              // the application decides on requests; else all are refused
	Random     func(time.Duration) time.Duration // in [0, d)
	Alive      func(clock.Instant) bool          // the application does something; must not block
	Opened     func(context.Context, string)     // called once, beside all else, with the id of the logs; returns when ctx is done. nil: nobody asks
}

// Desired is what the application wants from now on.
type Desired struct {
	Roles   int         // R: roles at or beyond it are not wanted
	Contend bool        // somebody drives this process: it wants to lead
	Closing bool        // leave; finish in order
	Why     term.Reason // of Contend == false

	Unhealthy bool       // the application says that it should not lead
	Away      clock.Mono // until then it has stepped down
}

// Willing reports whether this process would lead anything at time now.
func (d Desired) Willing(now clock.Instant) bool {
	return d.Contend && !d.Closing && !d.Unhealthy && now.Mono >= d.Away
}

// Reason tells why a role is not wanted at time now.
func (d Desired) Reason(role int, now clock.Instant) term.Reason {
	switch {
	case d.Closing:
		return term.Closing
	case !d.Contend:
		return d.Why
	case d.Unhealthy:
		return term.Unhealthy
	case now.Mono < d.Away:
		return term.SteppedDown
	case role >= d.Roles:
		return term.Roles
	}
	return term.Unassigned
}
