package crowd

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goneli/neli/internal/tally"
)

func TestFiguresOfEndedMembersCount(t *testing.T) {
	l := newLedger(1)
	ends, lives := l.open(1), l.open(1)
	for n := range uint64(3) { // each report has all steps so far
		l.take(ends, Line{Watched: &Watched{Steps{Timing: tally.Timing{Count: n}, Over: n}, Checks{3 * n, n}}})
	}
	l.take(lives, Line{Watched: &Watched{Steps{Timing: tally.Timing{Count: 5}, Over: 1}, Checks{Made: 4}}})
	l.end(ends)
	assert.Equal(t, Watched{Steps{Timing: tally.Timing{Count: 7}, Over: 3}, Checks{Made: 10, False: 2}}, l.watched())
}

func TestLongStepsAndFalseChecksFail(t *testing.T) {
	o := Outcome{Size: Size{Processes: 3, Each: 1, Partitions: 1, Roles: 9, T: 5 * time.Second}}
	assert.NoError(t, o.Check(), "not measured")
	o.Steps = &Steps{Timing: tally.Timing{Count: 7}}
	assert.NoError(t, o.Check())
	o.Checks = &Checks{Made: 3, False: 1}
	assert.EqualError(t, o.Check(), "3 members in 3 processes, partitions: 1, 9 roles, T = 5s: 1 of 3 checks were false within a term")
	o.Steps.Over = 2
	assert.EqualError(t, o.Check(), "3 members in 3 processes, partitions: 1, 9 roles, T = 5s: 1 of 3 checks were false within a term\n"+
		"3 members in 3 processes, partitions: 1, 9 roles, T = 5s: 2 of 7 steps were longer than T/50")
	o.Checks.False = 0
	assert.EqualError(t, o.Check(), "3 members in 3 processes, partitions: 1, 9 roles, T = 5s: 2 of 7 steps were longer than T/50")
}
