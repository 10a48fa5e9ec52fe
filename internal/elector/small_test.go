package elector

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/term"
)

// smallNode is a Node on three small logs that keep nothing: what it appends is taken by the
// test.
type smallNode struct {
	*Node
	set *Settings
	now clock.Instant
}

func newSmallNode() *smallNode {
	s := &smallNode{now: clock.Instant{Mono: clock.Time(time.Hour), Wall: clock.Time(time.Hour), Raw: clock.Time(time.Hour)}}
	s.set = &Settings{Process: "a", Name: "a", Group: "g", T: time.Second, Every: 200 * time.Millisecond, Drain: time.Second,
		AnswerWait: time.Second, Rebalance: true, Majority: true, Random: func(time.Duration) time.Duration { return 0 },
		Alive: func(clock.Instant) bool { return true }}
	young := func(now, v clock.Instant) bool { return lease.Young(now, v, s.set.T) }
	s.Node = New(s.set, term.New(young, func() clock.Instant { return s.now }, func(int) int { return 0 }))
	s.Set(Desired{Roles: 1, Contend: true}, s.now)
	s.Open(3, "", s.now)
	return s
}

func (s *smallNode) reset(log int, id string) {
	s.Read(Entry{Partition: log, Reset: true, ID: id}, nil, nil, s.now)
}

// taken returns what is to be appended now.
func (s *smallNode) taken() []Append { return s.Ready(s.now).Append }

// pass lets time pass; all logs say that they live.
func (s *smallNode) pass(d time.Duration, ids ...string) (out []Append) {
	for end := s.now.Add(d); s.now.Mono < end.Mono; s.now = s.now.Add(20 * time.Millisecond) {
		for log, id := range ids {
			s.Read(Entry{Partition: log, Alive: true, ID: id}, nil, nil, s.now)
		}
		s.Tick(s.now)
		out = append(out, s.taken()...)
	}
	return out
}

func claimsOf(all []Append) (out []Append) {
	for _, a := range all {
		if a.Record.Kind == lease.Claim {
			out = append(out, a)
		}
	}
	return out
}

func TestARecordGoesToTheIncarnationThatWasRead(t *testing.T) {
	s := newSmallNode()
	for log, id := range []string{"x0", "y0", "z0"} {
		s.reset(log, id)
	}
	out := claimsOf(s.pass(2*time.Second, "x0", "y0", "z0"))
	require.Len(t, out, 3, "one Claim on each log, as nothing comes back")
	for _, a := range out {
		require.Equal(t, []string{"x0", "y0", "z0"}[a.Partition], a.ID)
		require.True(t, a.Record.Fresh)
		require.GreaterOrEqual(t, a.Record.Ballot, int64(s.now.Wall)/1000-2_000_000, "from the wall clock")
	}
}

func TestALateAnswerOfAFormerIncarnationIsNotLookedAt(t *testing.T) {
	s := newSmallNode()
	for log, id := range []string{"x0", "y0", "z0"} {
		s.reset(log, id)
	}
	out := claimsOf(s.pass(1200*time.Millisecond, "x0", "y0", "z0"))
	s.reset(0, "x1")
	for _, a := range out {
		r := a.Record
		s.Read(Entry{Partition: a.Partition, ID: a.ID}, &r, nil, s.now)
	}
	s.Tick(s.now)
	require.False(t, s.logs[0].log.Known(), "x0 is not read any more")
	require.EqualValues(t, 2, s.Stats().Records)
	_, _, led := s.quorum.Term(0)
	require.True(t, led, "two logs are enough")
}

// What was written for another incarnation, and lies in this one, is decoded as a record of
// another log.
func TestARecordForAnotherIncarnationIsSkipped(t *testing.T) {
	s := newSmallNode()
	r := lease.Record{Kind: lease.Hello, Session: lease.Session{Process: "b", N: 1}, Read: -1, Seq: 1, Longest: lease.Unsaid,
		Hello: &lease.Announcement{Roles: 1}, Ballot: 7}
	value := s.Codec("x0").Encode(&r)
	_, err := s.Codec("x1").Decode(value)
	require.ErrorIs(t, err, lease.ErrOtherLog)
	require.Zero(t, s.Codec("x1").Ballot(value))
	got, err := s.Codec("x0").Decode(value)
	require.NoError(t, err)
	require.EqualValues(t, 7, got.Ballot)
	require.EqualValues(t, 7, s.Codec("x0").Ballot(value))
}

func TestALogThatIsNotHeardIsNotClaimed(t *testing.T) {
	s := newSmallNode()
	for log, id := range []string{"x0", "y0", "z0"} {
		s.reset(log, id)
	}
	out := claimsOf(s.pass(3*time.Second, "x0"))
	require.Empty(t, out, "one log is no majority")
	out = claimsOf(s.pass(time.Second, "x0", "y0"))
	require.Len(t, out, 2)
}

func TestAFailedClaimOnSmallLogsIsRepeated(t *testing.T) {
	s := newSmallNode()
	for log, id := range []string{"x0", "y0", "z0"} {
		s.reset(log, id)
	}
	out := claimsOf(s.pass(1500*time.Millisecond, "x0", "y0", "z0"))
	require.Len(t, out, 3)
	for _, a := range out {
		s.Acked(a, errors.New("no"), s.now)
	}
	count := 0
	for end := s.now.Add(10 * time.Second); s.now.Mono < end.Mono; {
		again := claimsOf(append(s.taken(), s.pass(20*time.Millisecond, "x0", "y0", "z0")...))
		for count += len(again); len(again) > 0; {
			s.Acked(again[0], errors.New("no"), s.now)
			again = append(again[1:], claimsOf(s.taken())...)
			require.Less(t, len(again), 10, "what fails at once is tried again at once")
		}
	}
	require.NotZero(t, count)
	require.Less(t, count, 3*25, "with pauses in between") // Random says 0: half of T each
}
