package neli

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// heardOf is peers that have heard all these now, each while this process was there.
func heardOf(now instant, rs ...record) *peers {
	ps := newPeers(4)
	for _, r := range rs {
		ps.hear(r, "me", now)
		ps.confirm(r.member)
	}
	return &ps
}

func named(member, name string) record {
	r := hello(member)
	r.name = name
	return r
}

func idle(member string) record {
	r := hello(member)
	r.wants = []int{}
	return r
}

func TestPeersHearPriority(t *testing.T) {
	r := hello("x")
	r.priority = 7
	ps := heardOf(instant{}, r)
	require.Equal(t, 7, ps.heard["x"].priority)
	require.Equal(t, 7, ps.list(instant{})[0].Priority)
	r.priority = -2
	ps.hear(r, "me", instant{})
	require.Equal(t, -2, ps.heard["x"].priority, "the last word counts")
}

func TestPeersHearTellsOfNewcomers(t *testing.T) {
	ps := newPeers(4)
	bye := hello("x")
	bye.leaving = true
	require.False(t, ps.hear(hello("me"), "me", instant{}), "oneself")
	require.False(t, ps.hear(bye, "me", instant{}), "one that leaves")
	require.True(t, ps.hear(hello("x"), "me", instant{}))
	require.False(t, ps.hear(hello("x"), "me", instant{}))
	require.False(t, ps.hear(bye, "me", instant{}))
	require.True(t, ps.hear(hello("x"), "me", instant{}), "back again")
}

// A member is steady since it has been nominated without a break.
func TestPeersSince(t *testing.T) {
	at := func(s int) instant {
		return instant{mono: time.Hour, wall: time.Hour}.add(time.Duration(s) * time.Second)
	}
	bye := hello("x")
	bye.leaving = true
	type word struct {
		at int
		r  record
	}
	for _, c := range []struct {
		name  string
		words []word
		since int
	}{
		{"the first word", []word{{0, hello("x")}}, 0},
		{"and more of them", []word{{0, hello("x")}, {5, hello("x")}, {10, hello("x")}}, 0},
		{"wanting less is no break", []word{{0, hello("x")}, {5, hello("x", 2)}, {10, hello("x")}}, 0},
		{"it did not contend at first", []word{{0, idle("x")}, {5, hello("x")}, {10, hello("x")}}, 5},
		{"it was unhealthy once", []word{{0, hello("x")}, {5, idle("x")}, {10, hello("x")}, {15, hello("x")}}, 10},
		{"it left", []word{{0, hello("x")}, {5, bye}, {7, hello("x")}}, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			ps := newPeers(4)
			for _, w := range c.words {
				ps.expire(at(w.at))
				ps.hear(w.r, "me", at(w.at))
				ps.confirm("x")
			}
			require.Equal(t, at(c.since), ps.heard["x"].since)
		})
	}
	t.Run("it was taken for gone", func(t *testing.T) {
		ps := heardOf(at(0), hello("x"))
		ps.expire(at(16))
		ps.hear(hello("x"), "me", at(16))
		require.Equal(t, at(16), ps.heard["x"].since)
	})
	t.Run("its lease has lapsed", func(t *testing.T) {
		ps := heardOf(at(0), hello("x"))
		ps.suspect("x")
		ps.hear(hello("x"), "me", at(8))
		require.Equal(t, at(8), ps.heard["x"].since, "who lets a lease lapse was not there")
		ps.hear(hello("x"), "me", at(13))
		require.Equal(t, at(8), ps.heard["x"].since)
	})
}

// A member whose lease has lapsed is no candidate until it is heard again.
func TestPeersSuspect(t *testing.T) {
	ps := heardOf(instant{}, hello("x"), hello("y"))
	ps.suspect("x")
	ps.suspect("nobody")
	require.False(t, ps.takes("x"))
	require.True(t, ps.takes("y"))
	require.NotContains(t, ps.heard, "nobody")
	ps.confirm("x")
	require.False(t, ps.takes("x"), "only its own word ends it")
	ps.hear(hello("x"), "me", instant{})
	require.True(t, ps.takes("x"))
}

func TestPeersTake(t *testing.T) {
	ps := heardOf(instant{}, hello("x"), idle("idle"))
	ps.hear(hello("old"), "me", instant{}) // said before this process came
	for member, want := range map[string]bool{"x": true, "idle": false, "old": false, "me": false, "": false, "z": false} {
		require.Equal(t, want, ps.takes(member), member)
	}
}

func TestPeersFind(t *testing.T) {
	ps := heardOf(instant{}, named("1", "one"), named("2", "twin"), named("3", "twin"), named("4", "5"), named("5", "five"),
		named("6", "sick"), named("7", "mixed"), named("8", "mixed"), named("9", "me"))
	sick := idle("6")
	sick.name = "sick"
	ps.hear(sick, "me", instant{})
	ps.suspect("7")
	for to, want := range map[string]string{
		"1": "1", "one": "1", "2": "2", "3": "3", "twin": "", "five": "5",
		"5":    "5", // an id goes before a name
		"sick": "", "6": "",
		"mixed": "8", // of two one would claim
		"7":     "",
		"me":    "9", // another one has this name
		"":      "", "x": "",
	} {
		require.Equal(t, want, ps.find(to), to)
	}
}

// What was said aside may be read after what was said later.
func TestPeersHearWhatWasSaidAside(t *testing.T) {
	call, answer, bye := hello("x"), hello("x"), hello("x")
	call.to, answer.read, bye.leaving = "me", 7, true
	for _, aside := range []record{call, answer} {
		ps := heardOf(instant{})
		ps.hear(aside, "me", instant{})
		require.Empty(t, ps.heard, "a stranger")
		ps = heardOf(instant{}, hello("x"))
		ps.hear(bye, "me", instant{})
		ps.hear(aside, "me", instant{})
		require.Empty(t, ps.heard, "it has left")
		ps = heardOf(instant{}, idle("x"))
		ps.hear(aside, "me", instant{})
		require.False(t, ps.takes("x"), "it wants nothing")
		ps = heardOf(instant{}, hello("x"))
		ps.hear(aside, "me", instant{mono: 4 * time.Second})
		require.True(t, ps.takes("x"))
		require.Equal(t, 4*time.Second, ps.heard["x"].heard.mono)
	}
}

// When many leave at once, the others have been told to speak more often, and have not
// spoken yet.
func TestPeersExpireByTheFormerPeriod(t *testing.T) {
	ps := newPeers(1)
	for i := range 100 {
		ps.hear(hello(fmt.Sprint(i)), "me", instant{})
	}
	for i := range 90 {
		bye := hello(fmt.Sprint(i))
		bye.leaving = true
		ps.hear(bye, "me", instant{})
	}
	ps.expire(instant{mono: 3 * helloPeriod(90)})
	require.Len(t, ps.heard, 10)
	for id := range ps.heard {
		ps.hear(hello(id), "me", instant{mono: 3 * helloPeriod(90)})
	}
	ps.expire(instant{mono: 3*helloPeriod(90) + 3*helloPeriod(10) + 1})
	require.Empty(t, ps.heard)
}
