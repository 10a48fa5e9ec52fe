package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// An oracle that never objects proves nothing: these are forged samples, in
// milliseconds, that it must reject, each beside the nearest ones that it must not.

const forgedTick = time.Millisecond

// at is a sample that took a millisecond.
func at(ms int) window {
	return window{time.Duration(ms) * forgedTick, time.Duration(ms+1) * forgedTick}
}

// forged is a term sampled from one time to another.
func forged(member string, token int64, from, to int) term {
	return term{member: member, token: token, first: at(from), last: at(to)}
}

func TestOracleExclusive(t *testing.T) {
	for _, c := range []struct {
		name  string
		terms []term
		want  string // "" to accept
	}{
		{"nobody", nil, ""},
		{"one after the other", []term{forged("a", 3, 0, 10), forged("b", 7, 12, 20)}, ""},
		{"the order in which they are listed does not matter", []term{forged("b", 7, 12, 20), forged("a", 3, 0, 10)}, ""},
		{"samples that touch prove nothing", []term{forged("a", 3, 0, 10), forged("b", 7, 10, 20)}, ""},
		{"overlap", []term{forged("a", 3, 0, 12), forged("b", 7, 10, 20)}, "two leaders"},
		{"overlap, listed the other way round", []term{forged("b", 7, 10, 20), forged("a", 3, 0, 12)}, "two leaders"},
		{"one within the other", []term{forged("a", 3, 0, 30), forged("b", 7, 10, 20)}, "two leaders"},
		{"a single sample within", []term{forged("a", 3, 0, 30), forged("b", 7, 10, 10)}, "two leaders"},
		{"a woken process that says so once", []term{
			{member: "a", token: 3, first: at(0), last: at(2000)}, forged("b", 7, 1500, 3000)}, "two leaders"},
		{"a single sample in doubt", []term{forged("a", 3, 0, 10), forged("b", 7, 10, 10)}, ""},
		{"a sample that hung across the change", []term{forged("a", 3, 0, 10),
			{member: "b", token: 7, first: window{5 * forgedTick, 15 * forgedTick}, last: at(20)}}, ""},
		{"one token of two", []term{forged("a", 3, 0, 10), forged("b", 3, 12, 20)}, "one token, two members"},
		{"the token goes back", []term{forged("a", 7, 0, 10), forged("b", 3, 12, 20)}, "no greater token"},
		{"the member's own token goes back", []term{forged("a", 7, 0, 10), forged("a", 3, 12, 20)}, "no greater token"},
		{"the third overlaps the first", []term{forged("a", 1, 0, 50), forged("b", 2, 52, 60), forged("c", 3, 40, 45)}, "two leaders"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := list(exclusiveFaults(c.terms))
			if c.want == "" {
				assert.Empty(t, got)
			} else {
				assert.Contains(t, got, c.want)
			}
		})
	}
}

func TestOracleJoinsRunsOfOneTerm(t *testing.T) {
	// Suspended in between, or even with a lie of "no": one term all the same.
	runs := []run{
		{answer: answerNo, first: at(0), last: at(5)},
		{answer: 3, first: at(6), last: at(10)},
		{answer: answerNo, first: at(11), last: at(12)},
		{answer: 3, first: at(500), last: at(510)},
		{answer: 9, first: at(600), last: at(610)},
	}
	assert.Equal(t, []term{forged("a", 3, 6, 510), forged("a", 9, 600, 610)}, termsOf("a", runs))
}

func TestOracleVacancies(t *testing.T) {
	terms := []term{forged("b", 7, 1500, 3000), forged("a", 3, 0, 1000)}
	vs := vacancies(terms)
	assert.Len(t, vs, 1)
	assert.Equal(t, 501*forgedTick, vs[0].length(), "from the first reading of one sample to the second of the other")
	assert.Empty(t, tooLong(vs, 501*forgedTick))
	assert.Len(t, tooLong(vs, 500*forgedTick), 1)
	assert.Zero(t, span{5, 3}.length())
}

// alive is a member that answers no until from, yes until to, and then no until
// the end of sampling at 1000.
func alive(name string, from, to int) life {
	return life{member: name, runs: []run{
		{answer: answerNo, first: at(0), last: at(from - 1)},
		{answer: answerNoToken, first: at(from), last: at(to)},
		{answer: answerNo, first: at(to + 1), last: at(1000)},
	}}
}

