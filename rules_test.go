package neli

import (
	"testing"

	"github.com/goneli/neli/internal/mutation"
)

// What drivers and delivery rest on, and logs in Kafka that may forget.
var driverMutants = []mutation.Mutant{
	{Rule: "contexts of what is lost end while the barrier is at work", File: "lead.go",
		Old:   "			for _, c := range l.n.arb.peek() {\n				l.cancel(c)\n			}\n",
		Guard: "TestContextsEndWhileTheBarrierIsAtWork", Want: "leadership (fenced|revoked)"},
	{Rule: "what a barrier that panicked left is told", File: "deliver.go",
		Old: "	n.owed.Store(len(n.pending) > 0)\n	n.call(e, l)\n", New: "	left := n.pending\n	n.pending = nil\n	n.owed.Store(false)\n	n.call(e, l)\n	n.pending = left\n",
		Guard: "TestPanickingBarrier", Want: "should have 1 item"},
	{Rule: "R is one and the same for the check and the arbiter", File: "neli.go",
		Old: "		n.roles.Store(int64(r)) // with the lock held, or two calls could leave two different ones\n", New: "		go n.roles.Store(int64(r))\n",
		Guard: "TestSetRolesFromSeveralGoroutines", Want: "Not equal"},
	{Rule: "roles that SetRoles does away with may finish", File: "leadership.go",
		Old: "	id, _, _, ok := l.n.arb.table().Leads(l.n.arb.units().of(l.Role))\n", New: "	id, _, ok := l.n.term(l.Role)\n",
		Guard: "TestRolesThatGoFinish", Want: "the lease is kept for role"},
	{Rule: "the deadline is a monotonic reading", File: "deliver.go",
		Old: "time.Now().Add(", New: "time.Unix(0, int64(n.now().Wall)).Add(",
		Guard: "TestDeadlineIsMonotonic", Want: "Not equal"},
	{Rule: "all that is revoked together is due by the earliest deadline", File: "deliver.go",
		Old: "return cmp.Compare(a.Deadline.Mono, b.Deadline.Mono)", New: "return cmp.Compare(0, 0)",
		Guard: "TestRevokedDeadlineIsTheEarliest", Want: "10s|10000000000"},
	{Rule: "only the driver with the turn is heard, at a glance", File: "pulser.go",
		Old: "ok && len(n.driver) == 0", New: "ok",
		Guard: "TestHungTaskBesideAPulse", Want: "b leads"},
	{Rule: "only the driver with the turn is heard, in a wait", File: "pulser.go",
		Old: "	if !n.takeTurn(timeout, stop) {\n", New: "	n.heard()\n	if !n.takeTurn(timeout, stop) {\n",
		Guard: "TestHungTaskBesideAPulse", Want: "it claims nothing while the task hangs"},
	{Rule: "a task that ends its goroutine gives up", File: "pulser.go",
		Old: "		n.stepDown(nil)\n	}()\n", New: "	}()\n",
		Guard: "TestTaskThatEndsItsGoroutine", Want: "Not equal"},
	{Rule: "a fatal end waits for no check of health", File: "neli.go",
		Old: "		close(n.done)\n		health.stop() //", New: "		health.stop()\n		close(n.done) //",
		Guard: "TestFatalEndBesideAHungCheck", Want: "nobody was told"},
	{Rule: "beats stop when the application hangs", File: "neli.go",
		Old: "return n.waiting.Load() > 0 ||", New: "return true ||",
		Guard: "TestHungApplicationIsReplaced", Want: "b leads"},
	{Rule: "what an earlier epoch left is none of the incarnation's", File: "kafka_small_log.go",
		Old: "	if r.Epoch < epoch {\n", New: "	if false {\n",
		Guard: "TestLogsPassOverEarlierEpochs", Want: "Target error should be in err chain"},
	{Rule: "a record of a later epoch is another incarnation's", File: "kafka_small_log.go",
		Old: "	case r.Epoch > epoch:\n", New: "	case false:\n",
		Guard: "TestLogsBeginAnewWithAnotherEpoch", Want: "reading began with an epoch that is over, or"},
	{Rule: "an epoch that was told is another incarnation", File: "kafka_small_log.go",
		Old: "	n.newest = max(n.newest, epoch)\n", New: "",
		Guard: "TestSilentLogsAreAsked", Want: "nothing comes"},
	{Rule: "reading does not begin with an epoch that is known to be over", File: "kafka_small_log.go",
		Old: "	if epoch < n.newest {\n", New: "	if false {\n",
		Guard: "TestLogsBeginAnewWithAnotherEpoch", Want: "reading began with an epoch that is over, or"},
	{Rule: "who has another T does not meet the group", File: "kafka_small_place.go",
		Old: "logs, lease, strconv", New: "logs, time.Second, strconv",
		Guard: "TestLogsTopicName", Want: "logs-3.t-5s"},
	{Rule: "a newcomer looks back so far and no farther", File: "kafka_back.go",
		Old: "b.parts[p].times >= maxFarther", New: "b.parts[p].times > maxFarther",
		Guard: "TestReadingBeginsFartherBack", Want: "it has been far enough"},
	{Rule: "what is read again is of unknown age", File: "kafka_back.go",
		Old: "	e.End = k.position[p] //", New: "	//",
		Guard: "TestReadingBeginsFartherBack", Want: "500001"},
}

func TestDriverRulesAreGuarded(t *testing.T) { mutation.Run(t, driverMutants) }
