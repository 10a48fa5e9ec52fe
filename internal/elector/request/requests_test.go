package request

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var at = clock.HourAnd // an instant after the beginning of a test

// inTurn routes letters to three logs, one after the other.
func inTurn(_, tries int) int { return tries % 3 }

// heldBy says that a process holds every role, or nobody if process is empty.
func heldBy(process string) func(int) (g lease.Grantee, held, known bool) {
	return func(int) (g lease.Grantee, held, known bool) {
		if process == "" {
			return lease.Grantee{}, false, true
		}
		return lease.Grantee{Session: lease.Session{Process: process, N: 1}}, true, true
	}
}

func from(process string, r lease.Record) *lease.Record {
	r.Session.Process = process
	return &r
}

func TestARequestIsSentInOneLogAfterTheOther(t *testing.T) {
	rs := &Requests{}
	id, err := rs.Ask(Request{Role: 4, Verb: lease.StepDown}, "b", inTurn, at(0))
	require.NoError(t, err)
	for i := range 4 {
		out, ended := rs.Take()
		require.Empty(t, ended)
		require.Equal(t, []Letter{{Log: i % 3, Kind: lease.Ping, To: "b",
			Request: &lease.Request{ID: uint64(id), Role: 4, Verb: lease.StepDown}}}, out)
		due := rs.Due()
		require.Equal(t, at(time.Duration(i+1)*askEvery).Mono, due)
		rs.Pursue(heldBy("b"), inTurn, at(time.Duration(i+1)*askEvery-1))
		require.Empty(t, rs.out, "not before it is due")
		rs.Pursue(heldBy("b"), inTurn, at(time.Duration(i+1)*askEvery))
	}
}

func TestRequestEnds(t *testing.T) {
	down, hand := Request{Verb: lease.StepDown}, Request{Verb: lease.Transfer, To: "c"}
	accepted := func(rs *Requests) {
		rs.Replied(0, from("b", lease.Record{Answer: &lease.Answer{ID: 1, Stage: lease.Accepted}}), at(0))
	}
	unread := func(rs *Requests) {
		rs.Failed(0, &lease.Record{Request: &lease.Request{ID: 1}}, errors.New("no such topic"), at(0))
	}
	denied := func(rs *Requests) {
		rs.Failed(0, &lease.Record{Request: &lease.Request{ID: 1}}, fmt.Errorf("%w: not WRITE", ErrDenied), at(0))
	}
	for _, c := range []struct {
		name   string
		r      Request
		before func(*Requests)
		holder string
		after  time.Duration // when the request ends, and not before
		err    error
		text   string
	}{
		{"silence", down, nil, "b", askLimit, ErrNoAnswer, "30s"},
		{"a log that does not take it", down, unread, "b", askLimit, ErrNoAnswer, "no such topic"},
		{"a log that refuses it", down, denied, "b", deniedLimit, ErrNoAnswer, "3s, and the log does not take the request: this process may not write: not WRITE"},
		{"another holder", down, nil, "c", goneFor, ErrNotDone, ""},
		{"no holder", hand, nil, "", goneFor, ErrNotDone, ""},
		{"the holder that was asked for", hand, nil, "c", goneFor, nil, ""},
		{"another one than was asked for", hand, accepted, "d", goneFor, ErrNotDone, ""},
		{"another holder once it was accepted", down, accepted, "c", goneFor, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			rs := &Requests{}
			_, err := rs.Ask(c.r, "b", inTurn, at(0))
			require.NoError(t, err)
			if c.before != nil {
				c.before(rs)
			}
			rs.Pursue(heldBy(c.holder), inTurn, at(0))
			rs.Pursue(heldBy(c.holder), inTurn, at(c.after-1))
			_, ended := rs.Take()
			require.Empty(t, ended)
			rs.Pursue(heldBy(c.holder), inTurn, at(c.after))
			_, ended = rs.Take()
			require.Len(t, ended, 1)
			require.ErrorIs(t, ended[0].Err, c.err)
			if c.text != "" {
				require.ErrorContains(t, ended[0].Err, c.text)
			}
			require.Equal(t, clock.Mono(clock.Never), rs.Due(), "nothing is left to be done")
		})
	}
}

