package franzfence

import (
	"testing"

	"github.com/goneli/neli/internal/mutation"
)

// rules are what Init and Commit keep to besides the rules of package fence.
var rules = []mutation.Mutant{
	{Rule: "a commit does not wait longer than its context", File: "client.go",
		Old: "		case <-ctx.Done():\n			return context.Cause(ctx)\n", New: "",
		Guard: "TestACommitEndsWithItsContextWhateverTheClientCannotKnow", Want: "it waits for the client"},
	{Rule: "records that went to two transactions are not committed", File: "client.go",
		Old: "			return errParted\n", New: "			_ = errParted\n",
		Guard: "TestATransactionThatTheClientHasBegunAnewIsNotCommitted", Want: "in chain"},
	{Rule: "an Init is ended before its request is repeated", File: "client.go",
		Old: "		c.enough()\n", New: "		go c.enough()\n",
		Guard: "TestAnInitSendsNoMoreThanFifteenRequests", Want: "actual +: int32"},
}

func TestRulesAreGuarded(t *testing.T) { mutation.Run(t, rules) }
