package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goneli/neli/lab/witness"
)

// An oracle that never objects proves nothing. These are forged samples, in milliseconds, that it must reject, next to
// similar ones that it must accept. Package witness has more of them.

const forgedTick = time.Millisecond

// at returns the window of a sample that took a millisecond.
func at(ms int) witness.Window {
	return witness.Window{Before: time.Duration(ms) * forgedTick, After: time.Duration(ms+1) * forgedTick}
}

// between returns a span of the clock.
func between(from, to int) witness.Span {
	return witness.Span{From: time.Duration(from) * forgedTick, To: time.Duration(to) * forgedTick}
}

// forged returns a term that was sampled from one time to another.
func forged(member string, token int64, from, to int) witness.Term {
	return witness.Term{Member: member, Token: token, First: at(from), Last: at(to)}
}

func TestOracleVacancies(t *testing.T) {
	terms := []witness.Term{forged("b", 7, 1500, 3000), forged("a", 3, 0, 1000)}
	vs := vacancies(terms)
	assert.Len(t, vs, 1)
	assert.Equal(t, 501*forgedTick, vs[0].Length(), "from the first reading of one sample to the second of the other")
	assert.Empty(t, tooLong(vs, 501*forgedTick))
	assert.Len(t, tooLong(vs, 500*forgedTick), 1)
}

// alive returns the life of a member that answers no until from, yes until to, and then no until sampling ends at 1000.
func alive(name string, from, to int) life {
	return life{member: name, died: witness.Never, runs: witness.Runs{
		{Answer: witness.No, First: at(0), Last: at(from - 1)},
		{Answer: witness.NoToken, First: at(from), Last: at(to)},
		{Answer: witness.No, First: at(to + 1), Last: at(1000)},
	}}
}

func TestOracleNonExclusive(t *testing.T) {
	all := between(100, 900)
	dead := func(l life, ms int) life {
		l.died = time.Duration(ms) * forgedTick
		l.runs = l.runs[:2]
		return l
	}
	for _, c := range []struct {
		name  string
		lives []life
		want  []witness.Span
	}{
		{"one leads all the time", []life{alive("a", 50, 950)}, nil},
		{"they overlap", []life{alive("a", 50, 500), alive("b", 400, 950)}, nil},
		{"they touch", []life{alive("a", 50, 500), alive("b", 501, 950)}, nil},
		{"a gap of one sample is in doubt", []life{alive("a", 50, 500), alive("b", 502, 950)}, nil},
		{"a gap", []life{alive("a", 50, 500), alive("b", 510, 950)}, []witness.Span{between(502, 509)}},
		{"a gap that a third does not fill", []life{alive("a", 50, 500), alive("b", 510, 950), alive("c", 511, 520)},
			[]witness.Span{between(502, 509)}},
		{"a gap that a third fills", []life{alive("a", 50, 500), alive("b", 510, 950), alive("c", 480, 520)}, nil},
		{"dead, and nobody follows in time", []life{dead(alive("a", 50, 500), 505), alive("b", 700, 950)},
			[]witness.Span{between(505, 699)}},
		{"it died somewhere in here, and might have led", []life{dead(alive("a", 50, 500), 700), alive("b", 700, 950)}, nil},
		{"not yet born", []life{alive("a", 50, 500), {member: "b", born: 600 * forgedTick, died: witness.Never, runs: witness.Runs{
			{Answer: witness.NoToken, First: at(650), Last: at(1000)}}}}, []witness.Span{between(502, 600)}},
		{"nobody samples: in doubt", []life{alive("a", 50, 500), {member: "b", died: witness.Never, runs: witness.Runs{
			{Answer: witness.No, First: at(0), Last: at(300)}, {Answer: witness.NoToken, First: at(800), Last: at(1000)}}}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, uncovered(c.lives, all))
		})
	}
}

func TestOracleUnproven(t *testing.T) {
	all := between(100, 900)
	lives := []life{alive("a", 50, 500), alive("b", 510, 890)}
	assert.Equal(t, []witness.Span{between(500, 511), between(890, 900)}, unproven(lives, all))
	assert.Equal(t, 11*forgedTick, witness.Longest(unproven(lives, all)))
	assert.Equal(t, []witness.Span{all}, unproven(nil, all))
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
