package roster

import (
	"fmt"
	"testing"
	"time"

	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

// hears is Members that get Hellos that were said while this process was running.
type hears struct{ Members }

func heard(partitions int) *hears {
	h := &hears{NewMembers()}
	h.Open(partitions)
	return h
}

var (
	wantsAll  = lease.Announcement{Roles: 9, Period: HelloEvery}
	wantsNone = lease.Announcement{Roles: 9, Period: HelloEvery, Wants: []int{}}
	leaves    = lease.Announcement{Leaving: true}
)

func wanting(partitions ...int) lease.Announcement {
	return lease.Announcement{Roles: 9, Period: HelloEvery, Wants: partitions}
}

func (h *hears) says(id string, a lease.Announcement, after time.Duration) (unknown, changed bool) {
	return h.Announced(id, "name of "+id, &a, true, at(after))
}

func (h *hears) expired(after time.Duration) (n int) {
	h.Expire(at(after), func() { n++ })
	return n
}

func TestMemberExpiresByThePeriodThatItAnnounced(t *testing.T) {
	h := heard(1)
	h.says("quick", wantsAll, 0)
	slow := wantsAll
	slow.Period = time.Minute
	h.says("slow", slow, 0)
	hasty := wantsAll
	hasty.Period = time.Millisecond
	h.says("hasty", hasty, 0)
	require.Zero(t, h.expired(3*HelloEvery))
	require.Equal(t, 2, h.expired(3*HelloEvery+1))
	require.Contains(t, h.by, "slow")
	h.Alive("slow", at(time.Minute)) // whatever it wrote
	require.Zero(t, h.expired(4*time.Minute))
	require.Equal(t, 1, h.expired(4*time.Minute+1))
	require.Empty(t, h.by)
}

func TestMembersAreBounded(t *testing.T) {
	h := heard(4)
	for i := range MaxMembers + 100 {
		h.says(fmt.Sprint("p", i), wanting(1), time.Duration(i))
	}
	require.Len(t, h.by, MaxMembers)
	require.NotContains(t, h.by, "p99", "the oldest are forgotten")
	require.Contains(t, h.by, "p100")
	huge := make([]int, 30_000)
	for i := range huge {
		huge[i] = i - 5
	}
	h.says("p200", wanting(huge...), time.Second)
	require.Len(t, h.wants, 4, "what does not exist is not wanted")
	for i := range MaxMembers + 100 {
		h.says(fmt.Sprint("q", i), leaves, time.Second)
	}
	require.LessOrEqual(t, len(h.left), MaxMembers)
}

// A member that has left does not come back by an earlier Hello in another log.
func TestMemberThatLeftStaysAway(t *testing.T) {
	h := heard(1)
	h.says("x", wantsAll, 0)
	h.says("x", leaves, time.Second)
	require.Empty(t, h.by)
	unknown, changed := h.says("x", wantsAll, 2*time.Second)
	require.False(t, unknown || changed, "what it said before it left counts for nothing")
	require.Empty(t, h.by)
	h.expired(3*maxHelloPeriod + time.Second)
	require.Len(t, h.left, 1)
	h.expired(3*maxHelloPeriod + time.Second + 1)
	require.Empty(t, h.left, "it is remembered for a while only")
}

func TestMemberAnnounced(t *testing.T) {
	h := heard(1)
	tells := func(unknown, changed bool, a lease.Announcement, why string) {
		t.Helper()
		u, c := h.says("x", a, 0)
		require.Equal(t, [2]bool{unknown, changed}, [2]bool{u, c}, why)
	}
	tells(true, true, wantsAll, "a newcomer")
	tells(false, false, wantsAll, "nothing new")
	more := wantsAll
	more.Priority = -7
	tells(false, true, more, "another priority")
	require.Equal(t, -7, h.by["x"].priority)
	turns := h.Changes()
	more.Advertise, more.Zone = "a:1", "z"
	tells(false, false, more, "placement does not depend on them")
	require.Equal(t, turns+1, h.Changes(), "but what is shown does")
	require.Equal(t, []string{"a:1", "z"}, []string{h.Known("x").Advertise, h.Known("x").Zone})
	require.Zero(t, h.Known("y"))
	more.Prepares = &lease.Prepares{Most: 3, For: time.Second}
	tells(false, false, more, "placement does not depend on it")
	p, ok := h.Prepares("x")
	require.True(t, ok)
	require.Equal(t, *more.Prepares, p)
	_, ok = h.Prepares("y")
	require.False(t, ok)
	more.Roles = 3
	tells(false, true, more, "another R")
	more.Wants = []int{}
	tells(false, true, more, "it wants nothing any more")
	require.False(t, h.Takes("x"))
	require.True(t, h.Suspect("x"))
	require.False(t, h.Suspect("x"), "it is already")
	require.False(t, h.Suspect("nobody"))
	more.Wants = nil
	tells(false, true, more, "it is heard again")
	require.True(t, h.Takes("x"))

	u, _ := h.Announced("old", "", &wantsAll, false, at(0))
	require.True(t, u)
	require.False(t, h.Takes("old"), "it was said before this process came")
	h.says("old", wantsAll, 0)
	require.True(t, h.Takes("old"))
}

// A member's time counts from the moment since which it has always been nominated and has let no lease run out.
func TestMemberSince(t *testing.T) {
	for _, c := range []struct {
		name  string
		words []lease.Announcement // one every five seconds
		since int
	}{
		{"the first word", []lease.Announcement{wantsAll, wantsAll, wantsAll}, 0},
		{"wanting less is no break", []lease.Announcement{wantsAll, wanting(2), wantsAll}, 0},
		{"it did not contend at first", []lease.Announcement{wantsNone, wantsAll, wantsAll}, 1},
		{"it was unhealthy once", []lease.Announcement{wantsAll, wantsNone, wantsAll, wantsAll}, 2},
	} {
		h := heard(4)
		for i, a := range c.words {
			h.says("x", a, time.Duration(i)*5*time.Second)
		}
		require.Equal(t, at(time.Duration(c.since)*5*time.Second).Mono, h.by["x"].since, c.name)
	}
	h := heard(1)
	h.says("x", wantsAll, 0)
	h.Suspect("x")
	h.says("x", wantsAll, 8*time.Second)
	h.says("x", wantsAll, 13*time.Second)
	require.Equal(t, at(8*time.Second).Mono, h.by["x"].since, "who lets a lease lapse was not there")
	for i, lapsed := range []bool{false, true} { // only read late, or perhaps lapsed
		h.Suspect("x")
		require.True(t, h.Revive("x", lapsed, at(15*time.Second)))
		require.False(t, h.Suspected("x") || h.Revive("x", lapsed, at(0)) || h.Revive("nobody", true, at(0)))
		require.Equal(t, at([]time.Duration{8 * time.Second, 15 * time.Second}[i]).Mono, h.by["x"].since)
	}
}

func TestMembersFind(t *testing.T) {
	h := heard(1)
	for id, name := range map[string]string{"1": "one", "2": "twin", "3": "twin", "4": "5", "5": "five", "6": "sick", "7": "mixed", "8": "mixed", "9": "me"} {
		h.Announced(id, name, &wantsAll, true, at(0))
	}
	h.Announced("6", "sick", &wantsNone, true, at(0))
	h.Suspect("7")
	self := Self{"0", "self"}
	for to, want := range map[string]string{
		"1": "1", "one": "1", "2": "2", "3": "3", "five": "5",
		"5":    "5", // an id goes before a name
		"sick": "", "6": "",
		"mixed": "8", // of two one would claim
		"7":     "",
		"":      "", "x": "",
		"0": "0", "self": "0",
	} {
		id, err := h.Find(to, self, at(0))
		require.NoError(t, err, to)
		require.Equal(t, want, id, to)
	}
	for _, self := range []Self{{"0", "self"}, {"0", "me"}} {
		_, err := h.Find(map[string]string{"self": "twin", "me": "me"}[self.Name], self, at(0))
		require.ErrorIs(t, err, ErrNoMember)
		require.ErrorContains(t, err, "2 members have this name, use an id: "+map[string]string{"self": "2, 3", "me": "0, 9"}[self.Name])
	}
	require.True(t, h.Wanting("1", 8))
	require.False(t, h.Wanting("1", 9), "it wants nine roles")
	require.False(t, h.Wanting("x", 0))
}

// A process that crashed, and was started again under its name, has left a member that says nothing any more.
func TestMembersFindTheOneThatIsNotOverdue(t *testing.T) {
	const overdue = 3 * HelloEvery / 2
	slow := wantsAll
	slow.Period = 20 * time.Second
	for _, c := range []struct {
		name  string
		old   lease.Announcement
		last  time.Duration // when the old one was last heard; the new one is heard at 0
		after time.Duration
		found string // "": an error
	}{
		{"just restarted", wantsAll, -time.Second, 0, ""},
		{"not overdue yet", wantsAll, 0, overdue - 1, ""},
		{"overdue", wantsAll, 0, overdue, "new"},
		{"overdue when the new one came", wantsAll, -overdue, 0, "new"},
		{"it says Hello less often", slow, 0, 29 * time.Second, ""},
		{"it says Hello less often, and is overdue", slow, 0, 30 * time.Second, "new"},
	} {
		h := heard(1)
		h.Announced("old", "host", &c.old, true, at(c.last))
		h.Announced("new", "host", &wantsAll, true, at(0))
		h.Alive("new", at(c.after))
		id, err := h.Find("host", Self{"me", "other"}, at(c.after))
		require.Equal(t, c.found, id, c.name)
		require.Equal(t, c.found == "", err != nil, c.name)
		require.Equal(t, c.found != "", h.Means("host", Self{"new", "host"}, at(c.after)), "whether the name means the new one alone: %s", c.name)
	}
	h := heard(1)
	for _, id := range []string{"a", "b"} {
		h.Announced(id, "host", &wantsAll, true, at(0))
	}
	_, err := h.Find("host", Self{"me", "other"}, at(overdue))
	require.ErrorIs(t, err, ErrNoMember, "both are overdue")
}

func TestMembersWantedBy(t *testing.T) {
	type word struct {
		id string
		a  lease.Announcement
	}
	for _, c := range []struct {
		name  string
		words []word
		after time.Duration
		ready bool
	}{
		{"alone: there is nobody to wait for", nil, 0, true},
		{"another wants it", []word{{"x", wanting(1, 2)}}, 0, true},
		{"another wants all", []word{{"x", wantsAll}}, 0, true},
		{"another wants others", []word{{"x", wanting(1, 3)}}, 0, false},
		{"another wants none yet", []word{{"x", wantsNone}}, 0, false},
		{"one of many wants it", []word{{"x", wanting(1)}, {"y", wanting(2)}, {"z", wanting(3)}}, 0, true},
		{"wanted it, and does not any more", []word{{"x", wanting(2)}, {"x", wanting(3)}}, 0, false},
		{"wanted it and left; nobody is there", []word{{"x", wanting(2)}, {"x", leaves}}, 0, true},
		{"who wanted it left, another is there", []word{{"x", wanting(2)}, {"y", wanting(1)}, {"x", leaves}}, 0, false},
		{"heard of as long ago as three Hellos take", []word{{"x", wanting(1)}}, 3 * HelloEvery, false},
		{"gone without a word: nobody is there", []word{{"x", wanting(1)}}, 3*HelloEvery + 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := heard(4)
			for _, w := range c.words {
				h.says(w.id, w.a, 0)
			}
			h.expired(c.after)
			require.Equal(t, c.ready, h.WantedBy(2, at(0)))
		})
	}
	h := heard(4)
	h.says("x", wanting(2), 0)
	require.False(t, h.WantedBy(2, at(1)), "said before this process was nominated")
	h.says("x", wanting(2), 2)
	require.True(t, h.WantedBy(2, at(1)))
}
