package integration

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/witness"
)

// Checks that every election makes at its end.

func (e *election) verify(end time.Duration) {
	e.t.Helper()
	if e.params.Mode == neli.NonExclusive {
		e.verifyCover(end)
	} else {
		e.verifyExclusive()
		if e.env.proves {
			proves(e.t, e.env.bootstrap, e.params.Topic, e.params.Group)
		}
	}
	e.verifyEvents()
	e.verifySampling()
}

// verifyExclusive checks that there were never two leaders, that tokens increase, and that no role
// was vacant between two leaders for longer than the bound.
func (e *election) verifyExclusive() {
	e.t.Helper()
	for i := range e.contenders() {
		count, longest, led := 0, time.Duration(0), 0
		for role := range e.params.Roles {
			terms := e.terms(i, role)
			vacant := witness.Vacancies(terms)
			assert.Empty(e.t, list(witness.TermFaults(terms)), "role %d of contender %d", role, i)
			if e.bound > 0 {
				assert.LessOrEqual(e.t, witness.Longest(vacant), e.bound, "role %d of contender %d: vacant in %v, terms %v", role, i, vacant, terms)
			}
			if len(terms) > 0 {
				led++
			}
			count += len(terms)
			longest = max(longest, witness.Longest(vacant))
		}
		assert.Equal(e.t, e.params.Roles, led, "roles of contender %d that were ever led", i)
		e.t.Logf("%d terms of %d roles; longest vacancy between two leaders %v", count, e.params.Roles, longest.Round(time.Millisecond))
	}
}

// contenders returns the number of a member's Nelis.
func (e *election) contenders() int {
	n := 0
	for _, m := range e.members {
		n = max(n, len(m.params.Contenders))
	}
	return n
}

// verifyCover checks that from settled on, no role was uncovered at any instant or, if the case has
// a bound, for longer than that.
func (e *election) verifyCover(end time.Duration) {
	e.t.Helper()
	if !assert.NotZero(e.t, e.settled, "the roles were never led") {
		return
	}
	judged := witness.Span{From: e.settled, To: end}
	var worst time.Duration
	for role := range e.params.Roles {
		idle, led := e.samples(role)
		if e.bound == 0 {
			assert.Empty(e.t, witness.Common(judged, idle...), "times at which role %d certainly had no leader", role)
		}
		worst = max(worst, witness.Longest(witness.Without(judged, led)))
	}
	if e.bound > 0 {
		assert.LessOrEqual(e.t, worst, e.bound, "longest time without proof of a leader")
	}
	e.t.Logf("%d roles over %v: longest time without proof of a leader %v", e.params.Roles,
		judged.Length().Round(time.Millisecond), worst.Round(time.Millisecond))
}

// samples returns the times at which each member certainly did not lead a role, and those at which any of them led.
func (e *election) samples(role int) (idle [][]witness.Span, led []witness.Span) {
	for _, m := range e.members {
		runs := m.Samples.Runs().Of(0, role)
		idle = append(idle, runs.Idle(m.Born, m.Died()))
		led = append(led, runs.Led(0)...)
	}
	return idle, led
}

// verifyEvents checks that the events of each member are in order and agree with its terms.
func (e *election) verifyEvents() {
	e.t.Helper()
	for _, m := range e.members {
		for i, c := range m.params.Contenders {
			byRole := map[int][]told{} // in non-exclusive mode by partition, since its roles have one term
			for _, ev := range m.events("acquired", "revoked", "fenced") {
				if ev.Contender != i {
					continue
				}
				for _, t := range ev.Terms {
					roles := t.Roles
					if c.Mode != neli.Exclusive {
						roles = []int{t.Partition}
					}
					for _, role := range roles {
						byRole[role] = append(byRole[role], told{ev.At, ev.What, t.Token})
					}
				}
			}
			for role, events := range byRole {
				var terms []witness.Term
				if c.Mode == neli.Exclusive && role < c.Roles {
					terms = witness.Terms(m.params.Name, m.Samples.Runs().Of(i, role))
				}
				assert.Empty(e.t, list(eventFaults(events, terms)), "%s, role %d", m, role)
			}
		}
	}
}

// sampledEnough is the share of a life that must have been sampled. What the library does has no influence on it, but starts
// of brokers and other tests do: with 29 processes ready to run, a member sampled 88.9 % of its life.
const sampledEnough = 0.5

// verifySampling checks that enough of each life was sampled, since nothing is known about times without samples. The
// time from the first sample to the member's end counts, without suspensions. On a machine that is not overloaded,
// nearly all of it is sampled. A single stall as long as the bounds allow may be a large share of a short life.
func (e *election) verifySampling() {
	e.t.Helper()
	var shares []string
	for _, m := range e.members {
		runs := m.Samples.Runs().Of(0, 0)
		if len(runs) == 0 || len(m.params.Contenders) == 0 {
			continue // it ended before it began
		}
		const ending = time.Second // a process takes a while to end
		awake, missing := runs.Sampled(m.Died()-ending, m.Stops())
		all, unseen := witness.Total(awake), witness.Total(missing)
		if all <= 2*time.Second {
			continue // too short to tell
		}
		share := 1 - float64(unseen)/float64(all)
		if unseen > busyMachine {
			assert.GreaterOrEqual(e.t, share, sampledEnough, "%s: share of its life that was sampled", m)
		}
		shares = append(shares, fmt.Sprintf("%s %.1f%%", m, 100*share))
	}
	slices.Sort(shares)
	e.t.Logf("sampled: %v", shares)
}
