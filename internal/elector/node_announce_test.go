package elector

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

// A process announces itself every five seconds, and sooner when somebody comes, but not twice in a second.
func TestAnnouncements(t *testing.T) {
	w := newWorld(1)
	w.start("a", 1, nil)
	w.pass(26 * time.Second)
	before := len(w.sent(0, "a", lease.Hello))
	w.pass(time.Minute)
	require.InDelta(t, 12, len(w.sent(0, "a", lease.Hello))-before, 1)
	before = len(w.sent(0, "a", lease.Hello))
	for range 5 {
		w.start("b", 1, nil).dead = true // the same one again and again: only the first is news
		w.pass(200 * time.Millisecond)
	}
	w.pass(100 * time.Millisecond)
	require.LessOrEqual(t, len(w.sent(0, "a", lease.Hello))-before, 2)
	require.Greater(t, len(w.sent(0, "a", lease.Hello)), before)
}

// With more logs than roles nobody claims anything in the spare ones, so nobody ever knows their fold.
// No process asks for it again and again. When roles come to live there, all ask.
func TestASpareLogIsGreetedOnce(t *testing.T) {
	const logs = 20
	w := newWorld(logs)
	var members []*actor
	for _, name := range []string{"a", "b", "c"} {
		members = append(members, w.start(name, 1, nil))
	}
	hellos := func() (n int) {
		for p := range w.logs {
			for _, a := range members {
				n += len(w.sent(p, a.set.Name, lease.Hello))
			}
		}
		return n
	}
	w.pass(time.Minute)
	before := hellos()
	w.pass(time.Minute)
	require.InDelta(t, 12*len(members), hellos()-before, 3, "announcements only")

	led := 0
	for _, a := range members {
		a.want(Desired{Roles: logs, Contend: true})
	}
	w.pass(10 * time.Second)
	for _, a := range members {
		led += len(a.leads(logs))
	}
	require.Equal(t, logs, led)
}

// A process does not wait for leases that others may hold in a spare log.
func TestASpareLogIsNotWaitedFor(t *testing.T) {
	w := newWorld(3)
	w.start("a", 1, nil)
	w.pass(10 * time.Second)
	w.head = 1 // so a newcomer cannot know the logs' beginnings
	b := w.start("b", 1, nil)
	w.pass(5 * time.Second)
	require.True(t, b.shards[0].leases.Known())
	for _, note := range b.notes {
		require.NotEqual(t, "waiting for the leases of others", note.Text)
	}
}

// While a Hello is in flight, no other one is sent to the same log, whether to announce or to probe,
// until the first is given up. When the log is back, the announcements go on.
func TestOneHelloAtATime(t *testing.T) {
	w := newWorld(1)
	const lease = 20 * time.Second
	a := w.start("a", 1, func(s *Settings) { s.T, s.HeartbeatInterval = lease, lease/5 })
	w.pass(lease + time.Second)
	w.take()
	a.cut = true
	w.pass(3 * lease)
	require.LessOrEqual(t, w.quiet["a hello"], 4)
	w.take()
	a.cut = false
	w.pass(lease + 20*time.Second)
	require.Greater(t, w.quiet["a hello"], 3)
}

// Members announce themselves at the same time, but no more often: so their Hellos wake the others once.
func TestAnnouncementsInUnison(t *testing.T) {
	w := newWorld(1)
	names := []string{"a", "b", "c", "d"}
	for _, name := range names {
		w.start(name, 1, nil)
	}
	w.pass(10 * time.Second)
	for _, a := range w.actors { // news is said at once
		for _, unhealthy := range []bool{true, false} {
			a.desired.Unhealthy = unhealthy
			a.want(a.desired)
			w.pass(1100 * time.Millisecond)
		}
	}
	w.pass(time.Minute)
	before := len(w.logs[0])
	moments := map[time.Duration]int{}
	for range 60_000 {
		n := len(w.logs[0])
		w.pass(time.Millisecond)
		for _, r := range w.logs[0][n:] {
			if r.Kind == lease.Hello {
				moments[w.now.Truncate(500*time.Millisecond)]++
			}
		}
	}
	hellos := 0
	for _, n := range moments {
		hellos += n
	}
	require.InDelta(t, 12*len(names), hellos, 4, "each said it every five seconds")
	require.InDelta(t, 12, len(moments), 3, "%v", moments)
	require.Less(t, len(w.logs[0])-before, 60+60, "Beats, Hellos, and hardly anything else")
}

