package elector

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/term"
)

func TestHandoverDecides(t *testing.T) {
	const wait = 4 * time.Second
	fresh := handover{since: at(0), why: term.Closing}
	asked := handover{since: at(0), why: term.Closing, asked: true, deadline: at(10 * time.Second)}
	moved := handover{since: at(0), why: term.Transferred}
	for _, c := range []struct {
		name  string
		h     handover
		after time.Duration
		s     conditions
		want  action
		due   time.Duration
	}{
		{"waits for a successor", fresh, 0, conditions{}, stay, wait},
		{"asks when the wait is over", fresh, wait, conditions{over: true}, ask, wait},
		{"asks when a successor is ready", fresh, time.Second, conditions{ready: true}, ask, wait},
		{"asks at once when nobody works", fresh, 0, conditions{idle: true}, ask, wait},
		{"asks at once when nobody would take it", fresh, 0, conditions{refused: true}, ask, wait},
		{"is called off when wanted again", fresh, time.Second, conditions{wanted: true}, callOff, wait},
		{"even when a successor is ready", fresh, time.Second, conditions{wanted: true, ready: true}, callOff, wait},

		{"goes on though the roles could be kept", moved, time.Second, conditions{wanted: true}, stay, wait},
		{"asks when who is meant is ready", moved, time.Second, conditions{wanted: true, ready: true}, ask, wait},
		{"even at the last moment", moved, wait, conditions{wanted: true, ready: true, over: true}, ask, wait},
		{"is called off when that would not", moved, time.Second, conditions{wanted: true, refused: true}, callOff, wait},
		{"is called off when that is silent", moved, wait, conditions{wanted: true, over: true}, callOff, wait},
		{"unless the roles are not wanted any more", moved, wait, conditions{over: true}, ask, wait},
		{"nor when that would not, then", moved, time.Second, conditions{refused: true}, ask, wait},

		{"asks once", asked, time.Second, conditions{ready: true}, stay, 10 * time.Second},
		{"is not called off once asked", asked, time.Second, conditions{wanted: true, refused: true}, stay, 10 * time.Second},
		{"does not release while work goes on", asked, 10*time.Second - 1, conditions{ready: true, idle: true, over: true}, stay, 10 * time.Second},
		{"is overdue at the deadline", asked, 10 * time.Second, conditions{ready: true}, overdue, 10 * time.Second},
		{"with or without a successor", asked, 10 * time.Second, conditions{wanted: true}, overdue, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, c.h.decide(at(c.after), c.s))
			require.Equal(t, at(c.due).Mono, c.h.due(wait))
		})
	}
	for why, deliberate := range map[term.Reason]bool{term.Transferred: true, term.Rebalanced: true, term.Closing: false,
		term.SteppedDown: false, term.Unhealthy: false, term.Unassigned: false, term.Roles: false} {
		require.Equal(t, deliberate, (&handover{why: why}).deliberate(), why)
	}
}

// A role of which the application was never told is released without telling it. A role that the
// application has finished is released before the other roles of the same handover.
func TestHandoverReleasesWhatIsFinished(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 4, nil)
	w.start("b", 4, nil)
	w.pass(6 * time.Second)
	held := a.leads(4)
	require.Len(t, held, 2)
	a.work = 3 * time.Second
	w.take()
	d := a.desired
	d.Closing = true
	a.want(d)
	w.pass(time.Second)
	require.Equal(t, held, a.leads(4), "while the application finishes")
	token, _ := a.table.Held(held[0])
	a.do(func(now clock.Instant) { a.Drained(held[:1], token, now) })
	require.Equal(t, held[1:], a.leads(4))
	w.pass(10 * time.Millisecond)
	require.Len(t, w.actor("b").leads(4), 3)
	w.pass(3 * time.Second)
	require.Len(t, w.actor("b").leads(4), 4)
	require.True(t, a.dead, "it has finished")
}

// The functions of many roles that end together report one by one. What they led is
// released by one record, and claimed by one.
func TestHandoverReleasesTogether(t *testing.T) {
	const n = 1000
	w := newWorld(1)
	a := w.start("a", n, nil)
	w.pass(6 * time.Second)
	w.start("b", n, nil)
	w.pass(time.Second)
	require.Len(t, a.leads(n), n)
	a.work = time.Hour
	w.take()
	token, _ := a.table.Held(0)
	a.desired.Closing = true
	a.want(a.desired)
	w.pass(10 * time.Millisecond)
	for role := range n {
		w.after(time.Duration(role)*time.Microsecond, func() {
			a.do(func(now clock.Instant) { a.Drained([]int{role}, token, now) })
		})
	}
	w.pass(5 * time.Millisecond)
	require.Len(t, w.actor("b").leads(n), n, "within five round trips")
	transcript := w.take()
	require.Equal(t, 1, strings.Count(transcript, "a: release"), transcript)
	require.Equal(t, 1, strings.Count(transcript, "b: claim"), transcript)
}

// Of several that work longer than others, each group is released when it has finished,
// a round trip later at most.
func TestHandoverReleasesInTime(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 3, nil)
	w.pass(6 * time.Second)
	w.start("b", 3, nil)
	w.pass(time.Second)
	a.work = time.Hour
	token, _ := a.table.Held(0)
	a.desired.Closing = true
	a.want(a.desired)
	for role := range 3 {
		w.pass(time.Second)
		require.Len(t, w.actor("b").leads(3), role)
		a.do(func(now clock.Instant) { a.Drained([]int{role}, token, now) })
		w.pass(10 * time.Millisecond)
		require.Len(t, w.actor("b").leads(3), role+1)
	}
}

// An application that does not finish in time loses what it was to give up, with a
// warning.
func TestHandoverIsOverdue(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 1, nil)
	w.pass(6 * time.Second)
	b := w.start("b", 1, nil)
	w.pass(time.Second)
	a.work = time.Hour
	d := a.desired
	d.Unhealthy = true
	a.want(d)
	w.pass(9900 * time.Millisecond)
	require.Len(t, a.leads(1), 1)
	require.Empty(t, b.leads(1))
	w.pass(200 * time.Millisecond)
	require.Len(t, b.leads(1), 1)
	require.Contains(t, w.take(), "a is told: leads no more 0 (overdue)")
}
