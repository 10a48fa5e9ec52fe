package elector

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/handover"
	"github.com/goneli/neli/internal/elector/told"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/term"
	"github.com/stretchr/testify/require"
)

// only returns the records of a kind.
func only(k lease.Kind, records []lease.Record) (out []lease.Record) {
	for _, r := range records {
		if r.Kind == k {
			out = append(out, r)
		}
	}
	return out
}

// A handover that this process has begun because it was unhealthy is called off when it is healthy
// again, unless the application was asked to finish.
func TestRecoveredShardCallsItsHandoverOff(t *testing.T) {
	for name, asked := range map[string]bool{"not asked": false, "asked": true} {
		t.Run(name, func(t *testing.T) {
			k, s := leading(t, 2, nil)
			k.joined("b", 2)
			k.desired.Unhealthy = true
			k.step(s, k.now)
			require.Equal(t, term.Unhealthy, s.handovers.Of(1).Reason())
			if asked {
				k.now = k.now.Add(k.set.SuccessorWait)
				k.step(s, k.now)
			}
			k.desired.Unhealthy = false
			k.step(s, k.now)
			require.Equal(t, asked, s.handovers.Of(1) != nil)
			require.Equal(t, []int32{0, 1}, s.own.Roles(), "it leads on meanwhile")
			if !asked {
				k.flush()
				require.Equal(t, "handover called off", k.ready.Notes[len(k.ready.Notes)-1].Text)
				require.Empty(t, s.handovers.InProgress())
				require.Empty(t, k.terms.Collect(k.now), "the application hears nothing of it")
			}
		})
	}
}

// An application that was never told of a term has nothing to finish.
func TestUntoldTermIsReleasedAtOnce(t *testing.T) {
	k := newRooms(1, 2, nil)
	k.begin()
	k.pass(2 * time.Second)
	s := k.shards[0]
	require.Equal(t, 2, s.own.Len())
	k.joined("b", 2)
	k.desired.Closing = true
	k.step(s, k.now)
	require.Zero(t, s.own.Len())
	out := only(lease.Release, k.out())
	require.Len(t, out, 1)
	require.Equal(t, "b", out[0].To, "it is likely to be there")
	require.Empty(t, k.terms.Collect(k.now))
}

// A Release goes to each of the shard's logs. It names the successor, if that takes the roles, and
// says why they are released.
func TestReleaseContents(t *testing.T) {
	pinned := handover.NewHandover(term.Transferred, at(0), "b", true)
	pinned.Pin()
	for name, c := range map[string]struct {
		h             *handover.Handover
		to            string
		pinned, moved bool
	}{
		"in nobody's favour":            {nil, "", false, false},
		"because it leaves":             {handover.NewHandover(term.Closing, at(0), "b", true), "b", false, false},
		"for balance":                   {handover.NewHandover(term.Rebalanced, at(0), "b", true), "b", false, true},
		"by a Transfer":                 {pinned, "b", true, false},
		"to one that has gone":          {handover.NewHandover(term.Closing, at(0), "c", true), "", false, false},
		"to one that wants nothing":     {handover.NewHandover(term.Closing, at(0), "d", true), "", false, false},
		"to one that let a lease lapse": {handover.NewHandover(term.Closing, at(0), "e", true), "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			k, s := leading(t, 2, nil)
			k.joined("b", 2)
			k.members.Announced("d", "d", &lease.Announcement{Roles: 2, Wants: []int{}}, true, k.now)
			k.joined("e", 2)
			k.members.Suspect("e")
			s.giveBack([]int32{1, 1}, c.h, term.Closing, k.tell(k.now))
			require.Equal(t, []int32{0}, s.own.Roles())
			out := k.out()
			require.Len(t, out, 1)
			require.Equal(t, c.to, out[0].To)
			require.Equal(t, c.pinned, out[0].Pinned)
			require.Equal(t, c.moved, out[0].Moved)
			k.flush()
			require.True(t, k.closing.Busy(k.now.Add(handover.CloseTail-1)))
			require.True(t, s.main.Announcements.OwesFarewell())
			_, leads := s.leases.Leads(1, k.now)
			require.False(t, leads, "from this moment on")
			s.giveBack(nil, c.h, term.Closing, k.tell(k.now))
			require.Empty(t, k.out(), "nothing is said of nothing")
		})
	}
}

