package elector

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/stretchr/testify/require"
)

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
