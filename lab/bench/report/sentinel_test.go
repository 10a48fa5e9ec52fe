package report

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goneli/neli/lab/bench/trial"
)

func TestGroupsBesideASentinel(t *testing.T) {
	r := &Results{Systems: []System{
		{Family: "neli", Bed: "1 broker", Setting: "s", Run: "1", Lease: 5000, Timeout: 5000, Results: &trial.Results{Killed: []float64{4000}}},
		{Family: "neli", Bed: "1 broker", Setting: "s, sentinel", Run: "2", Lease: 5000, Timeout: 5000, Sentinel: true,
			Results:  &trial.Results{Killed: []float64{10, 21, 30}, Both: []float64{4500}, Lone: []float64{90}, Terms: 7},
			Watching: []Watching{{Registered: 100, CPU: 0.0042, Memory: 61e6}}},
		{Family: "neli", Bed: "3 brokers", Setting: "s, sentinel", Sentinel: true, Lease: 1000, Results: &trial.Results{Killed: []float64{35}}},
		{Family: "neli", Bed: "3 brokers", Setting: "s, 1000 roles, sentinel", Sentinel: true, Roles: 1000, Lease: 1000, Results: &trial.Results{Killed: []float64{99}, Both: []float64{1001}}},
		{Family: "neli", Bed: "peers", Setting: "s, sentinel", Sentinel: true, Inside: true, Lease: 1000, Timeout: 1000, Results: &trial.Results{Killed: []float64{7}}},
	}, Runs: []Run{{ID: "1"}, {ID: "2"}}}
	got := map[string]string{}
	for _, a := range r.Aims() {
		got[a.What] = fmt.Sprint(a.Bound, ": ", a.Measured, ": ", a.Met)
	}
	for what, want := range map[string]string{
		"crash beside a sentinel, median: 1 broker, s, sentinel":              "≤ 20 ms: 21 ms (n = 3): false",
		"crash beside a sentinel, median: 3 brokers, s, sentinel":             "≤ 35 ms: 35 ms (n = 1): true",
		"crash beside a sentinel, median: 3 brokers, s, 1000 roles, sentinel": "≤ 100 ms: 99 ms (n = 1): true",
		"crash of both, median: 3 brokers, s, 1000 roles, sentinel":           "≤ 1000 ms: 1001 ms (n = 1): false",
		"the only member is started again, median: 1 broker, s, sentinel":     "≤ 150 ms: 90 ms (n = 1): true",
	} {
		assert.Equal(t, want, got[what], what)
	}
	for what := range got {
		assert.NotContains(t, what, "peers", "targets are for brokers")
		assert.NotContains(t, what, "crash, median: 1 broker, s, sentinel", "T is the target without a sentinel")
	}
}