// A new priority is announced at once, and all members plan with it.
func TestNewPriorityIsAnnounced(t *testing.T) {
	w := newWorld(1)
	a, b := w.start("a", 3, nil), w.start("b", 3, nil)
	w.pass(20 * time.Second)
	b.desired.Priority = 5
	b.want(b.desired)
	w.pass(1100 * time.Millisecond)
	require.Equal(t, 5, a.members.Known("b").Priority, "later than a second")
	w.pass(5 * time.Second)
	require.Len(t, b.leads(3), 3)
}

// A process that was unwilling between two Hellos says so in the next one, and a second later that
// it is willing again. Otherwise the others would take it for steady.
func TestBriefUnwillingnessIsAnnounced(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 1, nil)
	w.pass(8 * time.Second)
	before := len(a.since(0, lease.Hello))
	for len(a.since(0, lease.Hello)) == before { // so that the next one is not due at once
		w.pass(10 * time.Millisecond)
	}
	w.pass(10 * time.Millisecond)
	before = len(w.sent(0, "a", lease.Hello))
	d := a.desired
	d.Unhealthy = true
	a.want(d)
	w.pass(300 * time.Millisecond)
	d.Unhealthy = false
	a.want(d)
	w.pass(4 * time.Second)
	said := w.sent(0, "a", lease.Hello)[before:]
	require.GreaterOrEqual(t, len(said), 2)
	require.Equal(t, []int{}, said[0].Hello.Wants)
	require.Nil(t, said[1].Hello.Wants)
}

// A process announces itself in the next reachable log if its home cannot be reached.
func TestAnnouncementsLeaveAnUnreachableHome(t *testing.T) {
	w := newWorld(3)
	a := w.start("a", 3, nil)
	w.pass(20 * time.Second)
	home := a.announcer.HomeLog()
	count := func(p int) int { return len(w.sent(p, "a", lease.Hello)) }
	other := (home + 1) % 3
	h, o := count(home), count(other)
	w.pass(20 * time.Second)
	require.Greater(t, count(home), h)
	require.Equal(t, o, count(other))
	a.do(func(now clock.Instant) { stalls(a.channels[home]); a.Tick(now) })
	require.Equal(t, other, a.channels.Reachable(a.announcer.HomeLog()).Index)
	stalls(a.channels[other])
	require.Equal(t, (home+2)%3, a.channels.Reachable(a.announcer.HomeLog()).Index)
	for _, c := range a.channels {
		stalls(c)
	}
	require.Equal(t, other, a.channels.Reachable(a.announcer.HomeLog()).Index, "none is better, and it has said nothing there for longest")
}

// A newcomer that cannot read from the beginning learns from one Snapshot who holds what.
func TestNewcomerIsToldByASnapshot(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 3, nil)
	w.start("b", 3, nil)
	w.start("c", 3, nil)
	w.pass(8 * time.Second)
	snapshots := func() (n int) {
		for _, name := range []string{"a", "b", "c"} {
			n += len(w.sent(0, name, lease.Snapshot))
		}
		return n
	}
	before := snapshots()
	d := w.start("d", 3, nil)
	d.do(func(now clock.Instant) { // it has lost what it had read
		d.Read(Entry{Reset: true, Offset: int64(len(w.logs[0])), End: int64(len(w.logs[0]))}, nil, nil, now)
	})
	require.False(t, d.shards[0].leases.Known())
	w.pass(50 * time.Millisecond)
	require.True(t, d.shards[0].leases.Known(), "the newcomer knows what a Snapshot says")
	require.Equal(t, 1, snapshots()-before, "one answers for all")
	w.pass(a.set.HeartbeatInterval)
	_, ok := d.Holder(0, w.instant())
	require.True(t, ok, "with its next beat at the latest")
}

// After a time in which a process reached no log, it reaches all but its home. It holds nothing,
// so only its Hellos can show that, and they must not all go to its home.
func TestAProcessThatReachesAllButItsHomeIsHeardAgain(t *testing.T) {
	w := newWorld(3)
	a := w.start("a", 3, stays)
	w.pass(20 * time.Second)
	b := w.start("b", 3, stays)
	w.pass(20 * time.Second)
	require.Equal(t, []int{0, 1, 2}, a.leads(3))
	require.NotEmpty(t, a.members.NameOf("b"))
	b.cut = true
	w.pass(30 * time.Second)
	require.Empty(t, a.members.NameOf("b"))
	b.cut, b.cutFrom = false, map[int]bool{b.announcer.HomeLog(): true}
	w.pass(30 * time.Second)
	require.NotEmpty(t, a.members.NameOf("b"), "nobody hears it")
}
