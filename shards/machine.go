package shards

import "fmt"

// State is what a process does for a shard.
type State int8

const (
	Idle      State = iota // nothing
	Preparing              // Prepare has not returned
	Prepared               // Prepare has returned nil, and neither Serve nor Abandon has been called yet
	Serving                // Serve is at work
	Draining               // Serve's context has ended, and Serve has not returned; or Abandon is at work
)

var states = [...]string{"idle", "preparing", "prepared", "serving", "draining"}

// String returns the state's name in lower case.
func (s State) String() string {
	if s < 0 || int(s) >= len(states) {
		return fmt.Sprintf("State(%d)", int8(s))
	}
	return states[s]
}

// event is something that happens to a shard.
type event int8

const (
	offered   event = iota // another process leads it, and wants this one to prepare it
	led                    // this process leads it, and asks what to do
	ready                  // Prepare has returned nil
	failed                 // Prepare has ended in another way
	calledOff              // this process is not to lead it after all
	over                   // the term for which it is prepared or served ends
	left                   // Serve or Abandon has returned
)

// action is what follows from an event.
type action int8

const (
	nothing action = iota
	wait           // ask again when the state has changed
	adopt          // wait, too; the Prepare at work is for the asking term from now on
	prepare        // call Prepare
	cancel         // end the context of Prepare
	serve          // call Serve
	abandon        // call Abandon
)

// machine is the state machine of one shard. It knows nothing of goroutines and time.
type machine struct {
	state State
	led   bool // a term waits for the preparation, or is served: calledOff has no effect, but over has
	ended bool // the context of the Prepare at work has ended
}

// on takes an event, and returns what to do about it.
func (m *machine) on(e event) action {
	switch m.state {
	case Idle:
		if e == offered || e == led {
			m.state, m.led, m.ended = Preparing, e == led, false
			return prepare
		}
	case Preparing:
		return m.preparing(e)
	case Prepared:
		switch {
		case e == led:
			m.state, m.led = Serving, true
			return serve
		case e == over, (e == calledOff || e == offered) && !m.led: // offered again: another process has led it meanwhile
			m.state = Draining
			return abandon
		}
	case Serving, Draining:
		switch e {
		case over:
			m.state = Draining
		case left:
			m.state = Idle
		}
	}
	if e == offered || e == led {
		return wait
	}
	return nothing
}

// preparing does what on does, while Prepare is at work.
func (m *machine) preparing(e event) action {
	switch {
	case e == led && !m.ended:
		m.led = true
		return adopt
	case e == led, e == offered:
		return wait
	case e == failed:
		m.state = Idle
	case e == ready && m.ended: // for nobody
		m.state = Draining
		return abandon
	case e == ready:
		m.state = Prepared
	case !m.ended && (e == over || e == calledOff && !m.led):
		m.ended = true
		return cancel
	}
	return nothing
}
