package oracle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/witness"
)

// Each fault counts with the longest gap of the roles whose leader it struck, beside the bound of its kind. A fault without
// a gap counts with zero. A gap longer than the bound is a violation.
func TestFailOvers(t *testing.T) {
	b := Recovery{Takeover: ms(600), BrokerLost: ms(2_500), Repaired: ms(1_500)}
	struck := func(step, from int, change func(*history.Fault)) history.Fault {
		f := fault(step, from, from+3_000)
		change(&f)
		return f
	}
	gone := func(f *history.Fault) { f.Kind, f.Gone = "gone", true }
	faults := []history.Fault{
		struck(1, 10_000, gone),
		struck(2, 20_000, func(f *history.Fault) { f.Kind, f.Cluster, f.Sort = "stalled", true, "stalled" }),
		struck(3, 30_000, gone),
		struck(4, 40_000, func(f *history.Fault) { f.Kind, f.Cluster, f.Sort = "broker killed", true, "killed" }),
		struck(5, 50_000, func(f *history.Fault) { gone(f); f.Calm = false }),
	}
	gap := func(step, from, length int) Gap {
		return Gap{Span: witness.Span{From: ms(from), To: ms(from + length)}, Mode: ex, Step: step, Kind: "x"}
	}
	aside, other := gap(1, 10_200, 590), gap(1, 10_300, 580)
	aside.Aside, other.Mode = true, non
	gaps := []Gap{gap(1, 10_000, 500), gap(1, 10_100, 400), aside, other, gap(2, 20_000, 4_500), gap(5, 50_000, 900)}
	r := history.Record{End: ms(60_000), Faults: faults}
	assert.Equal(t, []FailOver{
		{Kind: "gone", Lengths: []time.Duration{ms(500), 0}, Bound: ms(600)},
		{Kind: "stalled", Lengths: []time.Duration{ms(4_500)}, Bound: ms(3_000 + 1_500)},
		{Kind: "broker killed", Lengths: []time.Duration{0}, Bound: ms(2_500)},
	}, FailOvers(r, gaps, b))
	for step, bound := range map[int]int{1: 600, 2: 4_500, 4: 2_500} {
		rejects(t, "", Recovered(r, []Gap{gap(step, 10_000*step, bound)}, b))
		rejects(t, "longer than", Recovered(r, []Gap{gap(step, 10_000*step, bound+1)}, b))
	}
}

// These are the figures of docs/failover.md for both T: W(T) = T (1+ρ)/(1−ρ) + 1 ms, T for the claim, then 13 s or 45 s.
func TestPromised(t *testing.T) {
	for timeout, want := range map[int][3]int{1_000: {2_002, 15_002, 47_002}, 5_000: {10_006, 23_006, 55_006}} {
		b := Promised(ms(timeout))
		for i, bound := range []time.Duration{b.Takeover, b.BrokerLost, b.Parted} {
			assert.Equal(t, ms(want[i]), bound.Truncate(time.Millisecond))
		}
	}
}