// A role that has another holder for a moment only does not end a request.
func TestBriefChangeOfHolderEndsNoRequest(t *testing.T) {
	rs := &Requests{}
	_, err := rs.Ask(Request{Verb: lease.StepDown}, "b", inTurn, at(0))
	require.NoError(t, err)
	rs.Pursue(heldBy("c"), inTurn, at(time.Second))
	rs.Pursue(heldBy("b"), inTurn, at(2*time.Second))
	rs.Pursue(heldBy("c"), inTurn, at(3*time.Second))
	rs.Pursue(heldBy("c"), inTurn, at(3*time.Second+goneFor-1))
	require.Empty(t, rs.ended)
}

func TestGiveUpReportsProgress(t *testing.T) {
	answer := func(s lease.Stage) *lease.Record {
		return from("b", lease.Record{Answer: &lease.Answer{ID: 1, Stage: s}})
	}
	for _, c := range []struct {
		do   func(*Requests)
		want string
	}{
		{func(*Requests) {}, "has not answered"},
		{func(rs *Requests) { rs.Replied(0, answer(lease.Accepted), at(0)) }, "has accepted"},
		{func(rs *Requests) { rs.Replied(0, answer(lease.Done), at(0)) }, "outcome is known"},
		{func(rs *Requests) {
			rs.Failed(0, &lease.Record{Request: &lease.Request{ID: 1}}, errors.New("no such topic"), at(0))
		}, "no such topic"},
	} {
		rs := &Requests{}
		id, err := rs.Ask(Request{Verb: lease.StepDown}, "b", inTurn, at(0))
		require.NoError(t, err)
		c.do(rs)
		require.Contains(t, rs.GiveUp(id), c.want)
		require.Empty(t, rs.asks)
		require.Equal(t, "its outcome is known", rs.GiveUp(id))
	}
}

func TestACallIsOverWhenItIsReadBack(t *testing.T) {
	rs := &Requests{}
	first, err := rs.Call(inTurn, at(0))
	require.NoError(t, err)
	rs.Pursue(heldBy(""), inTurn, at(askEvery)) // the second letter goes to log 1
	call := &lease.Record{Kind: lease.Ping, To: lease.Everyone}
	rs.Back(0, 5, call)
	require.Empty(t, rs.ended, "its newest letter is in another log")
	rs.Failed(1, call, errors.New("WRITE is missing"), at(0))
	require.Equal(t, "WRITE is missing", rs.calls[0].failed.Error())
	rs.Back(1, 9, call)
	out, ended := rs.Take()
	require.Len(t, out, 2)
	require.Equal(t, []Outcome{{ID: first}}, ended)
	second, err := rs.Call(inTurn, at(0))
	require.NoError(t, err)
	require.Equal(t, "it has not come back from the log", rs.GiveUp(second))
}

// A call that every log refuses ends. One that fails for another reason goes on.
func TestACallThatIsDeniedEnds(t *testing.T) {
	rs := &Requests{}
	id, err := rs.Call(inTurn, at(0))
	require.NoError(t, err)
	everyone := &lease.Record{Kind: lease.Ping, To: lease.Everyone}
	rs.Failed(0, everyone, errors.New("no leader"), at(0))
	rs.Pursue(heldBy(""), inTurn, at(time.Hour))
	require.Empty(t, rs.ended)
	rs.Failed(1, everyone, fmt.Errorf("%w: not WRITE", ErrDenied), at(time.Hour))
	rs.Pursue(heldBy(""), inTurn, at(time.Hour+deniedLimit-1))
	require.Empty(t, rs.ended)
	require.LessOrEqual(t, rs.Due(), at(time.Hour+deniedLimit).Mono)
	rs.Pursue(heldBy(""), inTurn, at(time.Hour+deniedLimit))
	_, ended := rs.Take()
	require.Len(t, ended, 1)
	require.Equal(t, id, ended[0].ID)
	require.ErrorIs(t, ended[0].Err, ErrNoAnswer)
	require.ErrorIs(t, ended[0].Err, ErrDenied)
	require.Equal(t, clock.Mono(clock.Never), rs.Due(), "nothing is left to be done")
}

