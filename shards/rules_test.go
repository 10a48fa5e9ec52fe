package shards

import (
	"testing"

	"github.com/goneli/neli/internal/mutation"
)

// rules are what keeps the calls for a shard apart, and the tests that notice if one is removed.
var rules = []mutation.Mutant{
	{Rule: "a call waits until Serve or Abandon has returned", File: "machine.go",
		Old: "	case Serving, Draining:\n		switch e {\n", New: "	case Serving, Draining:\n		switch e {\n		case offered:\n			m.state, m.led, m.ended = Preparing, false, false\n			return prepare\n",
		Guard: "TestEventsInAnyOrder", Want: "two calls"},
	{Rule: "a call waits until Prepare has returned", File: "machine.go",
		Old: "	case e == led && !m.ended:\n		m.led = true\n		return adopt\n", New: "	case e == led && !m.ended:\n		m.state, m.led = Serving, true\n		return serve\n",
		Guard: "TestLedWhilePreparing", Want: "serve while prepare is at work"},
	{Rule: "a preparation that was called off before it was ready is not served", File: "machine.go",
		Old: "	case e == ready && m.ended: // for nobody\n", New: "	case false:\n",
		Guard: "TestPrepareThatIgnoresItsContext", Want: "Not equal"},
	{Rule: "a term that waits for Prepare is not called off", File: "machine.go",
		Old: "e == calledOff && !m.led)", New: "e == calledOff)",
		Guard: "TestMachine", Want: "event 4"},
	{Rule: "a shard that another process has led meanwhile is prepared anew", File: "machine.go",
		Old: "(e == calledOff || e == offered) && !m.led", New: "e == calledOff && !m.led",
		Guard: "TestAbandon/offered_again", Want: "Not equal"},
	{Rule: "a prepared shard that this process now leads is not given up", File: "stay.go",
		Old: "!errors.Is(cause, neli.ErrLed)", New: "errors.Is(cause, cause)",
		Guard: "TestAbandon/never_served", Want: "Not equal"},
	{Rule: "a prepared shard that is not served in time is given up", File: "stay.go",
		Old: "func() { st.tell(calledOff, ErrLost) }", New: "func() {}",
		Guard: "TestAbandon/never_served", Want: "Not equal"},
	{Rule: "Prepare waits for the first Run", File: "shards.go",
		Old: "st == nil && changed == nil:", New: "st == nil:",
		Guard: "TestPrepareBeforeRun", Want: "Run has ended"},
	{Rule: "a Prepare that ends its goroutine has failed", File: "stay.go",
		Old: "	err = errGoexit\n", New: "",
		Guard: "TestPrepareThatFails/goexit", Want: "serve of what is not prepared"},
	{Rule: "a Prepare that panics has failed", File: "stay.go",
		Old: "			err = fmt.Errorf(\"it panicked: %v\\n%s\", p, debug.Stack())\n", New: "			err = nil\n			_ = fmt.Sprint(debug.Stack())\n",
		Guard: "TestPrepareThatFails/panic", Want: "serve of what is not prepared"},
	{Rule: "the end of a term ends its preparation", File: "run.go",
		Old: "		mine.tell(over, r.why(context.Cause(ctx)))\n", New: "",
		Guard: "TestPrepareEndsWithTheTerm", Want: "in chain but got nil"},
	{Rule: "the end of Run gives up what is prepared", File: "run.go",
		Old: "		st.tell(calledOff, ErrClosing)\n", New: "		_ = st\n",
		Guard: "TestAbandon/closing", Want: "Not equal"},
	{Rule: "Run waits for Prepare and Abandon", File: "run.go",
		Old: "	r.calls.Wait()\n", New: "",
		Guard: "TestAbandon/closing", Want: `actual  : 4`},
	{Rule: "at most MaxPrepares Prepares run at once", File: "run.go",
		Old: "max(n.Config().MaxPrepares, 1)", New: "max(n.Config().MaxPrepares, 100)",
		Guard: "TestFewPreparesAtOnce", Want: "is not greater than or equal to"},
	{Rule: "Err of Serve's context asks the clock", File: "stay.go",
		Old: "	c.look()\n	return c.Context.Err()\n", New: "	return c.Context.Err()\n",
		Guard: "TestServeContextAsksTheClock/Err", Want: "Should be true"},
	{Rule: "Done of Serve's context asks the clock", File: "stay.go",
		Old: "	c.look()\n	return c.Context.Done()\n", New: "	return c.Context.Done()\n",
		Guard: "TestServeContextAsksTheClock/Done", Want: "Should be true"},
	{Rule: "a Serve that must stop at once gets ErrLost", File: "run.go",
		Old: "		of = ErrLost\n", New: "",
		Guard: "TestCauses/loss", Want: "moves to another process: neli: leadership fenced"},
}

func TestRulesAreGuarded(t *testing.T) { mutation.Run(t, rules) }
