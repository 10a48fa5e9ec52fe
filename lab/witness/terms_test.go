package witness

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// An oracle that never objects proves nothing. These are forged samples, in milliseconds, that it must reject, next to
// similar ones that it must accept.

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// at returns the window of a sample that took a millisecond.
func at(n int) Window { return Window{ms(n), ms(n + 1)} }

// forged returns a term that was sampled from one time to another.
func forged(member string, token int64, from, to int) Term {
	return Term{Member: member, Token: token, First: at(from), Last: at(to)}
}

func TestTermFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		terms []Term
		want  string // "" to accept
	}{
		{"nobody", nil, ""},
		{"one after the other", []Term{forged("a", 3, 0, 10), forged("b", 7, 12, 20)}, ""},
		{"the order in which they are listed does not matter", []Term{forged("b", 7, 12, 20), forged("a", 3, 0, 10)}, ""},
		{"samples that touch prove nothing", []Term{forged("a", 3, 0, 10), forged("b", 7, 10, 20)}, ""},
		{"overlap", []Term{forged("a", 3, 0, 12), forged("b", 7, 10, 20)}, "two leaders"},
		{"overlap, listed the other way round", []Term{forged("b", 7, 10, 20), forged("a", 3, 0, 12)}, "two leaders"},
		{"one within the other", []Term{forged("a", 3, 0, 30), forged("b", 7, 10, 20)}, "two leaders"},
		{"a single sample within", []Term{forged("a", 3, 0, 30), forged("b", 7, 10, 10)}, "two leaders"},
		{"a woken process that says so once", []Term{forged("a", 3, 0, 2000), forged("b", 7, 1500, 3000)}, "two leaders"},
		{"a single sample in doubt", []Term{forged("a", 3, 0, 10), forged("b", 7, 10, 10)}, ""},
		{"a sample that hung across the change", []Term{forged("a", 3, 0, 10),
			{Member: "b", Token: 7, First: Window{ms(5), ms(15)}, Last: at(20)}}, ""},
		{"one token of two", []Term{forged("a", 3, 0, 10), forged("b", 3, 12, 20)}, "one token, two members"},
		{"the token goes back", []Term{forged("a", 7, 0, 10), forged("b", 3, 12, 20)}, "no greater token"},
		{"the member's own token goes back", []Term{forged("a", 7, 0, 10), forged("a", 3, 12, 20)}, "no greater token"},
		{"the third overlaps the first", []Term{forged("a", 1, 0, 50), forged("b", 2, 52, 60), forged("c", 3, 40, 45)}, "two leaders"},
		{"the third overlaps the first, the second was before", []Term{forged("a", 3, 30, 50), forged("b", 1, 0, 10), forged("c", 4, 40, 60)}, "two leaders"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := strings.Join(TermFaults(c.terms), "\n")
			if c.want == "" {
				assert.Empty(t, got)
			} else {
				assert.Contains(t, got, c.want)
			}
		})
	}
}

func TestRunsOfOneTermAreJoined(t *testing.T) {
	// A suspension in between, or even a wrong "no", does not make it two terms.
	runs := Runs{
		{Answer: No, First: at(0), Last: at(5)},
		{Answer: 3, First: at(6), Last: at(10)},
		{Answer: No, First: at(11), Last: at(12)},
		{Answer: 3, First: at(500), Last: at(510)},
		{Answer: 9, First: at(600), Last: at(610)},
	}
	assert.Equal(t, []Term{forged("a", 3, 6, 510), forged("a", 9, 600, 610)}, Terms("a", runs))
	assert.Equal(t, Span{ms(7), ms(510)}, Terms("a", runs)[0].Proven())
}

func TestVacancies(t *testing.T) {
	assert.Equal(t, []Span{{ms(1000), ms(1501)}}, Vacancies([]Term{forged("b", 7, 1500, 3000), forged("a", 3, 0, 1000)}),
		"from the first reading of one sample to the second of the other")
	assert.Equal(t, []Span{{ms(10), ms(16)}, {ms(16), ms(21)}}, Vacancies([]Term{forged("a", 3, 0, 10), forged("b", 7, 15, 15), forged("c", 9, 20, 30)}),
		"a single sample ends one")
	assert.Empty(t, Vacancies(nil))
}
