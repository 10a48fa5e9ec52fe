package franzfence

import (
	"testing"

	"github.com/goneli/neli/internal/mutation"
)

// rules are the rules of Init and Commit, besides those of package fence.
var rules = []mutation.Mutant{
	{Rule: "a commit does not wait longer than its context", File: "client.go",
		Old: "		case <-ctx.Done():\n			return context.Cause(ctx)\n", New: "",
		Guard: "TestCommitEndsWithItsContextIfTheOutcomeIsUnknown", Want: "it waits for the client"},
	{Rule: "records that the client wrote to two transactions are not committed", File: "client.go",
		Old: "			return errParted\n", New: "			_ = errParted\n",
		Guard: "TestSplitTransactionIsNotCommitted", Want: "in chain"},
	{Rule: "an Init ends before its request is repeated too often", File: "client.go",
		Old: "		c.enough()\n", New: "		go c.enough()\n",
		Guard: "TestInitSendsNoMoreThanFifteenRequests", Want: "actual +: int32"},
}

func TestRulesAreGuarded(t *testing.T) { mutation.Run(t, rules) }
