package peers

import (
	"testing"

	"github.com/goneli/neli/internal/mutation"
)

// rules are the rules that a lease on a majority of logs depends on, each with the test that
// fails without it.
var rules = []mutation.Mutant{
	{Rule: "every incarnation has a random id", File: "smalllog/log.go",
		Old: "	rand.Read(id[:])", New: "	rand.Read(id[:0])",
		Package: "./smalllog", Guard: "TestIDsDiffer", Want: "an id was drawn twice"},
	{Rule: "a record for another incarnation is refused", File: "smalllog/log.go",
		Old: "	if id != l.id {", New: "	if id != l.id && false {",
		Package: "./smalllog", Guard: "TestRecordOfAnotherIncarnationIsRefused", Want: "another incarnation of the log"},
	{Rule: "a reader that has fallen behind is cut off, never moved on", File: "smalllog/log.go",
		Old: "	case r.Slow():", New: "	case r.Slow() && func() bool { r.next = r.log.first; return false }():",
		Package: "./smalllog", Guard: "TestSlowReaderIsCutOff", Want: "reader fell behind"},
	{Rule: "a host and its clients agree on T", File: "agreement.go",
		Old: "t != a.timeout {", New: "t != a.timeout && false {",
		Guard: "TestEveryDifferenceIsNamed", Want: "the difference in HeartbeatTimeout is missed"},
	{Rule: "a host and its clients agree on ρ", File: "agreement.go",
		Old: "r != a.drift {", New: "r != a.drift && false {",
		Guard: "TestEveryDifferenceIsNamed", Want: "the difference in MaxClockDrift is missed"},
	{Rule: "a host and its clients agree on the list", File: "agreement.go",
		Old: "here != there {", New: "here != there && false {",
		Guard: "TestEveryDifferenceIsNamed", Want: "the difference in list of log hosts is missed"},
	{Rule: "a sentinel checks the members' list", File: "logset.go",
		Old: "		return v.list\n", New: "		return \"\"\n",
		Guard: "TestTheSameHostsHaveTheSameIdentity", Want: "a list has an identity"},
	{Rule: "a host is not taken for another one of the list", File: "host.go",
		Old: "len(d) == 0 && meant != h.self.ID {", New: "len(d) == 0 && meant != h.self.ID && false {",
		Guard: "TestHostAnswersOnlyToItsOwnName", Want: "b was wanted, and a has answered"},
	{Rule: "a certificate is one of the list or of Members", File: "keys.go",
		Old: "	for _, h := range hosts {", New: "	for range hosts {\n		return nil\n	}\n	for _, h := range hosts {",
		Guard: "TestCertificatesThatMayConnect", Want: `whether \[shipping\] may connect`},
	{Rule: "another incarnation is a reset, whatever its offset", File: "link.go",
		Old: "if c.id == l.known && b.GetOffset() == l.next {", New: "if b.GetOffset() == l.next {",
		Guard: "TestAnotherIncarnationIsAReset", Want: "the incarnations that were reported"},
	{Rule: "a gap is never passed on", File: "link.go",
		Old: "if r.GetOffset() != l.next {", New: "if r.GetOffset() < l.next {",
		Guard: "TestHostThatLiesIsLeft/a_gap", Want: "not what the protocol allows"},
	{Rule: "a link moves on only with a record that the elector has", File: "link.go",
		Old: "			return ctx.Err() //", New: "			if e.Kind == kafka.LogRecord {\n				l.next++\n			}\n			return ctx.Err() //",
		Guard: "TestWokenProcessLosesNoRecord", Want: "records were lost without a reset"},
	{Rule: "a link moves on only with a reset that the elector has", File: "link.go",
		Old: "	if !l.emit(ctx, e) {\n		return false\n", New: "	if !l.emit(ctx, e) {\n		l.known, l.next = c.id, b.GetOffset()\n		return false\n",
		Guard: "TestWokenProcessLosesNoReset", Want: "resets were lost"},
	{Rule: "a host that answers nothing is left", File: "connection.go",
		Old: "	return len(c.pending) > 0 && now.Sub(c.pending[0].at) > c.patience\n", New: "	return false\n",
		Guard: "TestSilentHostIsLeft", Want: "a host that answers nothing is kept"},
	{Rule: "a record that has waited too long is not sent", File: "connection.go",
		Old: "		if time.Since(o.at) > stale {", New: "		if time.Since(o.at) > stale && false {",
		Guard: "TestRecordThatWaitedTooLongIsNotSent", Want: "the record sent first"},
	{Rule: "a name stands for one machine", File: "discover.go",
		Old: "len(families[true]) > 1 || len(families[false]) > 1", New: "len(families[true]) > 1 && false || len(families[false]) > 1",
		Guard: "TestANameOfSeveralMachinesIsRefused", Want: "a log host is one machine"},
	{Rule: "the largest ballot is written down before the record is appended", File: "host.go",
		Old: "h.top.raise(a.GetBallot()); err != nil {", New: "h.top.raise(0); err != nil {",
		Guard: "TestTheLargestBallotOutlivesTheHost", Want: "the empty log has lost its largest ballot"},
}

func TestRulesAreGuarded(t *testing.T) { mutation.Run(t, rules) }
