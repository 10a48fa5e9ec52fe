package term

import "fmt"

// Reason is why leadership changed.
type Reason int

// The reasons. None is the zero value; no Change has it.
const (
	None Reason = iota
	Elected
	Unassigned
	Closing
	Roles
	Resigned
	Lapsed
	NotPulsed
	Superseded
	Overdue
	LogReset
	Unhealthy
	SteppedDown
	Transferred
	Rebalanced
	Fatal
)

var reasonNames = [...]string{"none", "elected", "unassigned", "closing", "roles_changed", "resigned", "lapsed",
	"not_pulsed", "superseded", "overdue", "log_reset", "unhealthy", "stepped_down", "transferred", "rebalanced", "fatal"}

// String returns the reason as in log lines, metrics and JSON: "not_pulsed", "roles_changed".
func (r Reason) String() string {
	if r < 0 || int(r) >= len(reasonNames) {
		return fmt.Sprintf("Reason(%d)", int(r))
	}
	return reasonNames[r]
}

// MarshalText returns String. It returns an error if r is none of the constants.
func (r Reason) MarshalText() ([]byte, error) {
	if r < 0 || int(r) >= len(reasonNames) {
		return nil, fmt.Errorf("neli: Reason: %d is none", int(r))
	}
	return []byte(reasonNames[r]), nil
}
