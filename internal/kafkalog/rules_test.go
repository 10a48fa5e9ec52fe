package kafkalog

import (
	"testing"

	"github.com/goneli/neli/internal/mutation"
)

// What elections in Kafka rest on. Some rules show only in what a whole Neli does: their
// guards are tests of neli.
var mutants = []mutation.Mutant{
	{Rule: "what an earlier epoch left is none of the incarnation's", File: "small_log.go",
		Old: "	if r.Epoch < epoch {\n", New: "	if false {\n",
		Guard: "TestLogsPassOverEarlierEpochs", Want: "Target error should be in err chain"},
	{Rule: "a record of a later epoch is another incarnation's", File: "small_log.go",
		Old: "	case r.Epoch > epoch:\n", New: "	case false:\n",
		Guard: "TestLogsBeginAnewWithAnotherEpoch", Want: "reading began with an epoch that is over, or"},
	{Rule: "an epoch that was told is another incarnation", File: "small_log.go",
		Old: "	n.newest = max(n.newest, epoch)\n", New: "",
		Guard: "TestSilentLogsAreAsked", Want: "nothing comes"},
	{Rule: "reading does not begin with an epoch that is known to be over", File: "small_log.go",
		Old: "	if epoch < n.newest {\n", New: "	if false {\n",
		Guard: "TestLogsBeginAnewWithAnotherEpoch", Want: "reading began with an epoch that is over, or"},
	{Rule: "a setting that is refused costs no other one", File: "topic_create.go",
		Old: "		with := maps.Clone(c.spec.Settings)\n", New: "		with := map[string]string{}\n",
		Guard: "TestEachSettingIsRefusedByItself", Want: "Not equal"},
	{Rule: "what is refused is refused for its own sake", File: "topic_create.go",
		Old: "		again = again && len(still) > 0\n", New: "		again = false\n",
		Guard: "TestSettingsOfClustersThatRefuseSome", Want: "Not equal"},
	{Rule: "a cluster that gives no ids is not left with a topic", File: "topic_create.go",
		Old: "info.Partitions > 0 && !identifies(info.ID)", New: "info.Partitions < 0",
		Guard: "TestNothingIsCreatedWithoutIDs", Want: "in chain but got nil"},
	{Rule: "a broker that was never reached is called that", File: "topic.go",
		Old: "if t.contact.Lacking() {", New: "if false {",
		Package: "../..", Guard: "TestSaysWhatAStartWaitsFor", Want: "again and again"},
	{Rule: "the end of trouble is told once, if its beginning was", File: "throttling.go",
		Old: "since != 0 && t.told.Swap(false)", New: "since != 0",
		Guard: "TestTroubleIsTold", Want: "Should be empty"},
	{Rule: "a reader that stands still is replaced", File: "log.go",
		Old: "	if len(still) == 0 {\n", New: "	if true {\n",
		Package: "../..", Guard: "TestReaderThatStandsStillIsReplaced", Want: "replaced within T"},
	{Rule: "a reader that was replaced finds a Snapshot by itself", File: "log.go",
		Old: "			k.jump(p, e)\n		case k.position", New: "			k.begin(p, k.position[p], e)\n		case k.position",
		Package: "../..", Guard: "TestObserverKnowsTheHolderOnceItsReaderIsReplaced", Want: "Should be true"},
	{Rule: "a small log's reader that stands still is replaced", File: "small_log.go",
		Old: "	if len(still) == 0 {\n", New: "	if true {\n",
		Guard: "TestLogReaderThatStandsStillIsReplaced", Want: "replaced within T"},
	{Rule: "a record that was read before its acknowledgement proves nothing", File: "still.go",
		Old: "handed.After(l.read)", New: "true",
		Guard: "TestStillness", Want: "read before the acknowledgement"},
	{Rule: "a producer that gets nothing acknowledged is replaced", File: "lasting.go",
		Old: "		case l.barren.failed(err, time.Now()):\n			l.failed(p, errors.Join(errBarren, err))\n", New: "",
		Package: "../..", Guard: "TestBarrenProducerIsReplaced", Want: "it is replaced"},
	{Rule: "an acknowledgement is no silence", File: "barren.go",
		Old: "	b.since, b.patience = time.Time{}, barrenAfter\n", New: "	b.patience = barrenAfter\n",
		Guard: "TestBarren$", Want: "something was acknowledged"},
	{Rule: "producers are not replaced in a storm", File: "barren.go",
		Old: "min(2*b.patience, stillMost)", New: "b.patience",
		Guard: "TestBarren$", Want: "doubles the time"},
	{Rule: "readers are not replaced in a storm", File: "still.go",
		Old: "		l.patience = min(2*l.patience, max(l.patience, stillMost))\n", New: "		_ = l\n",
		Package: "../..", Guard: "TestReadersAreNotReplacedInAStorm", Want: "is not less than"},
	{Rule: "who has another T does not meet the group", File: "small_place.go",
		Old: "logs, lease, strconv", New: "logs, time.Second, strconv",
		Package: "../..", Guard: "TestLogsTopicName", Want: "logs-3.t-5s"},
	{Rule: "a newcomer looks back so far and no farther", File: "back.go",
		Old: "b.parts[p].times >= maxFarther", New: "b.parts[p].times > maxFarther",
		Guard: "TestReadingBeginsFartherBack", Want: "it has been far enough"},
	{Rule: "what is read again is of unknown age", File: "back.go",
		Old: "	e.End = k.position[p] //", New: "	//",
		Guard: "TestReadingBeginsFartherBack", Want: "500001"},
}

func TestRulesAreGuarded(t *testing.T) { mutation.Run(t, mutants) }
