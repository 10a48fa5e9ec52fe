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

func (m Mode) String() string { return nameOf(int(m), "exclusive", "non-exclusive") }

// MarshalText returns "exclusive" or "non_exclusive", as metrics and JSON have it.
func (m Mode) MarshalText() ([]byte, error) {
	return textOf("Mode", int(m), "exclusive", "non_exclusive")
}

// UnmarshalText reads what MarshalText wrote.
func (m *Mode) UnmarshalText(b []byte) error {
	return ofText(m, "Mode", b, "exclusive", "non_exclusive")
}

// Nomination says who may claim a role in exclusive mode.
type Nomination int

const (
	// Open: any process. No consumer group at all; a crashed leader is replaced
	// HeartbeatTimeout after its last beat. The members share the roles out among
	// themselves, by Priority or Preference if there is one: see Rebalance.
	Open Nomination = iota
	// Assigned: the process to which the consumer group assigned the role's
	// partition, with all roles there that it knows of. The group spreads partitions
	// over its members; a crashed leader is replaced when its session has timed out.
	Assigned
)

func (n Nomination) String() string { return nameOf(int(n), "open", "assigned") }

// MarshalText returns "open" or "assigned".
func (n Nomination) MarshalText() ([]byte, error) {
	return textOf("Nomination", int(n), "open", "assigned")
}

// UnmarshalText reads what MarshalText wrote.
func (n *Nomination) UnmarshalText(b []byte) error {
	return ofText(n, "Nomination", b, "open", "assigned")
}

// Rebalance says whether leaders make room for others.
type Rebalance int

const (
	// RebalanceOn: a leader that has more roles than its share hands over what is too
	// much, in batches, and any role for which a preferred member has come. It makes
	// room only for members that have been there, healthy, for 15 s, and no role that
	// was moved moves again within 30 s. Up to a tenth of difference stays.
	RebalanceOn Rebalance = iota
	// RebalanceOff: a leader stays as long as it lives and is healthy.
	RebalanceOff
)

func (r Rebalance) String() string { return nameOf(int(r), "on", "off") }

// MarshalText returns "on" or "off".
func (r Rebalance) MarshalText() ([]byte, error) { return textOf("Rebalance", int(r), "on", "off") }

// UnmarshalText reads what MarshalText wrote.
func (r *Rebalance) UnmarshalText(b []byte) error { return ofText(r, "Rebalance", b, "on", "off") }

var stateNames = [...]string{"live", "closing", "closed", "failed"}

func (s State) String() string { return nameOf(int(s), stateNames[:]...) }

// MarshalText returns "live", "closing", "closed" or "failed".
func (s State) MarshalText() ([]byte, error) { return textOf("State", int(s), stateNames[:]...) }

// UnmarshalText reads what MarshalText wrote.
func (s *State) UnmarshalText(b []byte) error { return ofText(s, "State", b, stateNames[:]...) }

func nameOf(i int, names ...string) string {
	if i < 0 || i >= len(names) {
		return strconv.Itoa(i)
	}
	return names[i]
}

// textOf is nameOf for who takes no number.
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
