package elector

import (
	"log/slog"

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

// joins reports whether this process takes part in the group: only while it could lead. A hung
// application must make room for others, and so must one that leads nothing and cannot be told of a
// term. One that leads would lose that with the group.
func (n *Node) joins(now clock.Instant) bool {
	if !n.set.Nominated || n.set.Observer || !n.desired.Willing(now) || !n.set.Alive(now) || n.absent(now) {
		return false
	}
	_, leads := n.terms.LeadsAny(n.desired.Roles)
	return leads || !n.set.deaf(now)
}

// absent reports whether this process stays out of the group because of partitions that it cannot
// reach.
func (n *Node) absent(now clock.Instant) bool {
	away, lost := n.attendance.Away(func() (lost []int) {
		for _, s := range n.shards {
			if s.nomination.Unheard(n.set.T, now) {
				lost = append(lost, s.Index)
			}
		}
		return lost
	}, now)
	if len(lost) > 0 {
		n.ready.note(slog.LevelWarn, "cannot reach partitions of the leader topic: leaving the group to make room for others",
			"partitions", lost, "for", n.attendance.Lasts())
	}
	return away
}