// If one of several logs refuses records, a request that another log accepts goes on, however long
// the holder needs for it.
func TestRefusingLogsEndNoRequest(t *testing.T) {
	rs := &Requests{}
	_, err := rs.Ask(Request{Verb: lease.StepDown}, "b", inTurn, at(0))
	require.NoError(t, err)
	tried := map[int]bool{}
	for ms := range 60_000 {
		now := at(time.Duration(ms) * time.Millisecond)
		rs.Pursue(heldBy("b"), inTurn, now)
		out, ended := rs.Take()
		require.Empty(t, ended)
		for _, l := range out {
			tried[l.Log] = true
			r := &lease.Record{Kind: lease.Ping, Request: l.Request}
			if l.Log != 2 {
				rs.Failed(l.Log, r, ErrDenied, now)
				continue
			}
			rs.Back(2, 7, r)
			rs.Replied(2, from("b", lease.Record{Answer: &lease.Answer{ID: 1, Stage: lease.Accepted}}), now)
		}
	}
	require.Len(t, tried, 3)
}

// The application is asked once about each request, and may take its time. Its answer goes to the
// log in which the request was last read.
func TestApplicationIsAskedOncePerRequest(t *testing.T) {
	rs := &Requests{}
	is := func() Tenure { return Tenure{Takes: true, Known: true, Leads: true, Token: 3} }
	ping := from("o", lease.Record{Kind: lease.Ping, Request: &lease.Request{ID: 9, Verb: lease.StepDown}})
	rs.Requested(0, 10, ping, is, at(0))
	rs.Requested(2, 20, ping, is, at(time.Second))
	r, ok := rs.Next()
	require.True(t, ok)
	require.Equal(t, "o", r.By)
	_, ok = rs.Next()
	require.False(t, ok, "it is put once")
	require.True(t, rs.Accept(r, 3))
	out, _ := rs.Take()
	require.Equal(t, []Letter{{Log: 2, Kind: lease.Pong, To: "o", Ping: 20, Answer: &lease.Answer{ID: 9, Stage: lease.Accepted}}}, out)
	rs.Answer(r, lease.Done, "")
	rs.Requested(1, 30, ping, is, at(2*time.Second)) // the answer was lost
	out, _ = rs.Take()
	require.Len(t, out, 2)
	require.Equal(t, Letter{Log: 1, Kind: lease.Pong, To: "o", Ping: 30, Answer: &lease.Answer{ID: 9, Stage: lease.Done}}, out[1])
	require.False(t, rs.Accept(r, 4), "it was about an earlier term")
	require.Equal(t, lease.Failed, rs.inbox.find("o", 9).answer.Stage)
}

// However many requests and answers come, and whatever they say, little is remembered, no
// outcome is reported twice, and every request and call ends.
func TestRequestsAreBoundedWhateverComes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rs, now := &Requests{}, time.Duration(0)
		begun, over := map[int]bool{}, map[int]bool{}
		collect := func() {
			_, ended := rs.Take()
			for _, o := range ended {
				if over[o.ID] || !begun[o.ID] {
					t.Fatalf("outcome %d was reported before, or is of nothing", o.ID)
				}
				over[o.ID] = true
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(*rapid.T) {
				if id, err := rs.Ask(Request{Verb: lease.StepDown}, "b", inTurn, at(now)); err == nil {
					begun[id] = true
				}
			},
			"call": func(*rapid.T) {
				if id, err := rs.Call(inTurn, at(now)); err == nil {
					begun[id] = true
				}
			},
			"answer": func(t *rapid.T) {
				id := rapid.IntRange(0, rs.last+1).Draw(t, "id")
				stage := rapid.SampledFrom([]lease.Stage{lease.Accepted, lease.Refused, lease.Done, lease.Failed, "new"}).Draw(t, "stage")
				by := rapid.SampledFrom([]string{"b", "c"}).Draw(t, "by")
				before := len(rs.asks)
				rs.Replied(0, from(by, lease.Record{Answer: &lease.Answer{ID: uint64(id), Stage: stage}}), at(now))
				if by == "c" && len(rs.asks) != before {
					t.Fatal("an answer of another process counted")
				}
			},
			"back": func(t *rapid.T) {
				rs.Back(rapid.IntRange(0, 2).Draw(t, "log"), 5, &lease.Record{To: lease.Everyone})
			},
			"read": func(t *rapid.T) {
				r := lease.Record{Request: &lease.Request{ID: rapid.Uint64Range(0, 200).Draw(t, "id"), Verb: lease.StepDown}}
				is := Tenure{Takes: rapid.Bool().Draw(t, "takes"), Known: true, Leads: true}
				rs.Requested(0, 1, from(fmt.Sprint("p", rapid.IntRange(0, 3).Draw(t, "by")), r), func() Tenure { return is }, at(now))
			},
			"time": func(t *rapid.T) {
				now += rapid.Custom(func(t *rapid.T) time.Duration {
					return time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond
				}).Draw(t, "passes")
				rs.Pursue(heldBy(rapid.SampledFrom([]string{"b", "c", ""}).Draw(t, "holder")), inTurn, at(now))
			},
			"": func(t *rapid.T) {
				if len(rs.asks) > MaxAsks || len(rs.calls) > MaxAsks || len(rs.inbox.known) > maxAnswered || len(rs.inbox.waiting) > MaxRequests {
					t.Fatal("more is remembered than may be")
				}
				collect()
			},
		})
		for range 40 {
			now += time.Second
			rs.Pursue(heldBy("b"), inTurn, at(now))
			for log := range 3 {
				rs.Back(log, 1, &lease.Record{To: lease.Everyone})
			}
			collect()
		}
		if len(over) != len(begun) {
			t.Fatalf("%d of %d have ended", len(over), len(begun))
		}
	})
}

