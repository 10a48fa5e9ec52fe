package elector

import (
	"log/slog"
	"time"

	"github.com/goneli/neli/internal/clock"
)

// nomination is a Nominator's decision for one partition, and whether this process can claim there
// at all. A process that is cut off from a partition's broker, but not from the group's
// coordinator, looks healthy to the group: it would stay nominated without being able to claim,
// and nobody would lead.
type nomination struct {
	nominated bool
	since     clock.Instant // when this process was last nominated anew
	retained  bool          // the group's session was lost while roles were held: not nominated, and they are kept
	tried     clock.Mono    // the first Claim since a record was read here, or since the nomination; 0: none
}

// attendance is whether this process takes part in the nominator's group.
type attendance struct {
	least     time.Duration // of an absence; 0: the constant
	awayUntil clock.Mono    // not in it until then
	stayUntil clock.Mono    // and then in it at least until then
}

const (
	// giveWayAfter is how long Claims may go without coming back. It is longer than the crash
	// of a broker stalls a partition for all members (about 13 s with default settings).
	giveWayAfter = 15 * time.Second
	// absence is how long a process leaves the group because of a partition that it cannot
	// reach, and presence how long it then stays at least: if no process can reach that
	// partition, the other partitions still need leaders.
	absence  = 15 * time.Second
	presence = 2 * time.Minute
)

// claimed notes a Claim.
func (g *nomination) claimed(now clock.Instant) {
	if g.tried == 0 {
		g.tried = now.Mono
	}
}

// heard notes that a record was read.
func (g *nomination) heard() { g.tried = 0 }

// unheard reports whether this process is nominated and has read nothing here for a long time
// since its first Claim.
func (g *nomination) unheard(t time.Duration, now clock.Instant) bool {
	return g.nominated && g.tried != 0 && now.Mono.Sub(g.tried) >= max(giveWayAfter, 3*t)
}

// nominate takes the nominator's decision: whether this process is nominated, and whether the
// group's session was lost. A lost session ends no lease: held roles are kept. changed reports
// whether the nomination differs.
func (g *nomination) nominate(named, lost, holds bool, now clock.Instant) (changed bool) {
	g.retained = lost && holds && (g.nominated || g.retained)
	if changed = named != g.nominated; changed && named {
		// Claims of an earlier nomination may have failed in an outage that is over.
		g.since, g.tried = now, 0
	}
	g.nominated = named
	return changed
}

func (a *attendance) absence() time.Duration { return max(absence, a.least) }

// away reports whether this process stays out of the group; lost has the partitions that caused
// it, if that begins now.
func (a *attendance) away(unheard func() []int, now clock.Instant) (away bool, lost []int) {
	if now.Mono < a.awayUntil {
		return true, nil
	}
	if now.Mono < a.stayUntil {
		return false, nil
	}
	if lost = unheard(); len(lost) == 0 {
		return false, nil
	}
	a.awayUntil = now.Mono.Add(a.absence())
	a.stayUntil = a.awayUntil.Add(presence)
	return true, lost
}

// Nominate takes the nominator's decision: the partitions on which this process may claim roles.
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

// joins reports whether this process takes part in the group: only while it could lead. A hung
// application must make room for others, and so must one that leads nothing and cannot be told of a
// term. One that leads would lose that with the group.
func (n *Node) joins(now clock.Instant) bool {
	if !n.set.Nominated || n.set.Observer || !n.desired.Willing(now) || !n.set.Alive(now) || n.absent(now) {
		return false
	}
	_, leads := n.terms.LeadsAny(n.desired.Roles)
	return leads || !n.deaf(now)
}

// absent reports whether this process stays out of the group because of partitions that it cannot
// reach.
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
			"partitions", lost, "for", n.attendance.absence())
	}
	return away
}
