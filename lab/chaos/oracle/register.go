package oracle

import (
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/chaos/store"
)

// register is what a role's guarded register holds: the lowest token that it still accepts, and the value written last.
type register struct{ least, token, value int64 }

// guarded is the register as a model: a write or a claim is accepted if and only if its token is
// not lower than that of the last one accepted.
//
// A write whose outcome is unknown returns at the end of time. Whenever it takes effect, the model
// decides by its token; if it never took effect, it fits in after everything else.
var guarded = porcupine.Model{
	Init: func() any { return register{least: -1, token: -1} },
	Step: func(state, input, output any) (bool, any) {
		s, asked, got := state.(register), input.(history.Op), output.(history.Op)
		if asked.Kind == history.Read {
			return got.Outcome == history.Unknown || s.token == got.Token && s.value == got.Value, s
		}
		taken := asked.Token >= s.least
		if got.Outcome != history.Unknown && taken != (got.Outcome == history.Accepted) {
			return false, s
		}
		if taken {
			s.least = asked.Token
			if asked.Kind == history.Write {
				s.token, s.value = asked.Token, asked.Value
			}
		}
		return true, s
	},
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(input, output any) string {
		asked, got := input.(history.Op), output.(history.Op)
		if asked.Kind == history.Read {
			return fmt.Sprintf("read → %d (token %d)", got.Value, got.Token)
		}
		if asked.Kind == history.Fence {
			return fmt.Sprintf("claim (token %d) → %s", asked.Token, got.Outcome)
		}
		return fmt.Sprintf("write %d (token %d) → %s", asked.Value, asked.Token, got.Outcome)
	},
}

// Linearizable checks the history of one role's register. A check that does not finish in time proves nothing, and is not ok.
func Linearizable(ops []history.Op, role int, within time.Duration) (verdict string, ok bool) {
	var operations []porcupine.Operation
	clients := map[string]int{}
	for _, op := range ops {
		if op.Role != role || op.Outcome == history.NotSent || op.Kind == history.Read && op.Outcome == history.Unknown {
			continue // it had no effect, or proves nothing
		}
		if _, some := clients[op.Member]; !some {
			clients[op.Member] = len(clients)
		}
		operations = append(operations, porcupine.Operation{ClientId: clients[op.Member],
			Input: op, Call: int64(op.Invoked), Output: op, Return: int64(op.Returned)})
	}
	began := time.Now()
	switch porcupine.CheckOperationsTimeout(guarded, operations, within) {
	case porcupine.Ok:
		return fmt.Sprintf("linearizable (%d operations, checked in %v)", len(operations), time.Since(began).Round(time.Millisecond)), true
	case porcupine.Illegal:
		return fmt.Sprintf("not linearizable (%d operations)", len(operations)), false
	default:
		return fmt.Sprintf("undecided after %v (%d operations)", within, len(operations)), false
	}
}

// Settled returns the operations without the writes of unknown outcome that the log does not have. They
// had no effect, and each of them doubles what Linearizable may have to try.
func Settled(ops []history.Op, log []store.Entry) []history.Op {
	logged := map[int64]bool{} // by value, which is unique
	for _, e := range log {
		logged[e.Value] = true
	}
	return slices.DeleteFunc(slices.Clone(ops), func(op history.Op) bool {
		return op.Kind == history.Write && op.Outcome == history.Unknown && !logged[op.Value]
	})
}
