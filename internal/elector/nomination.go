package elector

import (
	"log/slog"
	"time"

	"github.com/goneli/neli/internal/clock"
)

// Nominate takes the nominator's decision: the partitions on which this process may claim roles.
func (n *Node) Nominate(partitions []int, lost bool, now clock.Instant) {
	named := make([]bool, len(n.shards))
	for _, i := range partitions {
		if i >= 0 && i < len(named) {
			named[i] = true
		}
	}
	for i, s := range n.shards {
		if s.nomination.Nominate(named[i], lost, s.own.Len() > 0, now) {
			s.wanted = false
			if named[i] {
				n.do(now, s.reconsiderVacant)
			}
		}
	}
	n.announcer.SayNow(now)
	n.Tick(now)
}

// joins reports whether this process takes part in the group: only while it could lead, and not if it
// cannot reach its partitions. A hung application must make room for others, and so must one that leads
// nothing and cannot be told of a term. One that leads would lose that with the group.
func (n *Node) joins(now clock.Instant) bool {
	if !n.set.Nominated || n.set.Observer || !n.desired.Willing(now) || !n.set.Alive(now) {
		return false
	}
	away, lost := n.attendance.Away(func() []int { return n.shards.unheard(n.set.T, now) }, now)
	if len(lost) > 0 {
		n.ready.note(slog.LevelWarn, "cannot reach partitions of the leader topic: leaving the group to make room for others",
			"partitions", lost, "for", n.attendance.Lasts())
	}
	if away {
		return false
	}
	_, leads := n.terms.LeadsAny(n.desired.Roles)
	return leads || !n.set.deaf(now)
}

// unheard returns the partitions that this process was nominated for and cannot reach.
func (parts shards) unheard(t time.Duration, now clock.Instant) (lost []int) {
	for _, s := range parts {
		if s.nomination.Unheard(t, now) {
			lost = append(lost, s.Index)
		}
	}
	return lost
}
