package request

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/lease"
)

// The newest answered requests are remembered, so that a repeated request is decided once.
func TestAnsweredRequestsAreRemembered(t *testing.T) {
	rs, now, decided := &Requests{}, time.Duration(0), 0
	read := func(id int) {
		now += requestEvery
		rs.Requested(0, int64(id), from("o", lease.Record{Request: &lease.Request{ID: uint64(id), Verb: lease.StepDown}}),
			func() Tenure { decided++; return Tenure{} }, at(now))
	}
	for id := range maxAnswered + 1 {
		read(id)
	}
	rs.Take()
	read(1)
	require.Equal(t, maxAnswered+1, decided)
	out, _ := rs.Take()
	require.Len(t, out, 1, "it is answered again")
	require.Equal(t, lease.Refused, out[0].Answer.Stage)
	require.Equal(t, int64(1), out[0].Ping)
	read(0)
	require.Equal(t, maxAnswered+2, decided, "the oldest was forgotten")

	now += requestEvery
	rs.Requested(0, 5, from("p", lease.Record{Request: &lease.Request{ID: 1, Verb: lease.StepDown}}),
		func() Tenure { decided++; return Tenure{} }, at(now))
	require.Equal(t, maxAnswered+3, decided, "another process counts for itself")
}

// The answers that end a request, and what its caller is told.
func TestAnswersToARequest(t *testing.T) {
	say := func(s lease.Stage) lease.Record {
		return lease.Record{Answer: &lease.Answer{ID: 1, Stage: s, Text: "be\vcause"}}
	}
	for name, c := range map[string]struct {
		by   string
		r    lease.Record
		ends bool
		err  error
		text string
	}{
		"it is done":                        {"b", say(lease.Done), true, nil, ""},
		"it is refused":                     {"b", say(lease.Refused), true, ErrRefused, `"be\vcause"`},
		"it could not be done":              {"b", say(lease.Failed), true, ErrNotDone, `"be\vcause"`},
		"it is accepted":                    {"b", say(lease.Accepted), false, nil, ""},
		"a word of the future":              {"b", say("considered"), false, nil, ""},
		"another process":                   {"c", say(lease.Done), false, nil, ""},
		"a version without them":            {"b", lease.Record{Ping: 9}, true, ErrRefused, "knows no requests"},
		"an answer to a Ping of a handover": {"b", lease.Record{Ping: 8}, false, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			rs := &Requests{}
			_, err := rs.Ask(Request{Verb: lease.StepDown}, "b", inTurn, at(0))
			require.NoError(t, err)
			rs.Back(0, 9, &lease.Record{Request: &lease.Request{ID: 1}})
			about := rs.Replied(0, from(c.by, c.r), at(20*time.Second))
			require.Equal(t, c.r.Answer != nil || c.ends, about)
			_, ended := rs.Take()
			require.Equal(t, c.ends, len(ended) == 1)
			if !c.ends {
				heard := c.by == "b" && c.r.Answer != nil
				rs.Pursue(heldBy("b"), inTurn, at(askLimit))
				require.Equal(t, heard, len(rs.ended) == 0, "whoever says something is not silent")
				return
			}
			require.ErrorIs(t, ended[0].Err, c.err)
			if c.text != "" {
				require.ErrorContains(t, ended[0].Err, c.text)
			}
		})
	}
}

// A holder that waits for a successor's Pong does not take the answer to a request for it.
func TestAnswerToARequestAnswersNoHandover(t *testing.T) {
	rs := &Requests{}
	require.True(t, rs.Replied(0, &lease.Record{Kind: lease.Pong, Session: lease.Session{Process: "b"}, Ping: 4, Answer: &lease.Answer{}}, at(0)))
	require.False(t, rs.Replied(0, &lease.Record{Kind: lease.Pong, Session: lease.Session{Process: "b"}, Ping: 4}, at(0)))
}
