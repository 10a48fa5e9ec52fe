package report

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goneli/neli/lab/bench/idle"
	"github.com/goneli/neli/lab/bench/member"
	"github.com/goneli/neli/lab/bench/trial"
)

func TestAimsOfMembersThatAreTheServers(t *testing.T) {
	r := &Results{Systems: []System{
		{Family: "raft", Bed: "3 nodes", Setting: "fastest: timeouts 50 ms", Inside: true, Lease: 50, Results: &trial.Results{Killed: []float64{60, 100, 150}}},
		{Family: "neli", Bed: "peers", Setting: "T = 1s", Inside: true, Lease: 1000, Timeout: 1000, Run: "1",
			Idle:    []idle.Usage{{Members: 3, Messages: 40, MembersCPU: 0.012}},
			Results: &trial.Results{Restarted: []float64{1100}, First: []float64{1100}, Leading: &member.Check{Nanos: 70}}},
		{Family: "neli", Bed: "peers", Setting: "T = 100ms", Inside: true, Lease: 100, Timeout: 100, Run: "1",
			Results: &trial.Results{Killed: []float64{90, 95, 150}, Gap: []float64{0.7, 0.9, 3}, Trips: []float64{0.2, 0.2, 0.2}, Joins: 2, Disturbed: 1, Terms: 7}},
		{Family: "neli", Bed: "peers", Setting: "T = 1s, 10000 roles", Inside: true, Lease: 1000, Timeout: 1000, Roles: 10_000, Run: "1",
			Results: &trial.Results{}, Idle: []idle.Usage{{Members: 3, Messages: 45, MembersCPU: 0.0125}}},
	}}
	seen := map[string]Aim{}
	for _, a := range r.Aims() {
		assert.Equal(t, "1", a.Run)
		a.Run, a.Excess = "", 0
		seen[a.What] = a
	}
	for _, want := range []Aim{
		{What: "crash with its log, median: peers, T = 100ms", Bound: "≤ 102 ms", Measured: "95 ms (n = 3)", Met: true},
		{What: "crash with its log, maximum: peers, T = 100ms", Bound: "≤ 102 ms", Measured: "150 ms (n = 3)"},
		{What: "crash, median, beside raft's fastest: peers, T = 100ms", Bound: "< 100 ms", Measured: "95 ms (n = 3)", Met: true},
		{What: "crash, maximum, beside raft's fastest: peers, T = 100ms", Bound: "< 150 ms", Measured: "150 ms (n = 3)"},
		{What: "hand-over, median: peers, T = 100ms", Bound: "≤ 0.8 ms", Measured: "0.9 ms (n = 3)"},
		{What: "joins that disturb: peers, T = 100ms", Bound: "none", Measured: "1 of 2"},
		{What: "two leaders at once: peers, T = 100ms", Bound: "none", Measured: "0 of 0 woken; 0 otherwise, in 7 terms", Met: true},
		{What: "one question, leader: peers, T = 1s", Bound: "≤ 80 ns, 0 allocs", Measured: "70 ns, 0 allocs", Met: true},
		{What: "idle group of 3: peers, T = 1s, messages", Bound: "≤ 40/s", Measured: "40.0/s", Met: true},
		{What: "idle group of 3: peers, T = 1s, CPU of all members", Bound: "≤ 1 % of a core", Measured: "1.20 %"},
		{What: "idle group of 3, beside one role: peers, T = 1s, 10000 roles, messages", Bound: "≤ 44/s", Measured: "45.0/s"},
		{What: "idle group of 3, beside one role: peers, T = 1s, 10000 roles, CPU of all members", Bound: "≤ 1.50 % of a core", Measured: "1.25 %", Met: true},
	} {
		assert.Equal(t, want, seen[want.What], want.What)
		delete(seen, want.What)
	}
	assert.Empty(t, seen, "there are no targets for starts after a clean stop, since logs are empty then, nor for other systems")
}
