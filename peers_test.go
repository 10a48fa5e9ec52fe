package neli

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func hello(member string, wants ...int) record {
	return record{kind: kindHello, group: "g", member: member, name: "name of " + member, token: noToken, read: -1, wants: wants}
}

func TestPeersReady(t *testing.T) {
	begin := instant{mono: time.Hour, wall: time.Hour}
	leaving := hello("x")
	leaving.leaving = true
	for _, c := range []struct {
		name   string
		hellos []record
		after  time.Duration
		ready  bool
	}{
		{"alone: there is nobody to wait for", nil, 0, true},
		{"own words do not count", []record{hello("me", 2)}, 0, true},
		{"another wants it", []record{hello("x", 1, 2)}, 0, true},
		{"another wants all", []record{hello("x")}, 0, true},
		{"another wants others", []record{hello("x", 1, 3)}, 0, false},
		{"another wants none yet", []record{{kind: kindHello, member: "x", read: -1, wants: []int{}}}, 0, false},
		{"one of many wants it", []record{hello("x", 1), hello("y", 2), hello("z", 3)}, 0, true},
		{"wanted it, and does not any more", []record{hello("x", 2), hello("x", 3)}, 0, false},
		{"now wants it", []record{hello("x", 3), hello("x", 2)}, 0, true},
		{"wanted it and left; nobody is there", []record{hello("x", 2), leaving}, 0, true},
		{"the one who wanted it left, another is there", []record{hello("x", 2), hello("y", 1), leaving}, 0, false},
		{"heard of as long ago as three hellos take", []record{hello("x", 1)}, 3 * helloEvery, false},
		{"gone without a word: nobody is there", []record{hello("x", 1)}, 3*helloEvery + 1, true},
		{"who wanted it is gone without a word", []record{hello("x", 2)}, 3*helloEvery + 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ps := newPeers(4)
			for _, r := range c.hellos {
				ps.hear(r, "me", begin)
			}
			ps.expire(begin.add(c.after))
			require.Equal(t, c.ready, ps.ready(2, begin))
		})
	}
	t.Run("said before this process was nominated", func(t *testing.T) {
		ps := newPeers(4)
		ps.hear(hello("x", 2), "me", begin)
		require.False(t, ps.ready(2, begin.add(1)))
		ps.hear(hello("x", 2), "me", begin.add(2))
		require.True(t, ps.ready(2, begin.add(1)))
	})
	t.Run("one is gone, another was heard of again", func(t *testing.T) {
		ps := newPeers(4)
		ps.hear(hello("x", 2), "me", begin)
		ps.hear(hello("y", 1), "me", begin)
		ps.hear(hello("y", 1), "me", begin.add(2*helloEvery))
		ps.expire(begin.add(4 * helloEvery))
		require.False(t, ps.ready(2, begin))
		require.NotContains(t, ps.heard, "x", "still remembered")
	})
}

func TestPeersAreBounded(t *testing.T) {
	ps := newPeers(4)
	for i := range maxPeers + 100 {
		ps.hear(hello(fmt.Sprint("p", i), 1), "me", instant{})
	}
	require.Len(t, ps.heard, maxPeers)
	ps.hear(hello("p7", 2), "me", instant{})
	require.Equal(t, "p7", ps.wants[2].member, "who is known is still listened to")
	ps.hear(hello("p7", -1, 4, 1<<40), "me", instant{})
	require.Empty(t, ps.wants[2].member, "what does not exist is not wanted")
	leaving := hello("p7")
	leaving.leaving = true
	ps.hear(leaving, "me", instant{})
	ps.hear(hello("newcomer", 1), "me", instant{})
	require.Contains(t, ps.heard, "newcomer", "who leaves makes room")
}

func TestTempoRoundTrip(t *testing.T) {
	at := func(d time.Duration) instant { return instant{mono: time.Hour + d, wall: time.Hour + d} }
	tempo := tempo{rtt: 8 * time.Millisecond, longest: time.Second}
	tempo.back(at(0), at(16*time.Millisecond))
	require.Equal(t, 9*time.Millisecond, tempo.rtt)
	require.Equal(t, at(16*time.Millisecond), tempo.own)
	tempo.back(at(0), at(time.Minute))
	require.Equal(t, 9*time.Millisecond, tempo.rtt, "a record that was held up is no round trip")
	require.Equal(t, at(time.Minute), tempo.own)
}

