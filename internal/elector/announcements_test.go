package elector

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/channel"
	"github.com/goneli/neli/internal/elector/nominate"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

// speaks returns when a channel next has something to say.
func (k *rooms) speaks(c *channel.Channel, now clock.Instant) clock.Mono {
	due := clock.Mono(clock.Never)
	k.shards.of(c.Index).talkDue(c, k.told(now), func(at clock.Mono) { due = min(due, at) }, now)
	return due
}

// A Hello has all that others need to plan.
func TestHelloContents(t *testing.T) {
	k := newRooms(1, 3, func(s *Settings) { s.Advertise, s.Zone = "a:1", "z" })
	k.desired.Priority = 7
	k.begin()
	c := k.channels[0]
	k.joined("b", 3)
	c.Hello(nil, k.told(k.now).Takes, k.now)
	out := k.out()
	require.Len(t, out, 1)
	require.Equal(t, lease.Hello, out[0].Kind)
	require.Equal(t, &lease.Announcement{Priority: 7, Roles: 3, Period: roster.HelloPeriod(2), Advertise: "a:1", Zone: "z", Caps: true}, out[0].Hello)
	require.Greater(t, c.Announcements.NextHello(), k.now.Mono)
	require.Equal(t, k.now.Mono.Add(roster.HelloPeriod(2)), k.announcer.Due(), "that was the one for all")
	end := k.startup.End(2, false)
	require.Greater(t, end, k.now.Mono, "the first one begins the wait for others that start with it")

	c.Hello(nil, k.told(k.now.Add(time.Millisecond)).Takes, k.now.Add(time.Millisecond))
	require.Equal(t, end, k.startup.End(2, false), "the second one does not")
}

// A Hello into a log that returns nothing is not heard by others, so the announcement to all is still due.
func TestAHelloIntoASilentLogIsNotHeard(t *testing.T) {
	for name, silence := range map[string]func(*channel.Channel){"stalled": stalls, "one is in flight": func(c *channel.Channel) { c.Link.Sent(lease.Hello, 3, clock.Instant{}) }} {
		k := newRooms(1, 3, nil)
		k.begin()
		k.announcer.PutOff(k.now.Mono.Add(time.Millisecond))
		silence(k.channels[0])
		k.channels[0].Hello(k.announcement(nil), k.told(k.now).Takes, k.now)
		require.Len(t, k.out(), 1, name)
		k.flush()
		require.Equal(t, k.now.Mono.Add(time.Millisecond), k.announcer.Due(), name)
	}
}

// A process that will soon claim a role checks that the log works before the holder's lease is over.
// A process that would not claim it does nothing.
func TestAChannelIsGreetedBeforeARoleBecomesFree(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*rooms)
		greets bool
	}{
		"one that would claim":         {func(*rooms) {}, true},
		"one that would not":           {func(k *rooms) { k.desired.Unhealthy = true }, false},
		"one that closes":              {func(k *rooms) { k.desired.Closing = true }, false},
		"an observer":                  {func(k *rooms) { k.set.Observer = true }, false},
		"one that knows the log works": {func(*rooms) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := newRooms(1, 1, nil)
			k.begin()
			ch := k.channels[0]
			k.read(0, k.from("b", 0, lease.Record{Kind: lease.Claim, Fresh: true, Roles: []int32{0}}))
			k.shards.of(ch.Index).noticeSilent(k.told(k.now), k.now)
			freeAt := k.now.MonoOf(k.shards.of(ch.Index).claims.NextSilent())
			require.Greater(t, freeAt, k.now.Mono.Add(k.set.T), "b has a lease")
			c.change(k)
			early := k.now.Add(freeAt.Sub(k.now.Mono) - clock.Stalled(k.set.T))
			if name == "one that knows the log works" {
				works(ch, early)
			}
			k.shards.of(ch.Index).greet(ch, k.told(early.Add(-time.Millisecond)), early.Add(-time.Millisecond))
			require.Empty(t, k.out())
			k.shards.of(ch.Index).greet(ch, k.told(early), early)
			require.Equal(t, c.greets, len(k.out()) == 1)
		})
	}
}

// Beats that were read since have extended the lease: no Hello is said for a lease that goes on.
func TestExtendedLeaseNeedsNoHello(t *testing.T) {
	k := newRooms(1, 1, nil)
	k.begin()
	ch := k.channels[0]
	k.read(0, k.from("b", 0, lease.Record{Kind: lease.Claim, Fresh: true, Roles: []int32{0}}))
	k.shards.of(ch.Index).noticeSilent(k.told(k.now), k.now)
	early := k.now.Add(k.now.MonoOf(k.shards.of(ch.Index).claims.NextSilent()).Sub(k.now.Mono) - clock.Stalled(k.set.T))
	k.now = early
	k.read(0, k.from("b", 0, lease.Record{Kind: lease.Beat}))
	k.shards.of(ch.Index).greet(ch, k.told(early), early)
	require.Empty(t, k.out())
	at, ok := k.shards.of(ch.Index).greetDue(ch, early)
	require.True(t, ok)
	require.Greater(t, at, early.Mono, "it is greeted later")
}

