package witness

import (
	"testing"

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