// While nothing is known of the role's holder, the request to the former holder goes on.
func TestRequestContinuesWhileHolderIsUnknown(t *testing.T) {
	rs := &Requests{}
	_, err := rs.Ask(Request{Verb: lease.StepDown}, "b", inTurn, at(0))
	require.NoError(t, err)
	unknown := func(int) (g lease.Grantee, held, known bool) { return g, false, false }
	for d := time.Duration(0); d < askLimit; d += goneFor {
		rs.Pursue(unknown, inTurn, at(d))
	}
	require.Empty(t, rs.ended)
	require.Greater(t, len(rs.out), 2)
}

// Nothing is sent and nothing ends before the time at which this process wakes for it.
func TestRequestsDoNothingBeforeTheyAreDue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rs := &Requests{}
		for range rapid.IntRange(1, 3).Draw(t, "requests") {
			if _, err := rs.Ask(Request{Verb: lease.StepDown}, "b", inTurn, at(0)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := rs.Call(inTurn, at(0)); err != nil {
			t.Fatal(err)
		}
		rs.Take()
		holder := "b"
		for ms := 0; ms < 40_000; ms += rapid.SampledFrom([]int{1, 50, 900, 5000}).Draw(t, "ms") {
			now := at(time.Duration(ms) * time.Millisecond)
			switch rapid.IntRange(0, 9).Draw(t, "event") {
			case 0:
				rs.Failed(rapid.IntRange(0, 2).Draw(t, "log"), &lease.Record{To: lease.Everyone}, ErrDenied, now)
			case 1:
				rs.Failed(0, &lease.Record{Request: &lease.Request{ID: 1}}, ErrDenied, now)
			case 2:
				rs.Replied(0, from("b", lease.Record{Answer: &lease.Answer{ID: 1, Stage: lease.Accepted}}), now)
			}
			was, due := holder, rs.Due()
			holder = rapid.SampledFrom([]string{"b", "b", "c"}).Draw(t, "holder")
			rs.Pursue(heldBy(holder), inTurn, now)
			out, ended := rs.Take()
			if len(out)+len(ended) > 0 && now.Mono < due && holder == was {
				t.Fatalf("at %d ms, though %v is due", ms, due.Sub(at(0).Mono))
			}
			if left := rs.Due(); left < now.Mono {
				t.Fatalf("due %v ago after all was done", now.Mono.Sub(left))
			}
		}
	})
}

func TestRequestDescriptionsAreEscaped(t *testing.T) {
	q := &Request{Role: 4, Verb: "step\x1bdown", By: "o", Name: "x\u202ey"}
	require.Equal(t, []any{"role", 4, "verb", `"step\x1bdown"`, "by", "o", "by_name", `"x\u202ey"`}, q.Describe())
	q.To = "b"
	require.Contains(t, q.Describe(), "to")
	require.Equal(t, "größe 1", roster.Harmless("größe 1"))
	require.Equal(t, `"\xff"`, roster.Harmless("\xff"), "it is no text")
}
