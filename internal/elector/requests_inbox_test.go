package elector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/lease"
)

func TestRefusals(t *testing.T) {
	good := tenure{takes: true, known: true, leads: true, token: 3}
	require.Empty(t, good.refusal(lease.StepDown))
	require.Empty(t, good.refusal(lease.Transfer))
	for _, c := range []struct {
		change func(*tenure)
		verb   lease.Verb
		want   string
	}{
		{func(t *tenure) { t.takes = false }, lease.StepDown, "takes no requests"},
		{func(*tenure) {}, "dance", "does not know what is asked for"},
		{func(t *tenure) { t.nominated = true }, lease.Transfer, "the group says who may claim"},
		{func(t *tenure) { t.known = false }, lease.StepDown, "knows no such role"},
		{func(t *tenure) { t.leads = false }, lease.StepDown, "does not lead the role"},
		{func(t *tenure) { t.earlier = true }, lease.StepDown, "an earlier term"},
	} {
		is := good
		c.change(&is)
		require.Contains(t, is.refusal(c.verb), c.want)
	}
}

// Requests are considered once a second on average, and some may come at once. The rest is dropped:
// their senders repeat them.
func TestRequestsAreConsideredInTurn(t *testing.T) {
	in := &inbox{}
	for i := range requestBurst {
		require.True(t, in.due(at(0)), "%d at once", i)
	}
	require.False(t, in.due(at(0)))
	require.False(t, in.due(at(requestEvery-1)))
	require.True(t, in.due(at(requestEvery)))
	require.False(t, in.due(at(requestEvery)))
	for i := range requestBurst {
		require.True(t, in.due(at(time.Hour)), "%d after a calm hour", i)
	}
	require.False(t, in.due(at(time.Hour)), "what was not used is lost")
}

// At most maxRequests wait until the application fetches them. Requests that are refused without asking it are not among them.
func TestTheApplicationIsAskedNoMoreThanItCanRead(t *testing.T) {
	rs, now := &requests{}, time.Duration(0)
	read := func(id int, is tenure) (refused *received, why string) {
		now += requestEvery
		r := from("o", lease.Record{Request: &lease.Request{ID: uint64(id), Role: 3, Verb: lease.StepDown}})
		return rs.requested(0, int64(id), r, func() tenure { return is }, at(now))
	}
	leads := tenure{takes: true, known: true, leads: true, token: 3}
	refused, why := read(100, tenure{known: true})
	require.Equal(t, "it takes no requests", why)
	require.Equal(t, uint64(100), refused.id)
	require.Equal(t, uint64(1), rs.inbox.refused)
	for id := range maxRequests + 2 {
		refused, _ := read(id, leads)
		require.Nil(t, refused)
	}
	for id := range maxRequests {
		r, ok := rs.next()
		require.True(t, ok)
		require.Equal(t, []any{uint64(id), 3, int64(3)}, []any{r.id, r.Role, r.token}, "the oldest first")
	}
	_, ok := rs.next()
	require.False(t, ok, "two were dropped")
	read(maxRequests, leads)
	_, ok = rs.next()
	require.True(t, ok, "they may be sent again")
}

// Of answered requests the newest are remembered, so that one that is repeated is decided once.
func TestAnsweredRequestsAreRemembered(t *testing.T) {
	rs, now, decided := &requests{}, time.Duration(0), 0
	read := func(id int) {
		now += requestEvery
		rs.requested(0, int64(id), from("o", lease.Record{Request: &lease.Request{ID: uint64(id), Verb: lease.StepDown}}),
			func() tenure { decided++; return tenure{} }, at(now))
	}
	for id := range maxAnswered + 1 {
		read(id)
	}
	rs.take()
	read(1)
	require.Equal(t, maxAnswered+1, decided)
	out, _ := rs.take()
	require.Len(t, out, 1, "it is answered again")
	require.Equal(t, lease.Refused, out[0].answer.Stage)
	require.Equal(t, int64(1), out[0].ping)
	read(0)
	require.Equal(t, maxAnswered+2, decided, "the oldest was forgotten")

	now += requestEvery
	rs.requested(0, 5, from("p", lease.Record{Request: &lease.Request{ID: 1, Verb: lease.StepDown}}),
		func() tenure { decided++; return tenure{} }, at(now))
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
			rs := &requests{}
			_, err := rs.ask(Request{Verb: lease.StepDown}, "b", inTurn, at(0))
			require.NoError(t, err)
			rs.back(0, 9, &lease.Record{Request: &lease.Request{ID: 1}})
			about := rs.replied(0, from(c.by, c.r), at(20*time.Second))
			require.Equal(t, c.r.Answer != nil || c.ends, about)
			_, ended := rs.take()
			require.Equal(t, c.ends, len(ended) == 1)
			if !c.ends {
				heard := c.by == "b" && c.r.Answer != nil
				rs.pursue(heldBy("b"), inTurn, at(askLimit))
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
