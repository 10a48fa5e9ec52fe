package elector

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/request"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

func (a *actor) call(t *testing.T) (id int) {
	t.Helper()
	a.do(func(now clock.Instant) {
		var err error
		id, err = a.Call(now)
		require.NoError(t, err)
	})
	return id
}

// crowd is a world of members that have been there for a while, and an observer that has just started.
func crowd(members int) (w *world, o *actor) {
	w = newWorld(1)
	for i := range members {
		w.start(fmt.Sprint("m", i), 1, stays)
		w.pass(70 * time.Millisecond)
	}
	w.pass(21*time.Second + 300*time.Millisecond)
	return w, w.start("o", 1, watches)
}

// An observer that calls knows all members within a second. Neither they nor another observer take
// it for a member. Without a call observers have to wait for the members' next Hellos.
func TestACallIsAnswered(t *testing.T) {
	w, o := crowd(9)
	other := w.start("other", 1, watches)
	w.pass(500 * time.Millisecond)
	require.Empty(t, o.Members(w.instant()), "or the test shows nothing")
	id := o.call(t)
	w.pass(10 * time.Millisecond)
	require.Equal(t, []request.Outcome{{ID: id}}, o.ends)
	w.pass(roster.HelloGap(9))
	require.Len(t, o.Members(w.instant()), 9)
	for _, a := range w.actors {
		for _, m := range a.Members(w.instant()) {
			require.NotContains(t, []string{"o", "other"}, m.Process)
		}
	}
	require.Len(t, other.Members(w.instant()), 9)
	require.Len(t, o.said, 1)
}

// However often somebody calls, a group says at most twenty Hellos a second, and one more for each member.
func TestCallsBringNoStorm(t *testing.T) {
	for _, members := range []int{5, 30} {
		w, _ := crowd(members)
		w.start("o2", 1, watches)
		before := 0
		count := func() (n int) {
			for i := range members {
				n += len(w.sent(0, fmt.Sprint("m", i), lease.Hello))
			}
			return n
		}
		before = count()
		for range 100 {
			w.put(lease.Record{Kind: lease.Ping, Session: lease.Session{Process: "evil", N: 1}, Read: int64(len(w.logs[0])) - 1, Seq: 1,
				Longest: lease.Unsaid, To: lease.Everyone})
			w.pass(100 * time.Millisecond)
		}
		said := count() - before
		t.Log(members, "members:", said, "Hellos in 10 s")
		require.LessOrEqual(t, said, 10*20+members)
		require.GreaterOrEqual(t, said, members)
	}
}

// A call that is lost is sent again. If it never comes back, giving up returns the log's error.
func TestALostCallIsSentAgain(t *testing.T) {
	w, o := crowd(2)
	o.cut = true
	id := o.call(t)
	w.pass(500 * time.Millisecond)
	require.Empty(t, o.ends)
	o.cut = false
	w.pass(time.Second)
	require.Equal(t, []request.Outcome{{ID: id}}, o.ends)

	o.cut = true
	id = o.call(t)
	o.do(func(now clock.Instant) {
		o.requests.Failed(0, &lease.Record{To: lease.Everyone}, errors.New("WRITE is missing"), now)
	})
	require.Equal(t, "the log does not take it: WRITE is missing", o.requests.GiveUp(id))
	require.Equal(t, clock.Mono(clock.Never), o.requests.Due())
	for range request.MaxAsks {
		o.call(t)
	}
	o.do(func(now clock.Instant) {
		_, err := o.Call(now)
		require.ErrorContains(t, err, "requests are under way")
	})
}
