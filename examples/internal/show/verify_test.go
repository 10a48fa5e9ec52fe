//go:build unix

package show

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// looks are instants at which a member found itself leading role 0; each look
// takes one nanosecond.
type looks struct {
	member string
	token  int64
	at     []time.Duration
}

func historyOf(all ...looks) *history {
	h := &history{}
	for _, l := range all {
		for _, at := range l.at {
			h.add(l.member, Sighting{Token: l.token, Before: at, After: at + 1})
		}
	}
	return h
}

func TestViolations(t *testing.T) {
	for name, c := range map[string]struct {
		looks []looks
		found []string
	}{
		"one after the other": {
			[]looks{{"a", 1, []time.Duration{10, 20, 30}}, {"b", 2, []time.Duration{40, 50}}}, nil,
		},
		"looks that touch prove nothing": {
			[]looks{{"a", 1, []time.Duration{10, 20}}, {"b", 2, []time.Duration{20, 30}}}, nil,
		},
		"two at once": {
			[]looks{{"a", 1, []time.Duration{10, 30}}, {"b", 2, []time.Duration{20, 40}}},
			[]string{"role 0: a with token 1 and b with token 2 led at the same time"},
		},
		"a single look within another's term": {
			[]looks{{"a", 1, []time.Duration{10, 30}}, {"b", 2, []time.Duration{20}}},
			[]string{"role 0: a with token 1 and b with token 2 led at the same time"},
		},
		"woken, and still believing": {
			[]looks{{"a", 1, []time.Duration{10, 20, 60}}, {"b", 2, []time.Duration{40, 50}}},
			[]string{"role 0: a with token 1 and b with token 2 led at the same time"},
		},
		"a token that goes back": {
			[]looks{{"a", 5, []time.Duration{10, 20}}, {"b", 4, []time.Duration{30, 40}}},
			[]string{"role 0: b with token 4 led after a with token 5"},
		},
		"a token given twice": {
			[]looks{{"a", 5, []time.Duration{10, 20}}, {"b", 5, []time.Duration{30, 40}}},
			[]string{"role 0: b with token 5 led after a with token 5"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.found, historyOf(c.looks...).violations())
		})
	}
}

func TestHandovers(t *testing.T) {
	h := historyOf(looks{"a", 1, []time.Duration{10, 20}}, looks{"b", 2, []time.Duration{50, 60}})
	require.Equal(t, []handover{{
		from: term{member: "a", token: 1, from: 11, to: 20},
		to:   term{member: "b", token: 2, from: 51, to: 60},
		gap:  31,
	}}, h.handovers())
}

func TestConclusion(t *testing.T) {
	look := func(member string, token int64, ms int) (string, Report) {
		at := time.Duration(ms) * time.Millisecond
		return member, Report{At: at, Led: []Sighting{{Token: token, Before: at, After: at + 1}}}
	}
	var out strings.Builder
	w := NewWatch(&out, 0, 12)
	w.Heard(look("a", 1, 10))
	w.Heard(look("a", 1, 20))
	w.Heard(look("b", 2, 50))
	require.NoError(t, w.Conclude([]Step{{"a killed", 25 * time.Millisecond}}))
	require.Regexp(t, `a killed +0 +a #1 +b #2 +25ms +30ms`, out.String())
	require.Contains(t, out.String(), "Overlaps: none")

	w.Heard(look("a", 1, 60))
	require.ErrorContains(t, w.Conclude(nil), "role 0: a with token 1 and b with token 2 led at the same time")
}
