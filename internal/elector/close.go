package elector

import (
	"time"

	"github.com/goneli/neli/internal/clock"
)

// closeTail is how long a closing process waits, once it holds nothing, for what it sent
// last to be acknowledged and for Claims that are under way to be decided.
const closeTail = 2 * time.Second

// closeLag is how long it waits while it still reads, and has not come to its own Releases
// yet: where all of a large group close together, everybody is late, and the last one that
// finds the log vacant is to say so.
const closeLag = 3 * closeTail

// finish reports that a closing process has nothing more to wait for. Where it leaves
// nobody holding anything it leaves a Snapshot, so that the next one to come knows that
// at once. Who is to lead next has a moment to claim before: a Snapshot would only be in
// the way of that Claim.
func (n *Node) finish(now clock.Instant) {
	if !n.desired.Closing {
		return
	}
	claiming, owing := false, false
	for _, p := range n.shards {
		if p.holds.len() > 0 {
			return
		}
		under, _ := p.lease.Claiming()
		claiming = claiming || under > 0
		owing = owing || p.lease.Owing(now)
	}
	t := &n.timing
	if t.freeAt == 0 {
		t.freeAt = now.Mono
	}
	promised := false
	for _, p := range n.channels {
		switch {
		case !p.announcements.releasedHere || p.announcements.farewellLeft || !p.log.Known() || !p.log.Vacant():
		case now.Mono < n.succeedBy() && p.shard.claims.promised(n.members.takes):
			promised = true
		default:
			p.announcements.farewellLeft = true
			p.append(now, p.snapshot(now)...)
		}
	}
	if len(n.ready.Append) == 0 && !promised && (!claiming && !owing && t.farewells == 0 || n.waited(owing, now)) {
		n.ready.Finished = true
	}
}

// waited reports whether a closing process that holds nothing has waited long enough.
func (n *Node) waited(owing bool, now clock.Instant) bool {
	since := now.Mono.Sub(n.timing.freeAt)
	if reading := now.Age(n.counts.read) < closeTail/4; owing && reading {
		return since >= closeLag
	}
	return since >= closeTail
}

// succeedBy is until when those have claimed, mostly.
func (n *Node) succeedBy() clock.Mono {
	return n.timing.freeAt.Add(headStart(2 * n.timing.roundTrip()))
}

// Busy reports whether anything is held, claimed, or being released, for which it waits
// no longer than closeTail.
func (n *Node) Busy(now clock.Instant) bool {
	for _, p := range n.shards {
		if under, _ := p.lease.Claiming(); under > 0 || p.holds.len() > 0 {
			return true
		}
	}
	return n.timing.farewells > 0 && now.Mono.Sub(n.timing.parted) < closeTail
}
