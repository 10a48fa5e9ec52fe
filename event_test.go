package neli

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestChange(t *testing.T) {
	c := Change{Reason: elected, Terms: []Term{
		{Partition: 0, Roles: []int{0, 4, 8}, Token: 70},
		{Partition: 1, Token: 71},
		{Partition: 3, Roles: []int{3, 7}, Token: 0},
	}}
	require.Equal(t, []int{0, 3, 4, 7, 8}, c.Roles())
	require.Equal(t, []int{0, 4, 8}, c.Terms[0].Roles, "asking changes nothing")

	// One partition may have several terms: roles that were claimed apart.
	c.Terms = append(c.Terms, Term{Partition: 3, Roles: []int{11}, Token: 80}, Term{Partition: 3, Roles: []int{15}, Token: 90})
	require.Equal(t, []int{0, 3, 4, 7, 8, 11, 15}, c.Roles())

	var none Change
	require.Empty(t, none.Roles())
}

func TestEventsAreValues(t *testing.T) {
	ch := Change{Reason: ReasonClosing, Terms: []Term{{Partition: 2, Roles: []int{2}, Token: 9}}}
	for _, c := range []struct {
		e    Event
		want string
	}{
		{LeaderAcquired{Change{Reason: elected, Terms: ch.Terms}}, "leader acquired (elected): partition 2 token 9"},
		{LeaderRevoked{ch, time.Now()}, "leader revoked (closing): partition 2 token 9"},
		{LeaderFenced{Change{Reason: ReasonLapsed, Terms: ch.Terms}}, "leader fenced (lapsed): partition 2 token 9"},
	} {
		require.Equal(t, c.want, c.e.String())
		require.Equal(t, c.want, fmt.Sprint(c.e))
		switch e := c.e.(type) { // as an application tells them apart
		case LeaderAcquired:
			require.Equal(t, []int{2}, e.Roles())
		case LeaderRevoked:
			require.Equal(t, []int{2}, e.Roles())
			require.False(t, e.Deadline.IsZero())
		case LeaderFenced:
			require.Equal(t, []int{2}, e.Roles())
		default:
			require.Fail(t, "unknown event", "%T", e)
		}
	}
}

// A thousand partitions do not fill the log.
func TestEventStringIsShort(t *testing.T) {
	ch := Change{Reason: elected}
	for p := range 8 {
		ch.Terms = append(ch.Terms, Term{Partition: p, Token: int64(p)})
	}
	require.NotContains(t, LeaderAcquired{ch}.String(), "more")
	for p := 8; p < 1000; p++ {
		ch.Terms = append(ch.Terms, Term{Partition: p, Token: int64(p)})
	}
	s := LeaderAcquired{ch}.String()
	require.Contains(t, s, "partition 7 token 7 and 992 more terms")
	require.Less(t, len(s), 300)
}

func TestReasonString(t *testing.T) {
	seen := map[string]bool{}
	for r := Reason(0); r <= ReasonFatal; r++ {
		s := r.String()
		require.NotContains(t, s, "Reason(", "reason %d has no name", int(r))
		require.False(t, seen[s], "%q twice", s)
		seen[s] = true
	}
	require.Equal(t, "elected", elected.String())
	require.Equal(t, "unassigned", ReasonUnassigned.String())
	require.Equal(t, "lapsed", ReasonLapsed.String())
	require.Equal(t, "overdue", ReasonOverdue.String())
	require.Equal(t, "fatal", ReasonFatal.String())
	require.Equal(t, "Reason(-1)", Reason(-1).String())
	require.Equal(t, "Reason(16)", (ReasonFatal + 1).String())
}
