package integration

import (
	"fmt"
	"strings"
	"time"

	"github.com/goneli/neli/lab/witness"
)

// What package witness does not check: a member's events against its terms. oracle_self_test.go feeds this pure function
// forged events that it must reject.

// told is one event that a member's application received.
type told struct {
	at    time.Duration
	what  string // acquired, revoked or fenced
	token int64
}

// eventFaults checks one member's events of one partition, in order, against its terms of a role there. It expects acquired,
// then exactly one of revoked and fenced, then acquired with a greater token; and no leading with a token before its
// acquired. In non-exclusive mode all tokens are −1, and only the order counts.
func eventFaults(events []told, terms []witness.Term) []string {
	var faults []string
	leads, token := false, int64(-1)
	acquired := map[int64]time.Duration{}
	for _, e := range events {
		switch {
		case e.what == "acquired" && leads:
			faults = append(faults, fmt.Sprintf("acquired token %d while token %d was neither revoked nor fenced", e.token, token))
		case e.what == "acquired" && e.token >= 0 && e.token <= token:
			faults = append(faults, fmt.Sprintf("acquired token %d after token %d", e.token, token))
		case e.what != "acquired" && !leads:
			faults = append(faults, fmt.Sprintf("%s, token %d, without having acquired", e.what, e.token))
		case e.what != "acquired" && e.token != token:
			faults = append(faults, fmt.Sprintf("%s of token %d in the term of token %d", e.what, e.token, token))
		}
		if leads = e.what == "acquired"; leads {
			token = e.token
			acquired[token] = e.at
		}
	}
	for _, t := range terms {
		// Leadership turns true when the event is delivered, shortly before the barrier can read the clock. That may take
		// long if the process is suspended or starved there, and never happens if it is killed.
		switch at, ok := acquired[t.Token]; {
		case !ok && t.Proven().Length() > tellingGrace:
			faults = append(faults, fmt.Sprintf("led without having been told: %v", t))
		case ok && t.First.Before < at-tellingGrace:
			faults = append(faults, fmt.Sprintf("led long before it was told of token %d: %v", t.Token, t))
		}
	}
	return faults
}

const tellingGrace = time.Second

func list(faults []string) string { return strings.Join(faults, "\n") }
