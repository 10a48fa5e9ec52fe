package elector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/lease"
)

// A vacancy on small logs lasts from the end of the holder's lease until another process holds a
// majority of the logs. It is counted as Watch reports it, and not while nothing is known.
func TestVacanciesOnSmallLogsAreCounted(t *testing.T) {
	s := newSmallNode()
	ids := s.begun()
	for log, id := range ids {
		s.claimed(log, id, "b", []int32{0})
	}
	stats := s.Stats(s.now)
	require.Equal(t, 1, stats.Held)
	out := claimsOf(s.pass(1100*time.Millisecond, ids...))
	require.Len(t, out, 3, "b was silent")
	stats = s.Stats(s.now)
	require.Equal(t, 1, stats.Vacant)
	require.Zero(t, stats.Vacancies.Count, "it still is")
	require.InDelta(t, 0.1, stats.Leaderless, 0.03)

	s.record(0, "x0", out[0].Record)
	require.Zero(t, s.Stats(s.now).Vacancies.Count, "one log is no majority")
	s.record(1, "y0", out[1].Record)
	stats = s.Stats(s.now)
	require.Equal(t, 1, stats.Held)
	require.EqualValues(t, 1, stats.Vacancies.Count)
	require.InDelta(t, stats.Leaderless, stats.Vacancies.Sum, 1e-6)

	s.reset(2, "z1")
	s.pass(100*time.Millisecond, "x0", "y0", "z1")
	require.InDelta(t, stats.Leaderless, s.Stats(s.now).Leaderless, 1e-6, "two logs are enough")
	s.reset(1, "y1")
	s.pass(3*time.Second, "x0", "y1", "z1")
	require.InDelta(t, stats.Leaderless, s.Stats(s.now).Leaderless, 1e-6, "nothing is known")
}

// A role is vacant once most of the small logs were read to their ends and show no holder.
func TestNothingIsVacantBeforeSmallLogsWereRead(t *testing.T) {
	s := newSmallNode()
	s.Set(Desired{Roles: 2, Contend: true}, s.now)
	ids := []string{"x", "y", "z"}
	for log, id := range ids {
		s.Read(Entry{Partition: log, Reset: true, ID: id, End: 2}, nil, nil, s.now)
	}
	for log, id := range ids {
		s.claimed(log, id, "b", []int32{0})
	}
	for log, id := range ids {
		require.Equal(t, log >= 2, s.Stats(s.now).Vacant == 1, "%d logs were read", log)
		s.claimed(log, id, "c", []int32{0}) // in vain
	}
	require.Equal(t, 1, s.Stats(s.now).Vacant)
}

// A holder that was taken for dead and is heard again still holds its roles.
func TestHolderHeardAgainOnSmallLogsKeepsItsRoles(t *testing.T) {
	s := newSmallNode()
	ids := s.begun()
	for log, id := range ids {
		s.claimed(log, id, "b", []int32{0})
	}
	s.pass(1100*time.Millisecond, ids...)
	beat := func(log int) {
		s.record(log, ids[log], lease.Record{Kind: lease.Beat, Session: lease.Session{Process: "b", N: 1}, Name: "b", Read: s.ends[log] - 1,
			Seq: uint64(s.ends[log] + 1), T: s.set.T, Longest: s.set.T})
	}
	beat(0)
	require.Zero(t, s.Stats(s.now).Vacancies.Count)
	beat(2)
	stats := s.Stats(s.now)
	require.Equal(t, 1, stats.Held)
	require.EqualValues(t, 1, stats.Vacancies.Count)
}

// hello is what a process says of itself in one log.
func (s *smallNode) hello(log int, id, process string) {
	s.record(log, id, lease.Record{Kind: lease.Hello, Session: lease.Session{Process: process, N: 1}, Name: process, Read: s.ends[log] - 1,
		Seq: uint64(s.ends[log] + 1), Longest: lease.Unsaid, Hello: &lease.Announcement{Roles: 1, Period: time.Minute}})
}

// A log that is down keeps showing a lease that is over. When the holder releases its roles on another
// log, only the log that is down and one more still show the lease. But the holder is well: roles may be
// handed over to it.
func TestAHolderThatReleasesWhileALogIsDownIsNotSuspected(t *testing.T) {
	s := newSmallNode()
	ids := s.begun()
	for log, id := range ids {
		s.claimed(log, id, "b", []int32{0})
		s.hello(log, id, "b")
	}
	say := func(log int, r lease.Record) {
		r.Session, r.Name, r.T, r.Longest = lease.Session{Process: "b", N: 1}, "b", s.set.T, s.set.T
		r.Read, r.Seq = s.ends[log]-1, uint64(s.ends[log]+1)
		s.record(log, ids[log], r)
	}
	for range 20 { // 2T, while log 1 is down
		for log, id := range ids {
			if log != 1 {
				s.Read(Entry{Partition: log, Alive: true, ID: id}, nil, nil, s.now)
				say(log, lease.Record{Kind: lease.Beat})
			}
		}
		s.pass(100 * time.Millisecond)
	}
	say(0, lease.Record{Kind: lease.Release, Roles: []int32{0}})
	s.claimed(0, ids[0], "c", []int32{0})
	require.True(t, s.members.Takes("b"))
}
