package request

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/lease"
)

func TestRefusals(t *testing.T) {
	good := Tenure{Takes: true, Known: true, Leads: true, Token: 3}
	require.Empty(t, good.refusal(lease.StepDown))
	require.Empty(t, good.refusal(lease.Transfer))
	for _, c := range []struct {
		change func(*Tenure)
		verb   lease.Verb
		want   string
	}{
		{func(t *Tenure) { t.Takes = false }, lease.StepDown, "takes no requests"},
		{func(*Tenure) {}, "dance", "does not know what is asked for"},
		{func(t *Tenure) { t.Nominated = true }, lease.Transfer, "the group says who may claim"},
		{func(t *Tenure) { t.Known = false }, lease.StepDown, "knows no such role"},
		{func(t *Tenure) { t.Leads = false }, lease.StepDown, "does not lead the role"},
		{func(t *Tenure) { t.Earlier = true }, lease.StepDown, "an earlier term"},
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
	rs, now := &Requests{}, time.Duration(0)
	read := func(id int, is Tenure) (refused *received, why string) {
		now += requestEvery
		r := from("o", lease.Record{Request: &lease.Request{ID: uint64(id), Role: 3, Verb: lease.StepDown}})
		return rs.Requested(0, int64(id), r, func() Tenure { return is }, at(now))
	}
	leads := Tenure{Takes: true, Known: true, Leads: true, Token: 3}
	refused, why := read(100, Tenure{Known: true})
	require.Equal(t, "it takes no requests", why)
	require.Equal(t, uint64(100), refused.id)
	require.Equal(t, uint64(1), rs.inbox.refused)
	for id := range MaxRequests + 2 {
		refused, _ := read(id, leads)
		require.Nil(t, refused)
	}
	for id := range MaxRequests {
		r, ok := rs.Next()
		require.True(t, ok)
		require.Equal(t, []any{uint64(id), 3, int64(3)}, []any{r.id, r.Role, r.token}, "the oldest first")
	}
	_, ok := rs.Next()
	require.False(t, ok, "two were dropped")
	read(MaxRequests, leads)
	_, ok = rs.Next()
	require.True(t, ok, "they may be sent again")
}

// Of answered requests the newest are remembered, so that one that is repeated is decided once.
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
