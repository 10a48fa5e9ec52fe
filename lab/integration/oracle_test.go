package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goneli/neli/lab/witness"
	"github.com/stretchr/testify/assert"
)

// This file compares a member's events with its terms, which package witness does not do. TestOracleEvents gives it forged
// events that it must reject.

// told is one event that a member's application received.
type told struct {
	at    time.Duration
	what  string // acquired, revoked or fenced
	token int64
}

// eventFaults checks one member's events of one partition, in order, against its terms of a role there. It expects acquired,
// then exactly one of revoked and fenced, then acquired with a greater token. A member must not lead with a token before the
// token's acquired. In non-exclusive mode all tokens are −1, and only the order counts.
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

// An oracle that never objects proves nothing. These are forged events that it must reject, next to similar ones that it
// must accept. Times are in milliseconds.

const forgedTick = time.Millisecond

// at returns the window of a sample that took a millisecond.
func at(ms int) witness.Window {
	return witness.Window{Before: time.Duration(ms) * forgedTick, After: time.Duration(ms+1) * forgedTick}
}

// forged returns a term that was sampled from one time to another.
func forged(member string, token int64, from, to int) witness.Term {
	return witness.Term{Member: member, Token: token, First: at(from), Last: at(to)}
}

func TestOracleEvents(t *testing.T) {
	acquired, revoked, fenced := "acquired", "revoked", "fenced"
	for _, c := range []struct {
		name   string
		events []told
		terms  []witness.Term
		want   string
	}{
		{"nothing", nil, nil, ""},
		{"terms in order", []told{{0, acquired, 3}, {9, fenced, 3}, {20, acquired, 8}, {30, revoked, 8}},
			[]witness.Term{forged("a", 3, 1, 8)}, ""},
		{"without tokens", []told{{0, acquired, -1}, {9, fenced, -1}, {20, acquired, -1}}, nil, ""},
		{"leads again without having been fenced", []told{{0, acquired, 3}, {20, acquired, 8}}, nil, "neither revoked nor fenced"},
		{"fenced twice", []told{{0, acquired, 3}, {1, fenced, 3}, {2, revoked, 3}}, nil, "without having acquired"},
		{"fenced of another term", []told{{0, acquired, 3}, {1, fenced, 2}}, nil, "in the term of"},
		{"the token goes back", []told{{0, acquired, 3}, {1, fenced, 3}, {2, acquired, 3}}, nil, "after token"},
		{"led and not told", nil, []witness.Term{forged("a", 3, 1, 1008)}, "without having been told"},
		{"led and told later", []told{{9 * time.Second, acquired, 3}}, []witness.Term{forged("a", 3, 1, 8)}, "long before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := list(eventFaults(c.events, c.terms))
			if c.want == "" {
				assert.Empty(t, got)
			} else {
				assert.Contains(t, got, c.want)
			}
		})
	}
}
