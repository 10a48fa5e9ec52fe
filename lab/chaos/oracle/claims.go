package oracle

import (
	"fmt"

	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/witness"
)

// ClaimFaults checks that each token is the offset of a valid claim, by the member that leads with it. Claims that may
// have been deleted are left out.
func ClaimFaults(log history.ElectionLog, terms []witness.Term) []string {
	type place struct {
		role   int
		offset int64
	}
	claims := map[place]string{}
	for _, c := range log.Claims {
		claims[place{c.Role, c.Offset}] = c.Member
	}
	var faults []string
	for _, t := range terms {
		by, is := claims[place{t.Role, t.Token}]
		switch {
		case t.Role < len(log.From) && t.Token < log.From[t.Role]:
		case !is:
			faults = append(faults, fmt.Sprintf("role %d: %v, and there is no such valid claim in the log", t.Role, t))
		case by != t.Member:
			faults = append(faults, fmt.Sprintf("role %d: %v, and in the log that is a claim of %s", t.Role, t, by))
		}
	}
	return faults
}