func TestOracleNonExclusive(t *testing.T) {
	all := span{100 * forgedTick, 900 * forgedTick}
	dead := func(l life, ms int) life {
		l.died = time.Duration(ms) * forgedTick
		l.runs = l.runs[:2]
		return l
	}
	for _, c := range []struct {
		name  string
		lives []life
		want  []span
	}{
		{"one leads all the time", []life{alive("a", 50, 950)}, nil},
		{"they overlap", []life{alive("a", 50, 500), alive("b", 400, 950)}, nil},
		{"they touch", []life{alive("a", 50, 500), alive("b", 501, 950)}, nil},
		{"a gap of one sample is in doubt", []life{alive("a", 50, 500), alive("b", 502, 950)}, nil},
		{"a gap", []life{alive("a", 50, 500), alive("b", 510, 950)}, []span{{502 * forgedTick, 509 * forgedTick}}},
		{"a gap that a third does not fill", []life{alive("a", 50, 500), alive("b", 510, 950), alive("c", 511, 520)},
			[]span{{502 * forgedTick, 509 * forgedTick}}},
		{"a gap that a third fills", []life{alive("a", 50, 500), alive("b", 510, 950), alive("c", 480, 520)}, nil},
		{"dead, and nobody follows in time", []life{dead(alive("a", 50, 500), 505), alive("b", 700, 950)},
			[]span{{505 * forgedTick, 699 * forgedTick}}},
		{"it died somewhere in here, and might have led", []life{dead(alive("a", 50, 500), 700), alive("b", 700, 950)}, nil},
		{"not yet born", []life{alive("a", 50, 500), {member: "b", born: 600 * forgedTick, runs: []run{
			{answer: answerNoToken, first: at(650), last: at(1000)}}}}, []span{{502 * forgedTick, 600 * forgedTick}}},
		{"nobody samples: in doubt", []life{alive("a", 50, 500), {member: "b", runs: []run{
			{answer: answerNo, first: at(0), last: at(300)}, {answer: answerNoToken, first: at(800), last: at(1000)}}}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, uncovered(c.lives, all))
		})
	}
}

func TestOracleUnproven(t *testing.T) {
	all := span{100 * forgedTick, 900 * forgedTick}
	lives := []life{alive("a", 50, 500), alive("b", 510, 890)}
	assert.Equal(t, []span{{500 * forgedTick, 511 * forgedTick}, {890 * forgedTick, 900 * forgedTick}}, unproven(lives, all))
	assert.Equal(t, 11*forgedTick, longest(unproven(lives, all)))
	assert.Equal(t, []span{all}, unproven(nil, all))
	first, ok := firstLed(lives)
	assert.True(t, ok)
	assert.Equal(t, 51*forgedTick, first)
	_, ok = firstLed(nil)
	assert.False(t, ok)
}

func TestOracleEvents(t *testing.T) {
	acquired, revoked, fenced := "acquired", "revoked", "fenced"
	for _, c := range []struct {
		name   string
		events []told
		terms  []term
		want   string
	}{
		{"nothing", nil, nil, ""},
		{"terms in order", []told{{0, acquired, 3}, {9, fenced, 3}, {20, acquired, 8}, {30, revoked, 8}},
			[]term{forged("a", 3, 1, 8)}, ""},
		{"without tokens", []told{{0, acquired, -1}, {9, fenced, -1}, {20, acquired, -1}}, nil, ""},
		{"leads again without having been fenced", []told{{0, acquired, 3}, {20, acquired, 8}}, nil, "neither revoked nor fenced"},
		{"fenced twice", []told{{0, acquired, 3}, {1, fenced, 3}, {2, revoked, 3}}, nil, "without having acquired"},
		{"fenced of another term", []told{{0, acquired, 3}, {1, fenced, 2}}, nil, "in the term of"},
		{"the token goes back", []told{{0, acquired, 3}, {1, fenced, 3}, {2, acquired, 3}}, nil, "after token"},
		{"led and not told", nil, []term{forged("a", 3, 1, 1008)}, "without having been told"},
		{"led and told later", []told{{9 * time.Second, acquired, 3}}, []term{forged("a", 3, 1, 8)}, "long before"},
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
