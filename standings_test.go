package neli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// say puts Standings into words.
func say(ss []neli.Standing) (out []string) {
	for _, s := range ss {
		who := s.Status.String()
		if s.Status == neli.Held {
			who = s.Holder.Name
		}
		out = append(out, fmt.Sprintf("%d %v %s", s.Partition, slices.Collect(s.Roles()), who))
	}
	return out
}

// Standings tell of every role below R once: what is not known too, what is held by
// holder and token together, and what is vacant for whatever reason.
func TestStandings(t *testing.T) {
	simulateWith(t, nelitest.Options{}, roles(6), func(c *cluster) {
		o := c.Join("o", func(cfg *neli.Config) { cfg.Observer, cfg.Partitions = true, 2 })
		require.Nil(c, o.Standings(), "no partitions yet")
		require.Zero(c, o.Partitions())
		two := func(cfg *neli.Config) { open(cfg); cfg.Partitions, cfg.Rebalance = 2, neli.RebalanceOff }
		a := c.Work("a", two)
		c.Pass(time.Second)
		require.Equal(c, []string{"0 [0 2 4] unknown", "1 [1 3 5] unknown"}, say(o.Standings()))
		require.Equal(c, 2, o.Partitions())
		c.Leader(5, 2*silence)
		c.Pass(time.Second)
		require.Equal(c, []string{"0 [0 2 4] a", "1 [1 3 5] a"}, say(o.Standings()))
		require.Equal(c, say(o.Standings()), say(a.Standings()))
		first := o.Standings()[0].Holder
		holder, ok := o.Holder(4)
		require.True(c, ok)
		require.Equal(c, holder, first)

		b := c.Work("b", two)
		c.Pass(time.Second)
		require.NoError(c, a.Transfer(context.Background(), 2, "b"))
		c.Pass(100 * time.Millisecond)
		require.Equal(c, []string{"0 [0 4] a", "0 [2] b", "1 [1 3 5] a"}, say(o.Standings()))
		c.Crash(a)
		c.Crash(b)
		c.Pass(20 * time.Second)
		require.Equal(c, []string{"0 [0 2 4] vacant", "1 [1 3 5] vacant"}, say(o.Standings()), "by the silence of two holders")
		require.NoError(c, o.SetRoles(2))
		require.Equal(c, []string{"0 [0] vacant", "1 [1] vacant"}, say(o.Standings()))
		require.NoError(c, o.Close())
		require.Nil(c, o.Standings())
	})
}

// In non-exclusive mode nobody is told who leads.
func TestAccessors(t *testing.T) {
	simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
		a := c.Work("a", func(cfg *neli.Config) { cfg.Mode, cfg.Partitions = neli.NonExclusive, 3 })
		c.Leader(0, time.Minute)
		require.Nil(c, a.Standings())
		require.Equal(c, "app", a.Group())
		require.Equal(c, 18*time.Second, a.HeartbeatTimeout())
		require.Equal(c, 3, a.Partitions())
		require.Equal(c, neli.NonExclusive, a.Mode())
		require.Equal(c, neli.Assigned, a.Nomination())
	})
}

