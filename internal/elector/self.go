package elector

import (
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/lease"
)

// wants is what a Hello says that this process may claim; nil means everything.
func (p *planning) wants(now clock.Instant) []int {
	wants := []int{}
	switch {
	case p.desired.Closing:
	case !p.set.Nominated:
		if able(p.set, p.desired, now) {
			return nil
		}
	default:
		for _, s := range p.shards {
			if s.nomination.MayClaim() {
				wants = append(wants, s.Index)
			}
		}
	}
	return wants
}

func (p *planning) announcement(wants []int) *lease.Announcement {
	return &lease.Announcement{Priority: p.desired.Priority, Roles: p.desired.Roles, Wants: wants, Leaving: p.desired.Closing,
		Period: roster.HelloPeriod(p.members.Size()), Advertise: p.set.Advertise, Zone: p.set.Zone, Caps: true, MaxRoles: p.set.MaxRoles}
}

// Members returns the processes that have written something since this process started, and this
// one unless it is an observer.
func (p *planning) Members(now clock.Instant) []roster.Member {
	p.members.Expire(now, p.planner.Forget)
	out := p.members.All()
	if !p.set.Observer {
		out = append(out, p.self(p.mayClaim(now), now))
	}
	return out
}

// self is what this process says of itself.
func (p *planning) self(nominated bool, now clock.Instant) roster.Member {
	return roster.Member{Name: p.set.Name, Process: p.set.Process, Self: true, Nominated: nominated, Priority: p.desired.Priority,
		Roles: p.desired.Roles, Advertise: p.set.Advertise, Zone: p.set.Zone, MaxRoles: p.set.MaxRoles, Heard: now}
}

// mayClaim reports whether this process may claim some roles.
func (p *planning) mayClaim(now clock.Instant) bool {
	wants := p.wants(now)
	return wants == nil || len(wants) > 0
}

// Unasked returns the members for which Preference was not called, and the number of roles. The
// caller calls it without a lock, since it is the user's code, and stores the results with
// planner.preferred.
func (p *planning) Unasked() (ask []roster.Member, roles int) {
	if p.set.Preference == nil || p.set.Nominated {
		return nil, 0
	}
	return p.planner.Unasked(&p.members, p.self(false, clock.Instant{}), p.set.Observer, p.desired.Roles), p.desired.Roles
}
