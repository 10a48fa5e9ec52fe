package nonexclusive_test

import (
	"testing"

	"github.com/goneli/neli/internal/mutation"
)

const (
	sharedGap = `had no leader for|has no leader, and|not everything is led after five minutes`
	arbFile   = "arbiter.go"
	castFile  = "broadcast.go"
	setFile   = "../../settings.go"

	silenceFile = "silence.go"
)

// sharedRules are the rules of non-exclusive mode. A rule's guard is the test that shows best what
// the rule prevents, or else the simulation with a few seeds.
var sharedRules = []mutation.Mutant{
	// V and T.
	{Rule: "T exceeds S + 2 B", File: setFile,
		Old: "f.check(s.HeartbeatTimeout > session+2*s.broadcast,", New: "f.check(s.HeartbeatTimeout > session,",
		Package: "../..", Guard: "TestConfigFaults", Want: `An error is expected but got nil`},
	{Rule: "a process leads for T after its last record, not for S", File: "young.go",
		Old: "age < t\n", New: "age < t/3\n",
		Guard: "TestSharedCutOffLeaderLeadsUntilItIsReplaced", Want: `overlap, by design|nobody led for a while`},
	{Rule: "a process leads for at most T after receiving a record", File: "young.go",
		Old: "age < t\n", New: "age < 2*t\n",
		Guard: "TestSharedCutOffLeaderLeadsUntilItIsReplaced", Want: `presumes for longer than T`},
	{Rule: "V is when a record was received, not when one was sent", File: castFile,
		Old: "				if err := a.clients.Producer.Append(", New: "				a.mu.Lock()\n				if a.v[p], a.heard[p] = a.set.Now(), a.set.Now(); p < a.desired.Roles && a.assigned[p] == assignedHere {\n					a.lead(p, a.v[p])\n				}\n				a.mu.Unlock()\n				if err := a.clients.Producer.Append(",
		Guard: "TestSharedDeafMemberMakesRoom", Want: `not within \S+: the other one leads`},
	{Rule: "V is when a record was received, not when the partition was assigned", File: arbFile,
		Old: "	a.v[p] = now\n	if p < a", New: "	if a.v[p] == (clock.Instant{}) {\n		a.v[p] = now\n	}\n	if p < a",
		Guard: "TestSharedAlwaysHasALeader/range", Want: `nobody led for a while`},
	{Rule: "V also moves on partitions without a role", File: arbFile,
		Old: "	a.v[p] = now\n	if p < a.desired.Roles {\n", New: "	if p < a.desired.Roles {\n		a.v[p] = now\n",
		Guard: "TestSharedDifferentRoles", Want: `leads a new role at once`},

	// A process goes on as leader after its assignment was withdrawn.
	{Rule: "a withdrawn partition is led until V lapses", File: arbFile,
		Old:   "		clear(a.assigned) // elsewhere\n",
		New:   "		clear(a.assigned)\n		for p := range a.assigned {\n			if !slices.Contains(partitions, p) {\n				a.end(p, term.Unassigned, true)\n			}\n		}\n",
		Guard: "TestSharedAlwaysHasALeader/range", Want: `nobody led for a while`},
	{Rule: "a lost session does not end a term", File: arbFile,
		Old:   "		a.dropAssignments()\n	} else {\n",
		New:   "		a.dropAssignments()\n		for p := range a.assigned {\n			a.end(p, term.Unassigned, true)\n		}\n	} else {\n",
		Guard: "TestSharedSimulation", Seeds: sharedMutantSeeds, Want: sharedGap},
	{Rule: "becoming unhealthy does not end a term", File: castFile,
		Old:   "	if a.desired.Unhealthy { // so that the group notices\n",
		New:   "	if a.desired.Unhealthy {\n		for p := range a.assigned {\n			a.end(p, a.desired.Reason(p, now), true)\n		}\n",
		Guard: "TestSharedSimulation", Seeds: sharedMutantSeeds, Want: sharedGap},

	// A process that leaves leads on until another member does.
	{Rule: "a closing process goes on leading for the overlap", File: arbFile,
		Old: "a.leaveAt = now.Add(a.set.HandoverOverlap)", New: "a.leaveAt = now",
		Guard: "TestSharedAlwaysHasALeader/range", Want: `nobody led for a while`},
	{Rule: "a process whose Lead or Pulser ends keeps leading for the overlap", File: arbFile,
		Old: "return a.desired.Closing || !a.desired.Contend }", New: "return a.desired.Closing }",
		Guard: "TestSharedResignsWithoutAGap/(Lead|Pulser.Close)", Want: `it has left the group|overlap, by design`},
	{Rule: "the overlap covers a rebalance that waits for a dead member", File: setFile,
		Old: "min(session, 10*time.Second)+s.successorWait+2*s.broadcast)", New: "s.successorWait/4)",
		Guard: "TestSharedSimulation", Seeds: sharedMutantSeeds, Want: sharedGap},

	// Broadcasts.
	{Rule: "broadcasts go to all M partitions", File: castFile,
		Old: "for p, report := range reports {", New: "for p, report := range reports[:min(1, len(reports))] {",
		Guard: "TestSharedBroadcastsToAllOnceInB/1", Want: `partition 1`},
	{Rule: "each process broadcasts once in B", File: castFile,
		Old: "time.NewTicker(a.set.Broadcast)", New: "time.NewTicker(2 * a.set.Broadcast)",
		Guard: "TestSharedBroadcastsToAllOnceInB/1", Want: `Max difference between 10 and 5`},
	{Rule: "B is HeartbeatInterval × GroupsOnTopic", File: setFile,
		Old: "s.broadcast = s.HeartbeatInterval * groups", New: "s.broadcast = s.HeartbeatInterval",
		Guard: "TestSharedBroadcastsToAllOnceInB/3", Want: `Max difference between 10 and (29|30|31)`},

	// A process makes room for others.
	{Rule: "a process that receives nothing leaves the group", File: castFile,
		Old: "p >= 0 && now.Mono >= at {", New: "p >= 0 && now.Mono >= at && p < 0 {",
		Guard: "TestSharedDeafMemberMakesRoom", Want: `not within \S+: the other one leads`},
	{Rule: "a process that left for lack of records stays out for a while", File: castFile,
		Old: "a.away = now.Mono.Add(a.set.Absence) // counted from when it leaves", New: "a.away = now.Mono",
		Guard: "TestSharedDeafMemberMakesRoom", Want: `not within \S+: the other one leads|nobody led for a while`},
	{Rule: "a member that could neither read nor write comes back once it can write", File: castFile,
		Old: "			a.stalled = p //", New: "			a.stalled = none //",
		Guard: "TestSharedStallOfAll/S=1s_.*", Want: `nobody led for`},
	{Rule: "a member that can write, but not read, stays away for the whole pause", File: castFile,
		Old: "a.silence[p].unwritten(now, a.set.StarvedAfter/2) {", New: "true {",
		Guard: "TestSharedDeafMemberMakesRoom", Want: `not within \S+: the other one leads|nobody led for a while`},
	{Rule: "a member does not leave just after it could write again", File: silenceFile,
		Old: "s.resumed.Mono >= heard.Mono {", New: "s.resumed.Mono >= heard.Mono && set == nil {",
		Guard: "TestSharedStallOfAll/S=250ms_T=750ms_members=3_.*", Want: `nobody led for`},
	{Rule: "a lone member stays in the group until V has lapsed", File: silenceFile,
		Old: "		after = max(after, set.T)\n", New: "",
		Guard: "TestSharedStallOfAll/S=6s_.*", Want: `nobody led for a while`},
	{Rule: "a member that hears others is not alone", File: silenceFile,
		Old: "		s.others = now\n	}", New: "	}",
		Guard: "TestSharedDeafMemberMakesRoom", Want: `not within \S+: the other one leads|nobody led for a while`},
	{Rule: "if T is too short for a rebalance, a member leaves only once V has lapsed", File: setFile,
		Old: "		s.starvedAfter = s.HeartbeatTimeout\n", New: "",
		Guard: "TestSharedStallOfAll/S=100ms_T=500ms.*", Want: `nobody led for a while`},
	{Rule: "a starved member leaves early enough for another one to lead while V is young", File: setFile,
		Old: "max(session, s.HeartbeatTimeout-s.absence)", New: "s.HeartbeatTimeout",
		Guard: "TestSharedDeafMemberMakesRoom", Want: `not within \S+: the other one leads`},
	{Rule: "assignments are forgotten only after the group was left", File: castFile,
		Old: "		starved = p\n", New: "		starved = p\n		a.dropAssignments()\n",
		Guard: "TestSharedStarvedWhilePollIsBlocked", Want: `the only member is healthy|Not equal`},
	{Rule: "a process with a hung application makes room", File: castFile,
		Old: "a.clients.Member.Join(alive && !a", New: "a.clients.Member.Join(!a",
		Guard: "TestSharedHungApplication", Want: `its application hangs|makes room`},
	{Rule: "a starved member of a group with slow heartbeats leaves earlier", File: setFile,
		Old: "s.absence = 2*time.Second + 2*heartbeatInterval(s.kafka)", New: "s.absence = 3*time.Second",
		Guard: "TestSharedDeafMemberMakesRoomInASlowGroup", Want: `nobody led for a while`},
	{Rule: "a static member stays away for longer than its session", File: setFile,
		Old: "		s.absence += session\n", New: "",
		Guard: "TestSharedDeafStaticMemberMakesRoom", Want: `the other one has taken over`},
	{Rule: "the overlap of a static member covers its session", File: setFile,
		Old: "		s.handoverOverlap = min(s.HeartbeatTimeout, session+s.successorWait+2*s.broadcast)\n", New: "",
		Guard: "TestSharedStaticMemberClosesWithoutAGap", Want: `nobody led for a while`},
	{Rule: "a member without read permission stays away for a while", File: "../kafkalog/group.go",
		Old: "left, back = true, time.Now().Add(g.absence)", New: "left = true",
		Guard: "TestSharedRefusedReaderMakesRoom", Want: `the other one has taken over`},
}

// sharedMutantSeeds is enough seeds for each rule that the simulation guards.
const sharedMutantSeeds = 60

func TestNonExclusiveNeedsEveryRule(t *testing.T) { mutation.Run(t, sharedRules) }