// What is written as JSON has words, seconds and ranges, and can be read again.
func TestStandingsAsJSON(t *testing.T) {
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	holder := neli.Holder{Name: "<a>", Member: "id", Token: 17, Since: at, Seen: at.Add(time.Second), Age: 1500 * time.Millisecond}
	text := `{"name":"\u003ca\u003e","member":"id","token":17,"since":"2026-11-22T10:00:00Z","seen":"2026-11-22T10:00:01Z","age":1.5}`
	requireJSON(t, text, holder)
	requireJSON(t, `{"name":"b","id":"x","self":true,"nominated":true,"priority":-3,"heard":"2026-11-22T10:00:00Z","age":0.25}`,
		neli.Member{Name: "b", ID: "x", Self: true, Nominated: true, Priority: -3, Heard: at, Age: 250 * time.Millisecond})
	requireJSON(t, `{"partition":2,"status":"vacant","roles":"","count":0}`, neli.Standing{Partition: 2, Status: neli.Vacant})

	var s neli.Standing
	held := `{"partition":1,"status":"held","holder":` + text + `,"roles":"0-3,5,7-8","count":7}`
	require.NoError(t, json.Unmarshal([]byte(held), &s))
	require.Equal(t, []int{0, 1, 2, 3, 5, 7, 8}, slices.Collect(s.Roles()))
	requireJSON(t, held, s)

	for _, bad := range []string{`{"status":"led"}`, `{"roles":"4-3"}`, `{"roles":"0-1000000"}`, `{"roles":"3,3"}`, `{"roles":"x"}`,
		`{"roles":"-1"}`, `{"holder":{"age":1e300}}`, `{"holder":{"age":"1s"}}`} {
		require.Error(t, json.Unmarshal([]byte(bad), &s), bad)
	}
}

func requireJSON[T any](t *testing.T, want string, of T) {
	t.Helper()
	b, err := json.Marshal(of)
	require.NoError(t, err)
	require.Equal(t, want, string(b))
	var back T
	require.NoError(t, json.Unmarshal(b, &back))
	require.Equal(t, of, back)
}

// What was written is read again, as where a process is given its parameters as JSON.
func TestTextsOfEnumerationsAreReadAgain(t *testing.T) {
	type all struct {
		Mode       neli.Mode
		Nomination neli.Nomination
		Status     neli.Status
		State      neli.State
		Rebalance  neli.Rebalance
		Reason     neli.Reason
	}
	for r := neli.ReasonElected; r <= neli.ReasonFatal; r++ {
		want := all{neli.NonExclusive, neli.Assigned, neli.Held, neli.StateFailed, neli.RebalanceOff, r}
		b, err := json.Marshal(want)
		require.NoError(t, err)
		var got all
		require.NoError(t, json.Unmarshal(b, &got))
		require.Equal(t, want, got)
	}
	for _, of := range []interface{ UnmarshalText([]byte) error }{new(neli.Mode), new(neli.Nomination), new(neli.Status),
		new(neli.State), new(neli.Rebalance), new(neli.Reason)} {
		require.ErrorContains(t, of.UnmarshalText([]byte("<b>")), `"<b>"`)
	}
}

// The texts of enumerations are what metrics and JSON have: words of small letters,
// digits and underscores. What is none of the constants has no text.
func TestTextsOfEnumerations(t *testing.T) {
	for want, of := range map[string]interface{ MarshalText() ([]byte, error) }{
		"unknown": neli.Unknown, "vacant": neli.Vacant, "held": neli.Held,
		"exclusive": neli.Exclusive, "non_exclusive": neli.NonExclusive,
		"open": neli.Open, "assigned": neli.Assigned,
		"live": neli.StateLive, "closing": neli.StateClosing, "closed": neli.StateClosed, "failed": neli.StateFailed,
		"on": neli.RebalanceOn, "off": neli.RebalanceOff,
		"elected": neli.ReasonElected, "not_pulsed": neli.ReasonNotPulsed, "roles_changed": neli.ReasonRoles,
		"log_reset": neli.ReasonLogReset, "stepped_down": neli.ReasonSteppedDown,
	} {
		b, err := of.MarshalText()
		require.NoError(t, err)
		require.Equal(t, want, string(b))
	}
	for r := neli.ReasonElected; r <= neli.ReasonFatal; r++ {
		b, err := r.MarshalText()
		require.NoError(t, err)
		require.Regexp(t, `^[a-z]+(_[a-z]+)*$`, string(b))
	}
	for _, of := range []interface{ MarshalText() ([]byte, error) }{neli.Status(3), neli.Status(-1), neli.Mode(2), neli.Nomination(2),
		neli.State(4), neli.Rebalance(2),
		neli.ReasonFatal + 1, neli.Reason(-1)} {
		_, err := of.MarshalText()
		require.ErrorContains(t, err, "is none")
	}
}
