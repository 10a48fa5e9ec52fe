package elector

import (
	"log/slog"
	"time"

	"github.com/goneli/neli/internal/clock"
)

// group is what a Nominator says of one partition, and whether this process can claim
// there at all. One that is cut off from a partition's broker, and not from the group's
// coordinator, is healthy as far as the group knows: it would stay nominated, unable to
// claim, and nobody would lead.
type group struct {
	nominated bool
	since     clock.Instant // when this process was last newly nominated
	retained  bool          // held when the group's session was lost: nominated no more, and not given up
	tried     clock.Time    // monotonic: the first Claim since anything was read here; 0: none
}

// claimed notes a Claim.
func (g *group) claimed(now clock.Instant) {
	if g.tried == 0 {
		g.tried = now.Mono
	}
}

const (
	// giveWayAfter is how long Claims may remain unheard of. It outlasts the crash of a
	// broker, which stalls a partition for about 13 s with stock settings and for
	// everybody alike.
	giveWayAfter = 15 * time.Second
	// absence is how long a process leaves the group to others because of a partition
	// that it cannot reach, and presence how long it stays then at least: if nobody can
	// reach it, the other partitions need their leaders.
	absence  = 15 * time.Second
	presence = 2 * time.Minute
)

// Nominate takes the nominator's word: the partitions of which this process may claim
// roles.
func (n *Node) Nominate(partitions []int, lost bool, now clock.Instant) {
	named := make([]bool, len(n.parts))
	for _, i := range partitions {
		if i >= 0 && i < len(named) {
			named[i] = true
		}
	}
	for i, p := range n.parts {
		g := &p.group
		// The group's session is over, the lease is not: what is held stays.
		g.retained = lost && len(p.holds) > 0 && (g.nominated || g.retained)
		if was := g.nominated; named[i] != was {
			g.nominated, p.wanted = named[i], false
			if !was {
				g.since = now
				n.review(p, now)
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

// absent reports whether this process stays away because of a partition that it cannot
// reach.
func (n *Node) absent(now clock.Instant) bool {
	m := &n.timing
	if now.Mono < m.awayUntil {
		return true
	}
	if now.Mono < m.stayUntil {
		return false
	}
	var lost []int
	for _, p := range n.parts {
		if p.group.nominated && p.group.tried != 0 && now.Mono.Sub(p.group.tried) >= max(giveWayAfter, 3*n.set.T) {
			lost = append(lost, p.index)
		}
	}
	if len(lost) == 0 {
		return false
	}
	m.awayUntil = now.Mono.Add(absence)
	m.stayUntil = now.Mono.Add(absence + presence)
	n.note(slog.LevelWarn, "cannot reach partitions of the leader topic: leaving the group to make room for others",
		"partitions", lost, "for", absence)
	return true
}

// reachable is the partition in whose log this process announces itself: its home, or
// the next one where own records come back.
func (n *Node) reachable() int {
	m := len(n.logs)
	for i := range m {
		p := n.logs[(n.announcer.home+i)%m]
		if p.link.hello.seq == 0 && !p.link.stalled {
			return p.index
		}
	}
	return n.announcer.home
}
