package integration

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/witness"
)

// These tests measure how long a role is without a leader: three members, one stock broker, a beat each T/5, the library's
// defaults. They assert the bound plus busyMachine for each measurement. The figures themselves are for reading, since they
// depend on the machine. If it is quiet, set envFigures: then the median has to be within the bound.

// envFigures is how often each fault is measured, on a quiet machine.
const envFigures = "NELI_FIGURES"

func figureCount(t *testing.T) int {
	t.Helper()
	s := os.Getenv(envFigures)
	if s == "" {
		return 3 // the smallest number with a useful median
	}
	n, err := strconv.Atoi(s)
	require.NoError(t, err, envFigures)
	require.Positive(t, n, envFigures)
	return n
}

// figure is one line of the report.
type figure struct {
	what, prototype string
	bound           time.Duration // of the median, on a quiet machine; with busyMachine, of each
	taken           []time.Duration
}

// median returns the middle value, or the one below the middle.
func (f *figure) median() time.Duration {
	return slices.Sorted(slices.Values(f.taken))[(len(f.taken)-1)/2]
}

func (f *figure) String() string {
	taken := slices.Sorted(slices.Values(f.taken))
	if len(taken) == 0 {
		return f.what + ": not measured"
	}
	ms := func(d time.Duration) string { return fmt.Sprint(d.Round(time.Millisecond).Milliseconds()) }
	return fmt.Sprintf("%-42s %6s [%s–%s] ms, n = %d, promised %s; prototype %s", f.what,
		ms(f.median()), ms(taken[0]), ms(taken[len(taken)-1]), len(taken), ms(f.bound), f.prototype)
}

func (f *figure) add(t *testing.T, d time.Duration) {
	t.Helper()
	assert.Less(t, d, f.bound+busyMachine, f.what)
	f.taken = append(f.taken, d)
}

func report(t *testing.T, figures ...*figure) {
	t.Helper()
	var text strings.Builder
	for _, f := range figures {
		if assert.NotEmpty(t, f.taken, f.what) && os.Getenv(envFigures) != "" {
			assert.LessOrEqual(t, f.median(), f.bound, "%s: median", f.what)
		}
		fmt.Fprintf(&text, "\n%v", f)
	}
	t.Log(text.String())
}

// stock returns an env of a broker with stock settings.
func stock(t *testing.T) *env {
	t.Helper()
	return &env{bootstrap: kafkatest.Bootstrap(t), session: 6 * time.Second}
}

func TestFiguresOpen(t *testing.T) {
	e := stock(t)
	for _, c := range []struct {
		timeout         time.Duration
		killed, stopped string
		closed          string
	}{
		{2 * time.Second, "1894", "1957", "26"},
		{time.Second, "926", "982", "20"},
		{300 * time.Millisecond, "301 [273–331]", "307", "41 (8 without rank delay)"},
	} {
		t.Run(c.timeout.String(), func(t *testing.T) {
			lost := openBound(c.timeout) - busyMachine
			killed := &figure{what: fmt.Sprintf("open, T = %v: SIGKILL → next", c.timeout), prototype: c.killed, bound: lost}
			stopped := &figure{what: fmt.Sprintf("open, T = %v: SIGSTOP → next", c.timeout), prototype: c.stopped, bound: lost}
			closed := &figure{what: fmt.Sprintf("open, T = %v: call of Close → next", c.timeout), prototype: c.closed, bound: 50 * time.Millisecond}

			el := newElection(t, e, contenderParams{Nomination: neli.NominationOpen, Timeout: c.timeout})
			el.bound = openBound(c.timeout)
			el.start("member")
			el.leader(0, firstLeader)
			el.follow("member", "member")
			for range figureCount(t) {
				old := el.anyMoment()
				at := old.Kill()
				killed.add(t, el.leader(0, patience, old.member).since-at)
				el.follow("member")
			}
			for range figureCount(t) {
				old := el.anyMoment()
				at := old.suspend()
				next := el.leader(0, patience, old.member)
				stopped.add(t, next.since-at)
				woken := old.wake()
				old.awaits("fenced", patience)
				old.readsMore(2, patience)
				el.neverAgain(old, woken)
			}
			for range figureCount(t) {
				old := el.anyMoment()
				at := old.close(patience)
				closed.add(t, el.leader(0, patience, old.member).since-at)
				el.follow("member")
			}
			report(t, killed, stopped, closed)
		})
	}
}

// anyMoment waits for a random part of a beat interval and returns the leader. Otherwise each fault would come at the same
// moment of the leader's beat.
func (e *election) anyMoment() held {
	e.t.Helper()
	e.leader(0, patience)
	waitPast(e.t, witness.Now()+rand.N(e.params.Timeout/5))
	return e.leader(0, patience)
}

// With groups, most of the time is spent waiting for sessions to end. So each measurement has an election of its own, and
// all wait in parallel.
func TestFiguresAssigned(t *testing.T) {
	e := stock(t)
	const timeout = 5 * time.Second
	killed := &figure{what: "assigned, session 6 s: SIGKILL → next", prototype: "5669 [5530–5803] (group alone)", bound: e.session + 500*time.Millisecond}
	closed := &figure{what: "assigned: Close, last leader → next", prototype: "1599 [1500–1703] (group alone)", bound: 100 * time.Millisecond}
	began := &figure{what: "assigned: call of Close → next", prototype: "1599 [1500–1703] (group alone)", bound: 5 * time.Second}
	var all []*election
	for range figureCount(t) {
		el := newElection(t, e, contenderParams{Nomination: neli.NominationAssigned, Timeout: timeout})
		el.bound = assignedBound(timeout, e.session)
		el.start("first")
		all = append(all, el)
	}
	for _, el := range all {
		el.leader(0, firstLeader)
		el.start("second")
		el.start("third")
	}
	for _, el := range all {
		for _, m := range el.members {
			el.follows(m)
		}
	}
	for _, el := range all {
		old := el.leader(0, patience)
		at := old.close(patience)
		next := el.leader(0, patience, old.member)
		began.add(t, next.since-at)
		for _, v := range el.vacancies() {
			closed.add(t, v.Length())
		}
	}
	type fault struct {
		held
		at time.Duration
	}
	var faults []fault
	for _, el := range all {
		el.follow("fourth")
		old := el.anyMoment()
		faults = append(faults, fault{old, old.Kill()})
	}
	for i, el := range all {
		next := el.leader(0, e.session+patience, faults[i].member, el.members[0])
		killed.add(t, next.since-faults[i].at)
	}
	report(t, killed, closed, began)
}
