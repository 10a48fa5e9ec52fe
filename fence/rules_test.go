package fence

import (
	"testing"

	"github.com/goneli/neli/internal/mutation"
)

// rules are the rules that keep former leaders out. Those that depend on servers are in the module
// lab/integration: locks, isolation levels, and a real broker without the second question.
var rules = []mutation.Mutant{
	// The order of the steps.
	{Rule: "a term is checked before its first attempt to initialise", File: "rule.go",
		Old: "	case ask:\n		if !ok {\n			return stop\n		}\n", New: "	case ask:\n",
		Guard: "TestModel", Want: "refused again and again"},
	{Rule: "a term is checked before each further attempt", File: "rule.go",
		Old: "	case initialise:\n		if !ok {\n			return ask\n", New: "	case initialise:\n		if !ok {\n			return initialise\n",
		Guard: "TestModel", Want: "refused again and again"},
	{Rule: "a term is checked after each init", File: "rule.go",
		Old: "	case check:\n		if !ok {\n			return stop\n		}\n", New: "	case check:\n",
		Guard: "TestModel", Want: "a former leader's records were committed after the new one's check"},
	{Rule: "a term whose producer was refused initialises another one", File: "rule.go",
		Old: "	case begin, produce, commit:\n		if !ok {\n			return ask\n", New: "	case begin, produce, commit:\n		if !ok {\n			return stop\n",
		Guard: "TestModel", Want: "the rightful leader stands still"},
	{Rule: "a producer that was refused is not used again", File: "rule.go",
		Old: "	case begin, produce, commit:\n		if !ok {\n			return ask\n", New: "	case begin, produce, commit:\n		if !ok {\n			return begin\n",
		Guard: "TestModel", Want: "refused again and again"},

	// What the steps do.
	{Rule: "Valid is asked, not only the context", File: "transactions.go",
		Old: "	valid := t.term.Valid()\n", New: "	valid := true\n",
		Guard: "TestTermThatEndsDuringItsInitBeginsNoWork", Want: "in chain but got nil"},
	{Rule: "the context is asked, not only Valid", File: "transactions.go",
		Old: "	ended := ctx.Err()\n", New: "	var ended error\n",
		Guard: "TestCauseOfTheContextIsReturned/ask", Want: "Target error should be in err chain|Expected error"},
	{Rule: "a client that failed is closed before the next", File: "transactions.go",
		Old: "	t.close()\n	select", New: "	select",
		Guard: "TestEachAttemptChecksTheTermAndOpensAClient", Want: "clients that were not closed"},
	{Rule: "an attempt to initialise has a time limit", File: "transactions.go",
		Old: "context.WithTimeout(ctx, t.patience)", New: "context.WithTimeout(ctx, 100*t.patience)",
		Guard: "TestEachAttemptMayTakeTwiceAsLongAsTheOneBefore", Want: "Max difference"},
	{Rule: "an error of the client makes its producer unusable", File: "producer.go",
		Old: "			p.err = refused(at, err)\n			return p.err\n", New: "			p.at = begin\n			return refused(at, err)\n",
		Guard: "TestRefusedProducerIsReplaced/.*", Want: "the client is used after a refusal"},
	{Rule: "a refusal wraps ErrRefused, so that another producer is opened", File: "producer.go",
		Old: `	return fmt.Errorf("%w: %s: %w", ErrRefused, doing, err)`, New: `	return fmt.Errorf("%s: %w", doing, err)`,
		Guard: "TestRefusedProducerIsReplaced/.*", Want: "ErrorIs|Target error|target"},
	{Rule: "each role has its own transactional.id", File: "producer.go",
		Old: `"neli/" + group + "/" + strconv.Itoa(role)`, New: `"neli/" + group + "/" + strconv.Itoa(role*0)`,
		Guard: "ExampleTransactionalID", Want: "neli/invoicing/0"},

	// The filter.
	{Rule: "a lower token is dropped", File: "filter.go",
		Old: "known && token < most {", New: "known && token < most && token < 0 {",
		Guard: "TestFilterModel", Want: "a reader takes a former leader's record that the new one has not seen"},
	{Rule: "an equal token is admitted", File: "filter.go",
		Old: "known && token < most {", New: "known && token <= most {",
		Guard: "TestFilterModel", Want: "the rightful leader's record is lost"},
	{Rule: "tokens are compared within one partition", File: "filter.go",
		Old: "return place{topic, partition}", New: "return place{topic, 0}",
		Guard: "TestFilterModel", Want: "a reader takes a former leader's record that the new one has not seen"},
	{Rule: "tokens are compared within one role", File: "header.go",
		Old: "s := (source{string(fields[2]), role});", New: "s := (source{string(fields[2]), 0});",
		Guard: "TestFilterComparesTokensOfOneRoleInOnePartition", Want: "another role|must be"},
	{Rule: "a group name that is not UTF-8 is refused", File: "header.go",
		Old: "utf8.Valid(fields[2])", New: "(true || utf8.Valid(nil))",
		Guard: "TestMalformedHeadersAreErrors", Want: "Should be false"},
	{Rule: "a higher token raises the maximum", File: "filter.go",
		Old: "	f.raise(at, who, token)\n	return true, nil", New: "	return true, nil",
		Guard: "TestFilterModel", Want: "a reader takes a former leader's record that the new one has not seen"},
	{Rule: "Restore brings back the maximum tokens", File: "filter.go",
		Old: "		f.raise(at, source{e.Group, e.Role}, e.Token)\n", New: "		_ = e\n",
		Guard: "TestFilterModel", Want: "a reader takes a former leader's record that the new one has not seen"},

	// SQL, as far as it does not depend on a server.
	{Rule: "a claim that changes no row is stale", File: "postgres.go",
		Old: "	case rows == 0:\n", New: "	case rows < 0:\n",
		Guard: "TestSQL/PostgreSQL", Want: "in chain but got nil"},
	{Rule: "a hold is stale once a later term has claimed", File: "postgres.go",
		Old: "		return staleIn(ctx, tx, \"hold\", key, token)\n	}\n	if err != nil {", New: "		return nil\n	}\n	if err != nil {",
		Guard: "TestSQL/PostgreSQL", Want: "An error is expected"},
	{Rule: "a hold before its own claim's commit is not stale", File: "sql.go",
		Old: "	case stored == token:\n", New: "	case stored == token && false:\n",
		Guard: "TestHoldBeforeItsOwnClaimIsNotStale", Want: "does not contain"},
	{Rule: "MySQL compares tokens", File: "mysql.go",
		Old: "	case stored == token:\n", New: "	case stored != 0:\n",
		Guard: "TestSQL/MySQL", Want: "in chain but got nil"},
	{Rule: "a long key is refused", File: "sql.go",
		Old: `key == "" || len(key) > maxKey`, New: `key == ""`,
		Guard: "TestSQL/.*", Want: "An error is expected"},
}

func TestRulesAreGuarded(t *testing.T) { mutation.Run(t, rules) }
