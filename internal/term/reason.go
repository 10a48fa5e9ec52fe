package term

import (
	"fmt"
	"strings"
)

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

var reasonNames = [...]string{"none", "elected", "unassigned", "closing", "roles changed", "resigned", "lapsed",
	"not pulsed", "superseded", "overdue", "log reset", "unhealthy", "stepped down", "transferred", "rebalanced", "fatal"}

// String returns the reason in words, for events and log lines.
func (r Reason) String() string {
	if r < 0 || int(r) >= len(reasonNames) {
		return fmt.Sprintf("Reason(%d)", int(r))
	}
	return reasonNames[r]
}

// MarshalText returns the reason in snake_case, as in metrics and JSON: "not_pulsed",
// "roles_changed". It returns an error if r is none of the constants.
func (r Reason) MarshalText() ([]byte, error) {
	if r < 0 || int(r) >= len(reasonNames) {
		return nil, fmt.Errorf("neli: Reason: %d is none", int(r))
	}
	return []byte(strings.ReplaceAll(reasonNames[r], " ", "_")), nil
}
