package fence

// step is what a term does next on its way to a committed transaction. The order of the
// steps is the rule that keeps former leaders out; Transactions and Producer take no step
// but by after, and the model in this package's tests takes the same ones.
type step int8

const (
	ask        step = iota // ask whether the term lasts, before each attempt to initialise
	initialise             // open a new client and initialise it, which fences all earlier ones
	check                  // ask again, now that the attempt has succeeded
	begin                  // the work is under way: its next transaction begins
	produce                // write the records, and hear of each of them
	commit
	stop // for good
)

// after returns the step that follows s; ok says whether s succeeded, or whether the term
// lasts if s asked that.
//
// A term that is over must not initialise: its attempt would abort the transaction that
// its successor has open. It may have ended during the attempt, so it is asked once more:
// otherwise a former leader that was suspended on the way fences its successor, and goes on
// to write. After any failure nothing is known of the transaction, so it is neither aborted
// nor tried again with the same client: clients report success after some failures.
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
