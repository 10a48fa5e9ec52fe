package nelihttp

import (
	"testing"

	"github.com/goneli/neli/internal/mutation"
)

// rules are the rules by which requests are forwarded, and the tests that notice if one is removed.
var rules = []mutation.Mutant{
	{Rule: "a request is forwarded twice at most", File: "forward.go",
		Old: "	if hops >= maxHops {\n", New: "	if hops > maxHops {\n",
		Guard: "TestForwardFindsTheLeader/a_ring", Want: "a2 b2"},
	{Rule: "a malformed hop count is refused", File: "passage.go",
		Old: "				return maxHops, nil\n", New: "				continue\n",
		Guard: "TestForwardChecksTheHeaderOfHops", Want: `hops ".*" are too many`},
	{Rule: "the header of hops cannot be removed by the client", File: "passage.go",
		Old: "	q.Out.Header[hopsHeader] = []string{p.hops}\n", New: "	if q.In.Header.Get(\"Connection\") == \"\" {\n		q.Out.Header[hopsHeader] = []string{p.hops}\n	}\n",
		Guard: "TestForwardChecksTheHeaderOfHops", Want: "Not equal"},
	{Rule: "only the first process retries", File: "forward.go",
		Old: "no == notLeading && hops == 0 && out.again", New: "no == notLeading && out.again",
		Guard: "TestForwardFindsTheLeader/a_former_holder_that_could_look_again", Want: "a1 b1 c1 d1"},
	{Rule: "a consumed body is not sent again", File: "forward.go",
		Old: "no == notLeading && hops == 0 && out.again", New: "no == notLeading && hops == 0",
		Guard: "TestForwardFindsTheLeader/a_body.*", Want: "a1 b1 c1"},
	{Rule: "the same holder is not asked twice", File: "forward.go",
		Old: "			no = notLeading\n", New: "",
		Guard: "TestForwardFindsTheLeader/the_same_holder", Want: "a1 b2"},
	{Rule: "nothing is sent to an address that is not allowed", File: "forward.go",
		Old: "	case !f.allow(at):\n", New: "	case false:\n",
		Guard: "TestForwardSendsToAllowedAddressesOnly", Want: `nothing is sent to "169`},
	{Rule: "requests use only http or https", File: "../internal/advertised/advertised.go",
		Old: " || u.Scheme != \"http\" && u.Scheme != \"https\"", New: "",
		Guard: "TestForwardSendsToAllowedAddressesOnly", Want: `nothing is sent to "ws:`},
	{Rule: "addresses with user and password are refused", File: "../internal/advertised/advertised.go",
		Old: " || u.User != nil", New: "",
		Guard: "TestForwardSendsToAllowedAddressesOnly", Want: "@evil"},
	{Rule: "the zone of an address is not taken for a name", File: "../internal/advertised/advertised.go",
		Old: " || strings.Contains(u.Host, \"%\")", New: "",
		Guard: "TestForwardSendsToAllowedAddressesOnly", Want: `nothing is sent to "http://\[`},
	{Rule: "a process sends nothing to itself", File: "forward.go",
		Old: "	case f.self != nil && strings", New: "	case false && strings",
		Guard: "TestForwardFindsTheLeader/this_process_itself", Want: "a3 b0"},
	{Rule: "a request that may have been handled is not repeated", File: "passage.go",
		Old: "	return &refusal{http.StatusBadGateway, 0,", New: "	return &refusal{http.StatusServiceUnavailable, 0,",
		Guard: "TestForwardRepeatsNothingThatMayHaveRun", Want: "expected: 502"},
	{Rule: "a request that was sent may have been handled, even if connecting again fails", File: "passage.go",
		Old: " && !sent:\n", New: ":\n",
		Guard: "TestForwardAnswers502IfTheRequestWasSent", Want: "expected: 502"},
	{Rule: "a 421 of the application is passed on", File: "passage.go",
		Old: " && a.Header.Get(notLeader) == f.group {", New: " {",
		Guard: "TestForwardPassesOnTheApplications421", Want: "expected: 421"},
	{Rule: "a process that cannot serve or forward a forwarded request answers 421", File: "forward.go",
		Old: "	case hops > 0 && status != http.StatusBadGateway:\n", New: "	case false:\n",
		Guard: "TestForwardFindsTheLeader/another_holder", Want: "a1 b1 c0"},
	{Rule: "a gate lets nothing in once its term ends", File: "gate.go",
		Old: "	delete(g.terms, l.Role)\n", New: "",
		Guard: "TestGateKeepsARoleForItsRequests", Want: "its context has ended"},
	{Rule: "a gate lets in requests of its own term only", File: "gate.go",
		Old: " || t.token != in.Token {", New: " {",
		Guard: "TestGateKeepsARoleForItsRequests", Want: "another term"},
	{Rule: "a term ends after its requests", File: "gate.go",
		Old: "	t.work.Wait()\n", New: "",
		Guard: "TestGateKeepsARoleForItsRequests", Want: "a request is in progress"},
}

func TestRulesAreGuarded(t *testing.T) { mutation.Run(t, rules) }
