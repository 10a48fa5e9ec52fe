package nominate

import (
	"time"

	"github.com/goneli/neli/internal/clock"
)

// Nomination is a Nominator's decision for one partition, and whether this process can claim there
// at all. A process that is cut off from a partition's broker, but not from the group's
// coordinator, looks healthy to the group: it would stay nominated without being able to claim,
// and nobody would lead.
type Nomination struct {
	nominated bool
	since     clock.Instant // when this process was last nominated anew
	retained  bool          // the group's session was lost while roles were held: these are kept without a nomination
	tried     clock.Mono    // when first Claimed since a record was read here, or since the nomination; 0: not
}

// Attendance is whether this process takes part in the nominator's group.
type Attendance struct {
	least     time.Duration // the least time of an absence; 0: Absence
	awayUntil clock.Mono    // out of the group until then
	stayUntil clock.Mono    // after that in the group at least until then
}

const (
	// GiveWayAfter, or 3T if longer, is how long nothing may be read after a Claim. A broker's crash
	// stalls a partition for all members, but for less (about 13 s by default).
	GiveWayAfter = 15 * time.Second
	// Absence is how long a process leaves the group because of a partition that it cannot
	// reach, and Presence how long it then stays at least: if no process can reach that
	// partition, the other partitions still need leaders.
	Absence  = 15 * time.Second
	Presence = 2 * time.Minute
)

func NewNomination(nominated bool) Nomination { return Nomination{nominated: nominated} }

// MayClaim reports whether this process is nominated, and Keeps whether it keeps what it holds.
func (g *Nomination) MayClaim() bool { return g.nominated }

func (g *Nomination) Keeps() bool { return g.nominated || g.retained }

// NominatedAt is when this process was last nominated anew.
func (g *Nomination) NominatedAt() clock.Instant { return g.since }

// Claimed notes a Claim, sent or withheld.
func (g *Nomination) Claimed(now clock.Instant) {
	if g.tried == 0 {
		g.tried = now.Mono
	}
}

// Heard notes that a record was read.
func (g *Nomination) Heard() { g.tried = 0 }

// Unheard reports whether this process is nominated and has read nothing here for a long time since its first Claim.
func (g *Nomination) Unheard(t time.Duration, now clock.Instant) bool {
	return g.nominated && g.tried != 0 && now.Mono.Sub(g.tried) >= max(GiveWayAfter, 3*t)
}

// Nominate takes the nominator's decision: whether this process is nominated, and whether the
// group's session was lost. A lost session ends no lease: held roles are kept. changed reports
// whether the nomination differs.
func (g *Nomination) Nominate(named, lost, holds bool, now clock.Instant) (changed bool) {
	g.retained = lost && holds && (g.nominated || g.retained)
	if changed = named != g.nominated; changed && named {
		// Claims of an earlier nomination may have failed in an outage that is over.
		g.since, g.tried = now, 0
	}
	g.nominated = named
	return changed
}

// NewAttendance returns the Attendance of a process whose absences last at least for least.
func NewAttendance(least time.Duration) Attendance { return Attendance{least: least} }

// Lasts is how long an absence lasts.
func (a *Attendance) Lasts() time.Duration { return max(Absence, a.least) }

// Away reports whether this process stays out of the group; lost has the partitions that cause
// the absence, if it begins now.
func (a *Attendance) Away(unheard func() []int, now clock.Instant) (away bool, lost []int) {
	if now.Mono < a.awayUntil {
		return true, nil
	}
	if now.Mono < a.stayUntil {
		return false, nil
	}
	if lost = unheard(); len(lost) == 0 {
		return false, nil
	}
	a.awayUntil = now.Mono.Add(a.Lasts())
	a.stayUntil = a.awayUntil.Add(Presence)
	return true, lost
}
