package witness

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestSpans(t *testing.T) {
	assert.Zero(t, Span{5, 3}.Length())
	assert.True(t, Span{1, 3}.Meets(Span{3, 4}), "closed at both ends")
	assert.False(t, Span{1, 3}.Meets(Span{4, 5}))
	assert.False(t, Span{1, 9}.Meets(Span{5, 3}), "nothing meets an empty one")
	assert.True(t, Span{1, 3}.Contains(Window{1, 3}))
	assert.False(t, Span{1, 3}.Contains(Window{2, 4}), "it may have been taken later")

	assert.Equal(t, []Span{{1, 6}, {8, 9}}, Union([]Span{{8, 9}, {4, 6}, {7, 5}, {1, 4}}))
	assert.Equal(t, []Span{{2, 3}, {5, 6}}, Intersect([]Span{{1, 3}, {5, 8}}, []Span{{2, 6}, {8, 9}}), "and not an instant")
	assert.Equal(t, []Span{{0, 1}, {6, 8}}, Without(Span{0, 8}, []Span{{4, 6}, {1, 4}, {9, 10}}))
	assert.Equal(t, []Span{{0, 8}}, Without(Span{0, 8}, nil))
	assert.Equal(t, []Span{{2, 3}}, Common(Span{0, 9}, []Span{{5, 7}, {1, 3}}, []Span{{2, 6}}, []Span{{0, 5}}))
	assert.EqualValues(t, 4, Total([]Span{{1, 2}, {4, 7}, {9, 3}}))
	assert.EqualValues(t, 3, Longest([]Span{{1, 2}, {4, 7}, {9, 3}}))
}

func TestIdle(t *testing.T) {
	runs := Runs{
		{Answer: No, First: at(10), Last: at(20)},
		{Answer: NoToken, First: at(21), Last: at(30)},
		{Answer: No, First: at(31), Last: at(40)},
	}
	assert.ElementsMatch(t, []Span{{-Never, ms(5)}, {-Never, ms(20)}, {ms(32), ms(40)}, {ms(50), Never}}, runs.Idle(ms(5), ms(50)))
	assert.ElementsMatch(t, []Span{{-Never, ms(5)}, {ms(32), ms(40)}, {ms(50), Never}}, runs[1:].Idle(ms(5), ms(50)), "until its first sample it is in doubt")
}

func TestLed(t *testing.T) {
	runs := Runs{
		{Answer: NoToken, First: at(0), Last: at(10)},
		{Answer: NoToken, First: at(70), Last: at(80)},
		{Answer: No, First: at(81), Last: at(85)},
		{Answer: NoToken, First: at(86), Last: at(90)},
	}
	assert.Equal(t, []Span{{ms(1), ms(10)}, {ms(71), ms(80)}, {ms(87), ms(90)}}, runs.Led(0))
	assert.Equal(t, []Span{{ms(1), ms(80)}, {ms(87), ms(90)}}, runs.Led(ms(61)), "no answer was between the first two")
	assert.Equal(t, runs.Led(0), runs.Led(ms(60)), "for so long nothing proves it")
}

// seen is what is known of a member of a role.
type seen struct {
	died time.Duration
	runs Runs
}

// alive is a member that answers no until from, yes until to, and then no until 1000.
func alive(from, to int) seen {
	return seen{Never, Runs{
		{Answer: No, First: at(0), Last: at(from - 1)},
		{Answer: NoToken, First: at(from), Last: at(to)},
		{Answer: No, First: at(to + 1), Last: at(1000)},
	}}
}

func TestTimesWithoutALeader(t *testing.T) {
	dead := func(s seen, n int) seen { return seen{ms(n), s.runs[:2]} }
	for _, c := range []struct {
		name    string
		members []seen
		want    []Span
	}{
		{"one leads all the time", []seen{alive(50, 950)}, nil},
		{"they overlap", []seen{alive(50, 500), alive(400, 950)}, nil},
		{"they touch", []seen{alive(50, 500), alive(501, 950)}, nil},
		{"a gap of one sample is in doubt", []seen{alive(50, 500), alive(502, 950)}, nil},
		{"a gap", []seen{alive(50, 500), alive(510, 950)}, []Span{{ms(502), ms(509)}}},
		{"a gap that a third does not fill", []seen{alive(50, 500), alive(510, 950), alive(511, 520)}, []Span{{ms(502), ms(509)}}},
		{"a gap that a third fills", []seen{alive(50, 500), alive(510, 950), alive(480, 520)}, nil},
		{"dead, and nobody follows in time", []seen{dead(alive(50, 500), 505), alive(700, 950)}, []Span{{ms(505), ms(699)}}},
		{"it died somewhere in here, and might have led", []seen{dead(alive(50, 500), 700), alive(700, 950)}, nil},
		{"one was never sampled", []seen{alive(50, 500), {died: Never}, alive(510, 950)}, []Span{{ms(502), ms(509)}}},
		{"nobody samples: in doubt", []seen{alive(50, 500), {Never, Runs{
			{Answer: No, First: at(0), Last: at(300)}, {Answer: NoToken, First: at(800), Last: at(1000)}}}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var idle [][]Span
			for _, m := range c.members {
				idle = append(idle, m.runs.Idle(0, m.died))
			}
			assert.Equal(t, c.want, Common(Span{ms(100), ms(900)}, idle...))
		})
	}
}

func TestTogether(t *testing.T) {
	led := func(first, last Window) Runs { return Runs{{Answer: NoToken, First: first, Last: last}} }
	single := Window{45, 50}
	a := append(led(Window{-1, 0}, Window{10, 11}), led(single, single)...)
	for name, c := range map[string]struct {
		b      Runs
		length time.Duration
		met    bool
	}{
		"apart":                         {led(Window{10, 11}, Window{20, 21}), 0, false},
		"shared":                        {led(Window{4, 5}, Window{20, 21}), 5, true},
		"one answer inside":             {led(Window{39, 40}, Window{60, 61}), 0, true},
		"one answer, perhaps before":    {led(Window{45, 46}, Window{60, 61}), 0, false},
		"one answer, perhaps after":     {led(Window{39, 40}, Window{49, 52}), 0, false},
		"two answers, who knows":        {led(Window{46, 49}, Window{46, 49}), 0, false},
		"a single answer of the others": {led(Window{3, 4}, Window{3, 4}), 0, true},
		"nothing":                       {nil, 0, false},
	} {
		length, met := Together(a, c.b)
		assert.Equal(t, c.length, length, name)
		assert.Equal(t, c.met, met, name)
	}
}
