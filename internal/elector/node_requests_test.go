package elector

import (
	"fmt"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/balance"
	"github.com/goneli/neli/internal/elector/request"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

func listens(s *Settings) { s.Requests, s.Rebalance = true, false }
func watches(s *Settings) { s.Observer = true }

// put appends a record that nobody of the world has sent.
func (w *world) put(r lease.Record) {
	o := int64(len(w.logs[0]))
	w.logs[0] = append(w.logs[0], r)
	for _, to := range w.actors {
		to.read(0, o)
	}
}

// request returns a request of a stranger to a process.
func (w *world) request(by, to string, q lease.Request) lease.Record {
	return lease.Record{Kind: lease.Ping, Session: lease.Session{Process: by, N: 1}, Name: "\x1b[2J", Read: int64(len(w.logs[0])) - 1,
		Seq: 1, Longest: lease.Unsaid, To: to, Request: &q}
}

// takeRequests takes all that waits for a process's application.
func (a *actor) takeRequests() (out []request.Request) {
	for {
		r, ok := a.requests.Next()
		if !ok {
			return out
		}
		out = append(out, r)
	}
}

func (a *actor) decides(r request.Request, s lease.Stage, text string) {
	a.do(func(clock.Instant) { a.requests.Answer(r, s, text) })
}

// refused is how many requests a process has refused.
func (a *actor) refused() uint64 {
	_, refused := a.requests.Decided()
	return refused
}

// answers returns what a process has answered to requests.
func (w *world) answers(process string) (out []lease.Answer) {
	for _, r := range w.sent(0, process, lease.Pong) {
		if r.Answer != nil {
			out = append(out, *r.Answer)
		}
	}
	return out
}

func (a *actor) ask(t *testing.T, r request.Request) (id int) {
	t.Helper()
	a.do(func(now clock.Instant) {
		var err error
		id, err = a.Ask(r, now)
		require.NoError(t, err)
	})
	return id
}

// held is a world in which a leads role 0, b is there, and o watches.
func held(change func(*Settings)) (w *world, a, b, o *actor) {
	w = newWorld(1)
	a = w.start("a", 1, change)
	w.pass(6 * time.Second)
	b = w.start("b", 1, stays)
	o = w.start("o", 1, watches)
	w.pass(6 * time.Second)
	return w, a, b, o
}

// Requests that cannot be carried out are refused without asking the application.
func TestInvalidRequestsSkipTheApplication(t *testing.T) {
	step := lease.Request{ID: 1, Verb: lease.StepDown}
	for name, c := range map[string]struct {
		change func(*Settings)
		to     string
		q      lease.Request
		early  bool // its sender has not read of the term
		want   string
	}{
		"nobody is asked": {stays, "a", step, false, "it takes no requests"},
		"unknown verb":    {listens, "a", lease.Request{ID: 1, Verb: "fly"}, false, "its version does not know what is asked for"},
		"unknown role":    {listens, "a", lease.Request{ID: 1, Role: 1, Verb: lease.StepDown}, false, "it knows no such role"},
		"an earlier term": {listens, "a", step, true, "it is about an earlier term"},
		"not the holder":  {listens, "b", step, false, "it takes no requests"},
	} {
		t.Run(name, func(t *testing.T) {
			w, a, b, _ := held(c.change)
			r := w.request("x", c.to, c.q)
			if c.early {
				r.Read = a.shards[0].own.At(0).Token - 1
			}
			w.put(r)
			w.pass(10 * time.Millisecond)
			require.Equal(t, []lease.Answer{{ID: 1, Stage: lease.Refused, Text: c.want}}, w.answers(c.to), c.want)
			require.Empty(t, append(a.takeRequests(), b.takeRequests()...))
			require.Equal(t, uint64(1), w.actor(c.to).refused())
			require.Equal(t, []int{0}, a.leads(1))
			for _, note := range w.actor(c.to).notes {
				require.NotContains(t, fmt.Sprint(note.Args...), "\x1b")
			}
		})
	}
	t.Run("a follower", func(t *testing.T) {
		w := newWorld(1)
		a := w.start("a", 1, listens)
		w.pass(6 * time.Second)
		w.start("b", 1, listens)
		w.put(w.request("x", "b", step))
		w.pass(10 * time.Millisecond)
		require.Equal(t, []lease.Answer{{ID: 1, Stage: lease.Refused, Text: "it does not lead the role, or is giving it up"}}, w.answers("b"))
		require.Equal(t, []int{0}, a.leads(1))
	})
	t.Run("Assigned nomination", func(t *testing.T) {
		w := newWorld(1)
		w.start("a", 1, func(s *Settings) { s.Requests, s.Nominated = true, true })
		w.put(w.request("x", "a", lease.Request{ID: 1, Verb: lease.Transfer, To: "b"}))
		w.pass(10 * time.Millisecond)
		require.Equal(t, []lease.Answer{{ID: 1, Stage: lease.Refused, Text: "with Assigned nomination the group says who may claim"}}, w.answers("a"))
	})
}

// However many requests come, four are considered at once and then one a second. Sixteen may wait for
// the application.
func TestRequestsAreBounded(t *testing.T) {
	w, a, _, _ := held(listens)
	n := 0
	flood := func() {
		n++
		w.put(w.request(fmt.Sprint("x", n), "a", lease.Request{ID: 1, Verb: lease.StepDown}))
	}
	for range 100 {
		flood()
	}
	require.Len(t, a.takeRequests(), 4)
	for range 100 {
		w.pass(100 * time.Millisecond)
		flood()
	}
	require.InDelta(t, 10, len(a.takeRequests()), 1)
	for range 200 {
		w.pass(500 * time.Millisecond)
		flood()
	}
	require.Len(t, a.takeRequests(), request.MaxRequests)
	require.Equal(t, []int{0}, a.leads(1))
}

// A request that comes twice, or is sent again, is put to the application once, and answered each time.
func TestRequestSentTwiceIsDecidedOnce(t *testing.T) {
	w, a, _, _ := held(listens)
	for range 2 {
		w.put(w.request("x", "a", lease.Request{ID: 7, Verb: lease.StepDown}))
	}
	got := a.takeRequests()
	require.Len(t, got, 1)
	a.decides(got[0], lease.Refused, "no")
	w.pass(10 * time.Second)
	w.put(w.request("x", "a", lease.Request{ID: 7, Verb: lease.StepDown}))
	w.pass(10 * time.Millisecond)
	require.Empty(t, a.takeRequests())
	require.Equal(t, []lease.Answer{{ID: 7, Stage: lease.Refused, Text: "no"}, {ID: 7, Stage: lease.Refused, Text: "no"}}, w.answers("a"))
	require.Equal(t, uint64(1), a.refused())
}

// A process that starts also reads old requests, and ignores them.
func TestOldRequestsAreIgnored(t *testing.T) {
	w, _, _, _ := held(listens)
	w.put(w.request("x", "c", lease.Request{ID: 1, Verb: lease.StepDown}))
	c := w.start("c", 1, listens)
	w.pass(time.Second)
	require.Empty(t, w.answers("c"), "asked before it came")
	require.Empty(t, c.takeRequests(), "asked before it came")
}

// A request that is lost is sent again, until somebody answers or 30 s are over.
func TestALostRequestIsSentAgain(t *testing.T) {
	w, a, _, o := held(listens)
	o.cut = true
	o.ask(t, request.Request{Role: 0, Verb: lease.StepDown})
	w.pass(5500 * time.Millisecond)
	require.InDelta(t, 6, len(o.said), 1)
	o.cut = false
	w.pass(1500 * time.Millisecond)
	got := a.takeRequests()
	require.Len(t, got, 1)
	a.decides(got[0], lease.Accepted, "")
	sent := len(o.said)
	w.pass(20 * time.Second)
	require.InDelta(t, 4, len(o.said)-sent, 1, "less often, as it is being carried out")
	require.Empty(t, o.ends)
	o.cut = true
	w.pass(31 * time.Second)
	require.Len(t, o.ends, 1)
	require.ErrorIs(t, o.ends[0].Err, request.ErrNoAnswer)
	require.Equal(t, clock.Mono(clock.Never), o.requests.Due())
}

// Any process may write answers to a request. Only those of the process that was asked count.
func TestOnlyTheAskedProcessCanAnswer(t *testing.T) {
	w, _, _, o := held(listens)
	id := o.ask(t, request.Request{Role: 0, Verb: lease.StepDown})
	w.pass(10 * time.Millisecond)
	pong := lease.Record{Kind: lease.Pong, Session: lease.Session{Process: "x", N: 1}, Read: int64(len(w.logs[0])) - 1, Seq: 1,
		Longest: lease.Unsaid, To: "o", Hello: &lease.Announcement{}, Answer: &lease.Answer{ID: uint64(id), Stage: lease.Done}}
	w.put(pong)
	require.Empty(t, o.ends, "another's")
	pong.Session.Process, pong.Answer = "a", &lease.Answer{ID: 99, Stage: lease.Done}
	w.put(pong)
	require.Empty(t, o.ends, "of another request")
	pong.Answer = nil
	w.put(pong)
	require.Empty(t, o.ends, "to another Ping")
	pong.Answer = &lease.Answer{ID: uint64(id), Stage: "soon"}
	w.put(pong)
	require.Empty(t, o.ends, "of a version that says more")
	pong.Answer = &lease.Answer{ID: uint64(id), Stage: lease.Done}
	w.put(pong)
	require.Equal(t, []request.Outcome{{ID: id}}, o.ends)
}

func TestImpossibleRequestsAreRefused(t *testing.T) {
	n := New(&Settings{Process: "x", T: time.Second}, nil)
	_, err := n.Ask(request.Request{}, at(0))
	require.ErrorIs(t, err, request.ErrUnknown)

	w, a, _, o := held(listens)
	_, err = a.Ask(request.Request{Role: 0}, w.instant())
	require.ErrorIs(t, err, errOwnRole)
	_, err = o.Ask(request.Request{Role: 1}, w.instant())
	require.ErrorIs(t, err, request.ErrVacant)
	for range request.MaxAsks {
		_, err = o.Ask(request.Request{Role: 0, Verb: lease.StepDown}, w.instant())
		require.NoError(t, err)
	}
	_, err = o.Ask(request.Request{Role: 0, Verb: lease.StepDown}, w.instant())
	require.ErrorContains(t, err, "requests are under way")
	require.Contains(t, o.requests.GiveUp(1), "has not answered")
	_, err = o.Ask(request.Request{Role: 0, Verb: lease.StepDown}, w.instant())
	require.NoError(t, err)
}

// However long the application thinks, it accepts a request only for the term in which it was asked.
func TestRequestIsAcceptedOnlyInItsTerm(t *testing.T) {
	w, a, _, o := held(listens)
	o.ask(t, request.Request{Role: 0, Verb: lease.StepDown})
	w.pass(10 * time.Millisecond)
	got := a.takeRequests()
	require.Len(t, got, 1)
	a.shards[0].own.At(0).Token++
	a.do(func(clock.Instant) { require.False(t, a.Accept(got[0]), "it was asked in an earlier term") })
	a.shards[0].own.Remove(0)
	a.do(func(clock.Instant) { require.False(t, a.Accept(got[0]), "it holds it no more") })
}

// A Transfer to the present leader fails with ErrLeadsAlready, at the asker and at the leader itself.
// A name that another member has, too, may mean that member.
func TestTransferToThePresentLeaderFails(t *testing.T) {
	for _, to := range []string{"a", "A"} {
		_, a, _, o := held(func(s *Settings) {
			if s.Process == "a" {
				s.Name = "A"
			}
		})
		o.do(func(now clock.Instant) {
			_, err := o.Ask(request.Request{Role: 0, Verb: lease.Transfer, To: to}, now)
			require.ErrorIs(t, err, balance.ErrLeadsAlready)
		})
		a.do(func(now clock.Instant) {
			_, err := a.Transfer(0, to, now)
			require.ErrorIs(t, err, balance.ErrLeadsAlready)
		})
		require.Empty(t, o.said, "nobody need be asked")
	}
	same := func(s *Settings) { s.Name, s.Requests, s.Rebalance = "same", true, false }
	w := newWorld(1)
	a := w.start("a", 1, same)
	w.pass(6 * time.Second)
	w.start("b", 1, same)
	o := w.start("o", 1, watches)
	w.pass(6 * time.Second)
	o.ask(t, request.Request{Role: 0, Verb: lease.Transfer, To: "same"})
	w.pass(10 * time.Millisecond)
	require.Len(t, a.takeRequests(), 1, "another member of that name may be meant")
	a.do(func(now clock.Instant) {
		_, err := a.Transfer(0, "same", now)
		require.ErrorContains(t, err, "2 members have this name, use an id: a, b")
	})
}
