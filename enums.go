package neli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// One rule for the names of constants in all packages: a constant begins with the name of its type or
// of its subject (NominationOpen, StatusHeld, StateLive, ReasonClosing; kafka.GroupLost), because
// neli.Open could be a function. Mode's constants alone have no prefix, since neli.Exclusive and
// neli.NonExclusive say all.

// Mode says how many leaders a role may have.
type Mode int

const (
	// Exclusive: at most one leader of a role at every instant, with a fencing token. After a
	// crash the role has no leader for about HeartbeatTimeout. (The paper's fast NELI, with the
	// lease in the log.)
	Exclusive Mode = iota
	// NonExclusive: at least one leader of a role; two may overlap while leadership moves. (The paper's NELI.)
	NonExclusive
)

// String returns "exclusive" or "non-exclusive".
func (m Mode) String() string { return nameOf(int(m), "exclusive", "non-exclusive") }

// Nomination says which processes may claim a role in exclusive mode.
type Nomination int

const (
	// NominationOpen: any process may claim. There is no consumer group; a crashed leader is replaced
	// HeartbeatTimeout after its last beat. The members divide the roles among themselves, by
	// Priority or Preference where these are set, and move roles to balance them unless
	// Config.DisableRebalance is set.
	NominationOpen Nomination = iota
	// NominationAssigned: the process to which the consumer group has assigned the role's partition may
	// claim all roles of that partition. The group spreads partitions over its members; a crashed
	// leader is replaced when its lease and its group session are over.
	NominationAssigned
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

// textOf is nameOf for encoders: unknown values are errors.
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