func TestTempoDoubtful(t *testing.T) {
	const wait = 5 * time.Second
	at := func(d time.Duration) instant { return instant{mono: time.Hour + d, wall: time.Hour + d} }
	tempo := tempo{own: at(0)}
	require.False(t, tempo.doubtful(at(wait-1), true, wait))
	require.True(t, tempo.doubtful(at(wait), true, wait))
	require.False(t, tempo.doubtful(at(wait+1), true, wait), "asked already")
	require.False(t, tempo.doubtful(at(2*wait-1), true, wait))
	require.True(t, tempo.doubtful(at(2*wait), true, wait), "still nothing")
	tempo.back(at(2*wait), at(2*wait))
	require.False(t, tempo.doubtful(at(3*wait-1), true, wait), "an own record came back")
	require.True(t, tempo.doubtful(at(3*wait), true, wait))

	require.False(t, tempo.doubtful(at(100*wait), false, wait), "nothing is expected")
	require.False(t, tempo.doubtful(at(101*wait-1), true, wait), "expected from here only")
	require.True(t, tempo.doubtful(at(101*wait), true, wait))
}

func TestSkippedRecordsAreCountedAndLoggedOnce(t *testing.T) {
	var out strings.Builder
	n := notes{log: slog.New(slog.NewTextHandler(&out, nil))}
	var k skipped
	var s Stats
	for i := range 3 {
		e := logEntry{partition: 4, offset: int64(40 + i)}
		k.count(&s, &n, errForeign, e)
		k.count(&s, &n, errNewer, e)
		k.count(&s, &n, fmt.Errorf("%w: rubbish", errMalformed), e)
		k.count(&s, &n, errors.New("unforeseen"), e)
	}
	require.Equal(t, Stats{Foreign: 3, Newer: 3, Malformed: 6}, s)
	require.Empty(t, out.String(), "nothing is written under the lock")
	n.take()()
	require.Equal(t, 2, strings.Count(out.String(), "\n"), out.String())
	require.Equal(t, 1, strings.Count(out.String(), "newer version"))
	require.Contains(t, out.String(), `malformed records; logged once" partition=4 offset=40`)
	n.take()()
	require.Equal(t, 2, strings.Count(out.String(), "\n"), "written twice")
}

// A woken process says nothing of what it wants before the group could tell it
// that its session is over; one that was merely late goes on.
func TestTempoWoke(t *testing.T) {
	for _, c := range []struct {
		late, hello, want time.Duration
	}{
		{0, 10 * time.Second, 10 * time.Second},
		{time.Second, 10 * time.Second, 10 * time.Second},
		{3 * time.Second, 10 * time.Second, 15 * time.Second},
		{3 * time.Second, 20 * time.Second, 20 * time.Second},
	} {
		tempo := tempo{helloAt: c.hello}
		tempo.woke(instant{mono: 13 * time.Second}, 13*time.Second-c.late, 2*time.Second)
		require.Equal(t, c.want, tempo.helloAt, "late by %v", c.late)
	}
	fresh := tempo{}
	fresh.woke(instant{mono: time.Hour}, 0, time.Second)
	require.Zero(t, fresh.helloAt, "the first step is never late")
}

// However much the Hellos of a topic want, what is remembered is bounded by the
// number of partitions and of members.
func TestPeersMemoryIsBounded(t *testing.T) {
	const m = 8
	ps := newPeers(m)
	huge := make([]int, 30_000)
	for i := range huge {
		huge[i] = i % (2 * m)
	}
	for i := range 100 {
		r, err := decode(hello(fmt.Sprint("p", i), huge...).encode(), "g")
		if err == nil {
			ps.hear(r, "me", instant{})
		}
	}
	require.Len(t, ps.wants, m)
	big, err := decode(hello("x", huge[:20_000]...).encode(), "g")
	require.NoError(t, err, "as large as a Hello may be")
	ps.hear(big, "me", instant{mono: 1})
	require.Len(t, ps.wants, m)
	require.Len(t, ps.heard, 1, "the others were too large to be records")
	for p := range m {
		require.Equal(t, wish{"x", instant{mono: 1}}, ps.wants[p])
	}
}
