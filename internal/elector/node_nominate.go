package elector

import (
	"log/slog"

	"github.com/goneli/neli/internal/clock"
)

// Nominate takes the nominator's word: the partitions of which this process may claim
// roles.
func (n *Node) Nominate(partitions []int, lost bool, now clock.Instant) {
	named := make([]bool, len(n.shards))
	for _, i := range partitions {
		if i >= 0 && i < len(named) {
			named[i] = true
		}
	}
	for i, p := range n.shards {
		if p.nomination.nominate(named[i], lost, p.holds.len() > 0, now) {
			p.wanted = false
			if named[i] {
				p.review(now)
			}
		}
	}
	n.announcer.at = now.Mono
	n.Tick(now)
}

// joins reports whether this process is to take part in the group: only while it could
// lead. A hung application must make room for others.
func (n *Node) joins(now clock.Instant) bool {
	return n.set.Nominated && !n.set.Observer && n.desired.Willing(now) && n.set.Alive(now) && !n.absent(now)
}

// absent reports whether this process stays away because of partitions that it cannot reach.
func (n *Node) absent(now clock.Instant) bool {
	away, lost := n.attendance.away(func() (lost []int) {
		for _, p := range n.shards {
			if p.nomination.unheard(n.set.T, now) {
				lost = append(lost, p.index)
			}
		}
		return lost
	}, now)
	if len(lost) > 0 {
		n.note(slog.LevelWarn, "cannot reach partitions of the leader topic: leaving the group to make room for others",
			"partitions", lost, "for", absence)
	}
	return away
}

// reachable is the partition in whose log this process announces itself: its home, or
// the next one where own records come back.
func (k *common) reachable() int {
	m := len(k.channels)
	for i := range m {
		p := k.channels[(k.announcer.home+i)%m]
		if p.link.hello.seq == 0 && !p.link.stalled {
			return p.index
		}
	}
	return k.announcer.home
}