// A closing process in a crowd waits before it names successors; all others name them at once.
func TestOnlyACrowdDelaysNamingSuccessors(t *testing.T) {
	for name, c := range map[string]struct {
		members, left int
		change        func(*rooms)
		waits         bool
	}{
		"it closes in a crowd":                {members: told.FewHolders, waits: true},
		"the crowd has gone before it":        {members: 2, left: told.FewHolders, waits: true},
		"there are few":                       {members: 3},
		"it does not close":                   {members: told.FewHolders, change: func(k *rooms) { k.desired.Closing, k.desired.Unhealthy = false, true }},
		"nobody drives this process any more": {members: told.FewHolders, change: func(k *rooms) { k.desired.Contend = false }},
	} {
		t.Run(name, func(t *testing.T) {
			k, s := leading(t, 1, nil)
			for i := range c.members {
				k.joined(string(rune('b'+i)), 1)
			}
			for i := range c.left {
				k.members.Leave(string(rune('A'+i)), k.now)
			}
			k.desired.Closing = true
			if c.change != nil {
				c.change(k)
			}
			k.announcer.Close(k.now)
			patience := min(k.set.T/4, k.set.SuccessorWait*3/4)
			require.Equal(t, c.waits, k.told(k.now).NameAt == k.now.Mono.Add(patience))
			k.step(s, k.now)
			require.Equal(t, c.waits, s.handovers.Unnamed())
			if c.waits {
				require.LessOrEqual(t, s.dueAt, k.now.Mono.Add(patience), "it is woken")
				k.step(s, k.now.Add(patience))
				require.False(t, s.handovers.Unnamed())
			}
		})
	}
}

// With small logs the successor is asked in a log that works, and one Ping is enough.
func TestASuccessorIsAskedWhereItCanAnswer(t *testing.T) {
	k := newRooms(3, 1, func(s *Settings) { s.Majority = true })
	k.begin()
	k.pass(4 * time.Second)
	s := k.shards[0]
	k.joined("b", 1)
	s.home = 1
	stalls(k.channels[1])
	k.out()
	h := handover.NewHandover(term.Transferred, k.now, "b", true)
	s.begin(h, 0)
	s.ping(h, k.tell(k.now))
	k.flush()
	require.Len(t, k.ready.Append, 1)
	require.Equal(t, 2, k.ready.Append[0].Partition, "the next one after its home, which stands still")
	s.ping(h, k.tell(k.now))
	k.flush()
	require.Len(t, k.ready.Append, 1)

	for name, h := range map[string]*handover.Handover{
		"nobody":                      handover.NewHandover(term.Closing, k.now, "", true),
		"the application was told so": handover.NewHandover(term.Closing, k.now, "b", true),
	} {
		h.AskBy(k.now, false)
		s.ping(h, k.tell(k.now))
		k.flush()
		require.Len(t, k.ready.Append, 1, name)
	}
}

// A role of which the application was never told is released without telling it. A role that the
// application has finished is released before the other roles of the same handover.
func TestHandoverReleasesFinishedRoles(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 4, nil)
	w.start("b", 4, nil)
	w.pass(6 * time.Second)
	held := a.leads(4)
	require.Len(t, held, 2)
	a.work = 3 * time.Second
	w.take()
	d := a.desired
	d.Closing = true
	a.want(d)
	w.pass(time.Second)
	require.Equal(t, held, a.leads(4), "while the application finishes")
	token, _ := a.table.Held(held[0])
	a.do(func(now clock.Instant) { a.Drained(held[:1], token, now) })
	require.Equal(t, held[1:], a.leads(4))
	w.pass(10 * time.Millisecond)
	require.Len(t, w.actor("b").leads(4), 3)
	w.pass(3 * time.Second)
	require.Len(t, w.actor("b").leads(4), 4)
	require.True(t, a.dead, "it has finished")
}

// If work on some roles takes longer than on others, each role is released at most a round trip after
// it was finished.
func TestHandoverReleasesInTime(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 3, nil)
	w.pass(6 * time.Second)
	w.start("b", 3, nil)
	w.pass(time.Second)
	a.work = time.Hour
	token, _ := a.table.Held(0)
	a.desired.Closing = true
	a.want(a.desired)
	for role := range 3 {
		w.pass(time.Second)
		require.Len(t, w.actor("b").leads(3), role)
		a.do(func(now clock.Instant) { a.Drained([]int{role}, token, now) })
		w.pass(10 * time.Millisecond)
		require.Len(t, w.actor("b").leads(3), role+1)
	}
}

// An application that does not finish in time loses the roles that it was to give up, with a warning.
func TestHandoverIsOverdue(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 1, nil)
	w.pass(6 * time.Second)
	b := w.start("b", 1, nil)
	w.pass(time.Second)
	a.work = time.Hour
	d := a.desired
	d.Unhealthy = true
	a.want(d)
	w.pass(9900 * time.Millisecond)
	require.Len(t, a.leads(1), 1)
	require.Empty(t, b.leads(1))
	w.pass(200 * time.Millisecond)
	require.Len(t, b.leads(1), 1)
	require.Contains(t, w.take(), "a is told: leads no more 0 (overdue)")
}