// A process that would claim roles handed to it answers a Ping. The Pong tells what it wants.
func TestProcessesThatWouldClaimAnswerPings(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*rooms)
		answers bool
	}{
		"one that would claim":                {func(*rooms) {}, true},
		"one that closes":                     {func(k *rooms) { k.desired.Closing = true }, false},
		"one that has stepped down":           {func(k *rooms) { k.desired.Away = clock.Never }, false},
		"one whose application has hung":      {func(k *rooms) { k.alive = false }, false},
		"an observer":                         {func(k *rooms) { k.set.Observer = true }, false},
		"one that a nominator may not choose": {func(k *rooms) { k.set.Nominated = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := newRooms(2, 2, nil)
			k.begin()
			ping := k.from("b", 1, lease.Record{Kind: lease.Ping, To: "a"})
			c.change(k)
			k.shards.of(1).pong(k.channels[1], 7, &ping, k.tell(k.now))
			if !c.answers {
				k.flush()
				require.Empty(t, k.ready.Append)
				return
			}
			k.flush()
			require.Len(t, k.ready.Append, 1)
			require.Equal(t, 1, k.ready.Append[0].Partition, "in the same log")
			r := k.ready.Append[0].Record
			require.Equal(t, lease.Pong, r.Kind)
			require.Equal(t, "b", r.To)
			require.Equal(t, int64(7), r.Ping)
			require.Equal(t, 2, r.Hello.Roles)
		})
	}
}

// When the records that were in the log are read, vacancies begin to count. A process that has
// read from farther back then writes a Snapshot for others that look for one.
func TestAChannelCatchesUp(t *testing.T) {
	for _, again := range []bool{false, true} {
		k := newRooms(1, 2, nil)
		c := k.channels[0]
		k.shards.of(c.Index).leases.Read(0, Entry{Reset: true, Whole: true, End: 1}, nil, nil, k.now)
		c.Restart(1, k.now)
		k.shards.of(c.Index).begun = true
		c.Announcements.BeganBack(again, false)
		k.shards.of(c.Index).catchUp(c, k.told(k.now), k.now)
		require.False(t, k.channels.CaughtUp(), "a record was in the log")
		require.LessOrEqual(t, k.speaks(c, k.now), k.now.Mono.Add(k.set.T), "it waits no longer for it")
		k.read(0, k.from("b", 0, lease.Record{Kind: lease.Claim, Fresh: true, Roles: []int32{0}}))
		require.Zero(t, k.shards.of(c.Index).vacancyStats.Vacant())
		k.shards.of(c.Index).catchUp(c, k.told(k.now), k.now)
		require.True(t, k.channels.CaughtUp())
		require.Equal(t, 1, k.shards.of(c.Index).vacancyStats.Vacant(), "role 1")
		require.Equal(t, again, c.Announcements.Answers(), "who has looked back tells others")
	}
}

// Whatever is read and whatever time passes: a channel that is stepped says nothing before talkDue,
// so that a process that sleeps until then loses nothing.
func TestAChannelSaysNothingBeforeItIsDue(t *testing.T) {
	for name, prepare := range map[string]func(*rooms, *channel.Channel){
		"an empty log": func(*rooms, *channel.Channel) {},
		"a newcomer": func(k *rooms, c *channel.Channel) {
			k.read(0, k.from("b", 0, lease.Record{Kind: lease.Claim, Fresh: true, Roles: []int32{0}}))
			k.desired.Unhealthy = true
			c.Announcements.Offer(after(170*time.Millisecond), 0, 5*time.Second, k.now)
		},
		"a holder": func(k *rooms, _ *channel.Channel) {
			k.read(0, k.from("b", 0, lease.Record{Kind: lease.Claim, Fresh: true, Roles: []int32{0}}))
		},
		"records that are not read yet": func(k *rooms, c *channel.Channel) { c.Restart(4, k.now) },
		"nobody answers": func(k *rooms, c *channel.Channel) {
			c.Log.Begin(5, false, k.now)
			c.Restart(5, k.now)
			c.Log.Skip(5, k.now)
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newRooms(1, 1, nil)
			k.begin()
			c := k.channels[0]
			prepare(k, c)
			k.shards.of(c.Index).noticeSilent(k.told(k.now), k.now)
			said := 0
			for range 400 {
				due := k.speaks(c, k.now)
				k.shards.of(c.Index).catchUp(c, k.told(k.now), k.now)
				k.shards.of(c.Index).greet(c, k.told(k.now), k.now)
				c.LookBack(k.told(k.now).Takes, k.now)
				c.Answer(k.tell(k.now))
				k.flush()
				if len(k.ready.Append)+len(k.ready.Back) > 0 {
					require.LessOrEqual(t, due, k.now.Mono)
					said++
				}
				k.ready = Ready{}
				k.now = k.now.Add(5 * time.Millisecond)
			}
			require.Positive(t, said)
		})
	}
}

// A process announces that it wants all roles, none, or those of the partitions for which it is nominated.
func TestAnnouncedWants(t *testing.T) {
	k := newRooms(3, 3, nil)
	require.Nil(t, k.wants(k.now))
	for name, change := range map[string]func(){
		"it closes":                func() { k.desired.Closing = true },
		"it is unwell":             func() { k.desired.Unhealthy = true },
		"its application has hung": func() { k.alive = false },
		"it has stepped down":      func() { k.desired.Away = k.now.Mono + 1 },
	} {
		was := k.desired
		change()
		require.Equal(t, []int{}, k.wants(k.now), name)
		k.desired, k.alive = was, true
	}
	k.set.Nominated = true
	for i, s := range k.shards {
		s.nomination = nominate.NewNomination(i != 1)
	}
	require.Equal(t, []int{0, 2}, k.wants(k.now))
	k.desired.Unhealthy = true
	require.Equal(t, []int{0, 2}, k.wants(k.now), "the nominator decides")
	k.desired.Closing = true
	require.Empty(t, k.wants(k.now))
	require.True(t, k.announcement(nil).Leaving)
}
