package fence

// step is a step of a term on its way to a committed transaction. The order of the steps is the
// rule that keeps former leaders out. Transactions and Producer take only the steps that after
// returns, and so does the model in this package's tests.
type step int8

const (
	ask        step = iota // ask whether the term lasts, before each attempt to initialise
	initialise             // open a new client and initialise it, which fences all earlier ones
	check                  // ask again, now that the attempt has succeeded
	begin                  // the work has begun: begin its next transaction
	produce                // write the records, and wait for their acknowledgements
	commit
	stop // for good
)

// after returns the step that follows s. ok says whether s succeeded; if s asked whether the term
// lasts, ok is the answer.
//
// A term that is over must not initialise, because its attempt would abort its successor's open
// transaction. The term may also end during the attempt, so it asks once more: otherwise a
// former leader that was suspended during the attempt would fence its successor, and go on to
// write. After any failure the state of the transaction is unknown, so it is neither aborted nor
// tried again with the same client: clients report success after some failures.
func after(s step, ok bool) step {
	switch s {
	case ask:
		if !ok {
			return stop
		}
		return initialise
	case initialise:
		if !ok {
			return ask
		}
		return check
	case check:
		if !ok {
			return stop
		}
		return begin
	case begin, produce, commit:
		if !ok {
			return ask
		}
		if s == commit {
			return begin
		}
		return s + 1
	case stop:
	}
	return stop
}
