package elector

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/channel"
	"github.com/goneli/neli/internal/elector/told"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/term"
	"github.com/stretchr/testify/require"
)

var at = clock.HourAnd // an instant after the beginning of a test

func session(process string) lease.Session { return lease.Session{Process: process, N: 1} }

// rooms is what shards and channels of a process need, without the Node that runs them. The
// process is a, with a lease of a second.
type rooms struct {
	*Node
	said  clock.Instant // when shards were last told something; zero: the Node has since done what they want
	now   clock.Instant
	alive bool
	ends  []int64
}

func newRooms(logs, roles int, change func(*Settings)) *rooms {
	k := &rooms{now: at(0), alive: true, ends: make([]int64, logs)}
	set := &Settings{Process: "a", Name: "a", Group: "g", T: time.Second, HeartbeatInterval: 200 * time.Millisecond, DrainTimeout: time.Second,
		SuccessorWait: 300 * time.Millisecond, Random: func(time.Duration) time.Duration { return 0 },
		Alive: func(clock.Instant) bool { return k.alive }}
	if change != nil {
		change(set)
	}
	k.Node = New(set, term.New(func(now, v clock.Instant) bool { return lease.Young(now, v, set.T) }, func() clock.Instant { return k.now }))
	k.desired = Desired{Roles: roles, Contend: true}
	p := told.Process{Set: set, Desired: &k.desired, Members: &k.members, Out: &k.Node.out}
	var lines int
	k.shards, k.channels, lines = openShards(p, k.terms, &k.warm, &k.counts, logs, k.now)
	k.members.Open(len(k.shards))
	k.terms.Open(lines, len(k.shards))
	return k
}

// told returns what a shard is told at a time. The Node does what the shard wants at the next call, or when
// something is read or written.
func (k *rooms) told(now clock.Instant) told.In {
	k.flush()
	k.said, k.Node.out.Startup = now, k.startup
	return k.in()
}

// tell is told for calls that take the time alone.
func (k *rooms) tell(now clock.Instant) clock.Instant {
	k.told(now)
	return now
}

func (k *rooms) flush() {
	if now := k.said; now != (clock.Instant{}) {
		k.said = clock.Instant{}
		k.apply(&k.Node.out, now)
	}
}

// step lets a shard step after the Node has done what was wanted before.
func (k *rooms) step(s *shard, now clock.Instant) {
	k.flush()
	k.Node.step(s, now)
}

// reading begins the first log, which ends at end, but does not begin the others.
func (k *rooms) reading(end int64) (*shard, *channel.Channel) {
	s, c := k.shards[0], k.channels[0]
	s.leases.Read(0, Entry{Reset: true}, nil, nil, k.now)
	c.Restart(end, k.now)
	s.begun = true
	return s, c
}

// begin lets reading of all logs begin; they are empty.
func (k *rooms) begin() {
	for i, c := range k.channels {
		k.shards.of(i).leases.Read(i, Entry{Reset: true, Whole: true}, nil, nil, k.now)
		c.Restart(0, k.now)
		k.shards.of(i).begun = true
		k.shards.of(i).catchUp(c, k.told(k.now), k.now)
	}
}

// read lets a record be read from a log.
func (k *rooms) read(log int, r lease.Record) lease.Event {
	k.flush()
	c, s := k.channels[log], k.shards.of(log)
	k.ends[log]++
	out := s.leases.Read(log, Entry{Offset: k.ends[log] - 1}, &r, nil, k.now)
	ev, anew := out.Event, out.Void
	if ev.Own {
		k.back(s, c, &r, ev.Stamp, k.now)
	}
	s.follow(c, ev, anew, &r, k.told(k.now), k.now)
	k.flush()
	return ev
}

// from is a record of another process, which has read all there is of a log.
func (k *rooms) from(process string, log int, r lease.Record) lease.Record {
	r.Session, r.Name, r.T, r.Longest = session(process), process, time.Second, lease.Unsaid
	r.Read, r.Seq = k.ends[log]-1, uint64(k.ends[log]+1)
	return r
}

// joined lets a member announce itself. It wants all of a number of roles.
func (k *rooms) joined(process string, roles int) {
	k.members.Announced(process, process, &lease.Announcement{Roles: roles}, true, k.now)
	k.planner.Forget()
}

// out returns what is to be appended.
func (k *rooms) out() (out []lease.Record) {
	k.flush()
	for _, a := range k.ready.Append {
		out = append(out, a.Record)
	}
	k.ready.Append = nil
	return out
}

func kinds(records []lease.Record) (out []lease.Kind) {
	for _, r := range records {
		out = append(out, r.Kind)
	}
	return out
}

// echo reads all that is to be appended, until there is nothing more.
func (k *rooms) echo() {
	for {
		k.flush()
		all := k.ready.Append
		if k.ready.Append = nil; len(all) == 0 {
			return
		}
		for _, a := range all {
			k.read(a.Partition, a.Record)
		}
	}
}

// pass lets time pass. All appended records are read meanwhile, and each shard does what is due.
func (k *rooms) pass(d time.Duration) {
	for end := k.now.Mono.Add(d); k.now.Mono < end; {
		k.now = k.now.Add(20 * time.Millisecond)
		for _, s := range k.shards {
			k.step(s, k.now)
		}
		k.echo()
	}
}

// leading is rooms in which this process leads all roles of one log.
func leading(t *testing.T, roles int, change func(*Settings)) (*rooms, *shard) {
	t.Helper()
	k := newRooms(1, roles, change)
	k.begin()
	k.pass(2 * time.Second)
	s := k.shards[0]
	require.Equal(t, roles, s.own.Len())
	for len(k.terms.Collect(k.now)) > 0 {
	}
	return k, s
}

// works lets all own records have come back at a time, stalls lets none come back, and lags puts this process behind.
func works(c *channel.Channel, now clock.Instant) { c.Link.Back(1<<50, now, now, time.Second) }
func stalls(c *channel.Channel)                   { c.Link.Failed(0) }
func lags(c *channel.Channel, t time.Duration, now clock.Instant) {
	c.Link.Back(0, now.Add(-t/5), now, t)
}

func after(d time.Duration) func() time.Duration { return func() time.Duration { return d } }
