package neli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Mode says how many leaders a role may have.
type Mode int

const (
	// Exclusive: at most one leader at every instant, with a fencing token. A
	// failed leader is missed for about HeartbeatTimeout. (fast NELI, with the
	// lease in the log)
	Exclusive Mode = iota
	// NonExclusive: at least one leader; two may overlap while leadership moves.
	// (NELI)
	NonExclusive
)

// String returns "exclusive" or "non-exclusive".
func (m Mode) String() string { return nameOf(int(m), "exclusive", "non-exclusive") }

// Nomination says who may claim a role in exclusive mode.
type Nomination int

const (
	// Open: any process. No consumer group at all; a crashed leader is replaced
	// HeartbeatTimeout after its last beat. The members share the roles out among
	// themselves, by Priority or Preference if there is one, and move them while their holders
	// live unless Config.DisableRebalance is set.
	Open Nomination = iota
	// Assigned: the process to which the consumer group assigned the role's
	// partition, with all roles there that it knows of. The group spreads partitions
	// over its members; a crashed leader is replaced when its session has timed out.
	Assigned
)

// String returns "open" or "assigned".
func (n Nomination) String() string { return nameOf(int(n), "open", "assigned") }

// String returns "live", "closing", "closed" or "failed".
func (s State) String() string { return nameOf(int(s), "live", "closing", "closed", "failed") }

func nameOf(i int, names ...string) string {
	if i < 0 || i >= len(names) {
		return strconv.Itoa(i)
	}
	return names[i]
}

// textOf is nameOf for an encoder, which takes no number.
func textOf(what string, i int, names ...string) ([]byte, error) {
	if i < 0 || i >= len(names) {
		return nil, fmt.Errorf("neli: %s: %d is none", what, i)
	}
	return []byte(names[i]), nil
}

// ofText is the inverse of textOf.
func ofText[E ~int](e *E, what string, b []byte, names ...string) error {
	i := slices.Index(names, string(b))
	if i < 0 {
		return fmt.Errorf("neli: %s: %q: must be one of %s", what, b, strings.Join(names, ", "))
	}
	*e = E(i)
	return nil
}
