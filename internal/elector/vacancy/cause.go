package vacancy

// Cause is how this process got a role.
type Cause int

const (
	Claimed     Cause = iota // it was vacant, or its holder left
	Rebalanced               // its holder handed it over for balance
	Transferred              // its holder transferred it: balance does not move it
)
