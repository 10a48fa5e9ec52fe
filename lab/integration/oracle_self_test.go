package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goneli/neli/lab/witness"
)

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
