package crowd

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goneli/neli"
)

func TestSteps(t *testing.T) {
	of := func(count uint64, buckets ...uint64) (t neli.Timing) {
		t.Count = count
		copy(t.Buckets[:], buckets)
		return t
	}
	for name, c := range map[string]struct {
		of      neli.Timing
		over    uint64
		longest time.Duration
	}{
		"none":                  {of(0), 0, 5 * time.Millisecond},
		"a bound is not over":   {of(6, 1, 0, 0, 0, 5), 0, 100 * time.Millisecond},
		"in the next bucket":    {of(9, 1, 0, 0, 0, 5, 3), 3, 250 * time.Millisecond},
		"longer than any bound": {of(7, 4, 1), 2, 0},
	} {
		s := Steps{Timing: c.of}
		assert.Equal(t, c.over, over(c.of, 100*time.Millisecond), name)
		assert.Equal(t, c.longest, s.Longest(), name)
	}
	assert.Equal(t, "9 steps, 0.00 s in all, ≤ 5ms: 1, ≤ 100ms: 5, ≤ 250ms: 3", Steps{Timing: of(9, 1, 0, 0, 0, 5, 3)}.String())
}

func TestWhatEndedMembersShowedCounts(t *testing.T) {
	l := newLedger(1)
	ends, lives := l.open(1), l.open(1)
	for n := range uint64(3) { // each report has all steps so far
		l.take(ends, Line{Watched: &Watched{Steps{Timing: neli.Timing{Count: n}, Over: n}, Checks{3 * n, n}}})
	}
	l.take(lives, Line{Watched: &Watched{Steps{Timing: neli.Timing{Count: 5}, Over: 1}, Checks{Made: 4}}})
	l.end(ends)
	assert.Equal(t, Watched{Steps{Timing: neli.Timing{Count: 7}, Over: 3}, Checks{Made: 10, False: 2}}, l.watched())
}

func TestStepsThatAreTooLongFail(t *testing.T) {
	o := Outcome{Size: Size{Processes: 3, Each: 1, Partitions: 1, Roles: 9, T: 5 * time.Second}}
	assert.NoError(t, o.Check(), "not measured")
	o.Steps = &Steps{Timing: neli.Timing{Count: 7}}
	assert.NoError(t, o.Check())
	o.Checks = &Checks{Made: 3, False: 1}
	assert.EqualError(t, o.Check(), "3 members in 3 processes, partitions: 1, 9 roles, T = 5s: 1 of 3 checks were false within a term")
	o.Steps.Over = 2
	assert.EqualError(t, o.Check(), "3 members in 3 processes, partitions: 1, 9 roles, T = 5s: 1 of 3 checks were false within a term\n"+
		"3 members in 3 processes, partitions: 1, 9 roles, T = 5s: 2 of 7 steps were longer than T/50")
	o.Checks.False = 0
	assert.EqualError(t, o.Check(), "3 members in 3 processes, partitions: 1, 9 roles, T = 5s: 2 of 7 steps were longer than T/50")
}
