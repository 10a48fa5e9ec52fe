package neligrpc

import (
	"testing"

	"github.com/goneli/neli/internal/mutation"
)

// rules are the rules by which calls are sent and let in, and the tests that notice if one is removed.
var rules = []mutation.Mutant{
	{Rule: "without a holder nothing is sent", File: "client.go",
		Old: "	if !ok {\n		return h, \"\", unavailable", New: "	if !ok && role < 0 {\n		return h, \"\", unavailable",
		Guard: "TestACallWithoutALeader", Want: "no holder is known"},
	{Rule: "nothing is sent to an address that is not allowed", File: "client.go",
		Old: "if at = c.targets(u); at == \"\" {", New: "if at = c.targets(u); at == \"\" {\n			return h, u.Host, nil\n		} else if false {",
		Guard: "TestCallsGoToAllowedAddressesOnly", Want: "not allowed"},
	{Rule: "only http and https addresses are used", File: "../internal/advertised/advertised.go",
		Old: " || u.Scheme != \"http\" && u.Scheme != \"https\"", New: "",
		Guard: "TestCallsGoToAllowedAddressesOnly", Want: "neither"},
	{Rule: "a refused call is tried once more only", File: "client.go",
		Old: "err == nil || again || !c.refused", New: "err == nil || again && false || !c.refused",
		Guard: "TestARefusedCallIsTriedOnceMore/another_holder_that_does_not_lead_either", Want: "a1 b1 c1"},
	{Rule: "a refused stream is tried once more only", File: "stream.go",
		Old: "	return next.RecvMsg(m)\n", New: "	s.again = again\n	return s.RecvMsg(m)\n",
		Guard: "TestARefusedCallIsTriedOnceMore/a_stream_to_.*", Want: "a1 b1 c1"},
	{Rule: "a call that a handler may have run is not repeated", File: "client.go",
		Old: " || again || !c.refused(trailer) ||", New: " || again ||",
		Guard: "TestACallThatMayHaveRunIsNotRepeated", Want: "An error is expected"},
	{Rule: "the same holder is not asked twice", File: "client.go",
		Old: "		if h, ok := c.src.Holder(refused.role); ok && was != nil && (h.Member", New: "		if h, ok := c.src.Holder(refused.role); ok && was != nil && (true || h.Member",
		Guard: "TestARefusedCallIsTriedOnceMore/the_same_holder", Want: "a2 b0"},
	{Rule: "a stream of messages is not repeated", File: "stream.go",
		Old: "err != nil || desc.ClientStreams {", New: "err != nil {",
		Guard: "TestARefusedCallIsTriedOnceMore/a_stream_of_messages", Want: "a1 b1"},
	{Rule: "a call has one header that names its role", File: "client.go",
		Old: "	headers.Set(", New: "	headers.Append(",
		Guard: "TestCallsReachTheLeader", Want: "must have one"},
	{Rule: "a waiting call learns of an address that becomes known", File: "balance.go",
		Old: "		case <-every.C:\n			w.report()\n", New: "		case <-every.C:\n",
		Guard: "TestACallWaitsForAnAddress", Want: "DeadlineExceeded"},
	{Rule: "connections to former members are closed", File: "balance.go",
		Old: "return !members[at] && !to.used", New: "return !members[at] && false && !to.used",
		Guard: "TestCallsAmongMembers", Want: "c is no member any more"},
	{Rule: "the server refuses what this process does not lead", File: "guard.go",
		Old: "ok := g.src.Token(int(role)); ok {", New: "ok := g.src.Token(int(role)); ok || true {",
		Guard: "TestARefusedCallIsTriedOnceMore/the_same_holder", Want: "serves role 1, token 0|An error is expected"},
	{Rule: "the server refuses calls of another group", File: "guard.go",
		Old: "	if group == g.group {\n", New: "	if true {\n",
		Guard: "TestACallNamesOneRole", Want: `\[?"?bills=1|"=1"|\["=1"\]`},
	{Rule: "the server refuses calls without a role", File: "guard.go",
		Old: "	if len(named) != 1 {\n", New: "	if len(named) == 0 {\n		return ctx, nil\n	}\n	if len(named) != 1 {\n",
		Guard: "TestACallNamesOneRole", Want: "expected: 0x3"},
}

func TestRulesAreGuarded(t *testing.T) { mutation.Run(t, rules) }
