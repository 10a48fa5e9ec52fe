package elector

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/leases"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/term"
)

// smallNode is a Node on three small logs that keep nothing: the test takes what it appends.
type smallNode struct {
	*Node
	set  *Settings
	now  clock.Instant
	ends [3]int64
}

func newSmallNode() *smallNode {
	s := &smallNode{now: clock.Alike(time.Hour)}
	s.set = &Settings{Process: "a", Name: "a", Group: "g", T: time.Second, HeartbeatInterval: 200 * time.Millisecond, DrainTimeout: time.Second,
		SuccessorWait: time.Second, Rebalance: true, Majority: true, Random: func(time.Duration) time.Duration { return 0 },
		Alive: func(clock.Instant) bool { return true }}
	young := func(now, v clock.Instant) bool { return lease.Young(now, v, s.set.T) }
	s.Node = New(s.set, term.New(young, func() clock.Instant { return s.now }))
	s.Set(Desired{Roles: 1, Contend: true}, s.now)
	s.Open(3, "", s.now)
	return s
}

func (s *smallNode) majority() *leases.Small { return s.shards[0].leases.(*leases.Small) }

func (s *smallNode) reset(log int, id string) {
	s.Read(Entry{Partition: log, Reset: true, ID: id}, nil, nil, s.now)
	s.ends[log] = 0
}

// begun begins to read all three logs, and returns their ids.
func (s *smallNode) begun() []string {
	ids := []string{"x0", "y0", "z0"}
	for log, id := range ids {
		s.reset(log, id)
	}
	return ids
}

// record appends a record to a log, and lets it be read.
func (s *smallNode) record(log int, id string, r lease.Record) {
	s.Read(Entry{Partition: log, ID: id, Offset: s.ends[log]}, &r, nil, s.now)
	s.ends[log]++
}

// claimed is a Claim of another process, which has read all there is of a log.
func (s *smallNode) claimed(log int, id, process string, roles []int32) {
	s.record(log, id, lease.Record{Kind: lease.Claim, Session: lease.Session{Process: process, N: 1}, Name: process, Read: s.ends[log] - 1,
		Seq: uint64(s.ends[log] + 1), T: s.set.T, Longest: lease.Unsaid, Fresh: s.ends[log] == 0, Roles: roles})
}

// The report on a Claim may arrive after its log has begun anew. It must not delay Claims there.
func TestFailedClaimOfAnEarlierIncarnationDelaysNoClaim(t *testing.T) {
	s := newSmallNode()
	ids := s.begun()
	var late Append
	for _, a := range s.pass(3*time.Second, ids...) {
		if a.Record.Kind == lease.Claim && a.Partition == 1 {
			late = a
		}
	}
	require.Equal(t, "y0", late.ID)
	for log, id := range []string{"x1", "y1", "z1"} {
		s.reset(log, id)
	}
	claimed := map[int]bool{}
	for len(claimed) == 0 {
		s.Acked(late, errors.New("timed out"), s.now)
		for _, a := range s.pass(20*time.Millisecond, "x1", "y1", "z1") {
			if a.Record.Kind == lease.Claim {
				claimed[a.Partition] = true
			}
		}
	}
	require.Equal(t, map[int]bool{0: true, 1: true, 2: true}, claimed)
}

// Nobody can lead with a token that no later term could exceed. That must be logged.
func TestBallotsThatAreUsedUpAreReportedOnce(t *testing.T) {
	for name, of := range map[string]func(s *smallNode, ballot int64){
		"by a record": func(s *smallNode, ballot int64) {
			s.record(1, "y0", lease.Record{Kind: lease.Beat, Session: lease.Session{Process: "b", N: 1}, Seq: uint64(s.ends[1] + 1), Read: -1, Ballot: ballot})
		},
		"by a newer record": func(s *smallNode, ballot int64) {
			s.Read(Entry{Partition: 1, ID: "y0", Offset: s.ends[1]}, &lease.Record{Ballot: ballot}, lease.ErrNewer, s.now)
			s.ends[1]++
		},
		"by a log": func(s *smallNode, ballot int64) {
			s.Read(Entry{Partition: 1, Reset: true, ID: "y1", Top: ballot}, nil, nil, s.now)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSmallNode()
			s.begun()
			errs := func() (texts []string) {
				for _, note := range s.Ready(s.now).Notes {
					if note.Level == slog.LevelError {
						texts = append(texts, note.Text)
					}
				}
				return texts
			}
			of(s, int64(1)<<61-3)
			require.Empty(t, errs(), "two terms can begin")
			of(s, int64(1)<<61-2)
			require.Empty(t, errs(), "one can")
			of(s, int64(1)<<61-1)
			require.Equal(t, []string{"ballots of the small logs are used up: no term can begin any more"}, errs())
			of(s, int64(1)<<61)
			require.Empty(t, errs())
		})
	}
}

// taken returns what is to be appended now.
func (s *smallNode) taken() []Append { return s.Ready(s.now).Append }

// pass lets time pass, while the logs with these ids show that they can be reached.
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
	s.begun()
	out := claimsOf(s.pass(2*time.Second, "x0", "y0", "z0"))
	require.Len(t, out, 3, "one Claim on each log, as nothing comes back")
	for _, a := range out {
		require.Equal(t, []string{"x0", "y0", "z0"}[a.Partition], a.ID)
		require.True(t, a.Record.Fresh)
		require.GreaterOrEqual(t, a.Record.Ballot, int64(s.now.Wall)/1000-2_000_000, "from the wall clock")
	}
}

func TestALateAnswerOfAFormerIncarnationIsIgnored(t *testing.T) {
	s := newSmallNode()
	s.begun()
	out := claimsOf(s.pass(1200*time.Millisecond, "x0", "y0", "z0"))
	s.reset(0, "x1")
	for _, a := range out {
		r := a.Record
		s.Read(Entry{Partition: a.Partition, ID: a.ID}, &r, nil, s.now)
	}
	s.Tick(s.now)
	require.False(t, s.channels[0].Log.Known(), "x0 is not read any more")
	require.EqualValues(t, 2, s.Stats(s.now).Records)
	_, _, led := s.majority().Lease.Term(0)
	require.True(t, led, "two logs are enough")
}

// A record that is not at the next offset shows that the records before it were lost on their way,
// whoever provides the log. One of them may have taken away a role that is led. Reading of the log
// begins anew, once; the other logs go on.
func TestALogWhoseRecordsWereLostBeginsAnew(t *testing.T) {
	s := newSmallNode()
	ids := s.begun()
	for _, a := range claimsOf(s.pass(1200*time.Millisecond, ids...)) {
		s.record(a.Partition, a.ID, a.Record)
	}
	s.taken()
	_, _, led := s.majority().Lease.Term(0)
	require.True(t, led)
	session := s.channels[0].Log.Session()

	s.ends[0] += 2 // which nobody has handed over
	hello := lease.Record{Kind: lease.Hello, Session: lease.Session{Process: "b", N: 1}, Name: "b", Read: -1, Seq: 9, Longest: lease.Unsaid,
		Hello: &lease.Announcement{Roles: 1}}
	s.record(0, "x0", hello)
	require.False(t, s.channels[0].Log.Known(), "lost records were not noticed")
	require.NotEqual(t, session, s.channels[0].Log.Session())
	require.EqualValues(t, 1, s.Stats(s.now).LogResets)
	notes := s.Ready(s.now).Notes
	require.Len(t, notes, 1)
	require.Equal(t, "records of a small log were lost on their way: rejoining", notes[0].Text)
	_, _, led = s.majority().Lease.Term(0)
	require.True(t, led, "two logs are enough")

	s.record(0, "x0", hello)
	require.EqualValues(t, 1, s.Stats(s.now).LogResets, "what comes after them has no gap")
}

// A term that is over is ended before V of the logs that sustained it is published. Otherwise the check
// would find it led again for a moment, in which others may lead. Here V is published late, for another
// role that goes on.
func TestATermThatHasEndedIsNotRevived(t *testing.T) {
	s := newSmallNode()
	s.Set(Desired{Roles: 2, Contend: true}, s.now)
	ids := s.begun()
	for _, a := range claimsOf(s.pass(1200*time.Millisecond, ids...)) {
		s.record(a.Partition, a.ID, a.Record)
	}
	for len(s.terms.Collect(s.now)) > 0 {
	}
	leads := func(role int) bool {
		_, _, _, ok := s.terms.Leads(role)
		return ok
	}
	require.True(t, leads(0) && leads(1))

	old := s.now.Add(-s.set.T)
	for line := range s.majority().InUse() {
		s.terms.Renew(line, old)
	}
	require.False(t, leads(0) || leads(1))
	s.majority().Forget([]int32{0})
	asked := false
	s.set.Alive = func(clock.Instant) bool { // called to find the reason for the end
		asked = true
		require.False(t, leads(0), "a term that has ended is led again")
		return true
	}
	s.shards[0].sync(s.in(), s.now)
	require.True(t, asked)
	require.True(t, leads(1), "the other one goes on")
	require.False(t, leads(0))
}

// A small log refuses records that name no incarnation, so nothing is written before one is known.
// A process announces itself in the first log that it knows.
func TestNothingIsWrittenToALogBeforeItsIncarnationIsKnown(t *testing.T) {
	s := newSmallNode()
	s.Tick(s.now)
	require.Empty(t, s.taken(), "it would be refused")
	require.Equal(t, lookEvery, s.Ready(s.now).WakeIn, "there is nothing to do")
	log := (s.announcer.HomeLog() + 1) % 3
	s.reset(log, "x0")
	out := append(s.taken(), s.pass(20*time.Millisecond, "")...)
	require.Len(t, out, 1)
	require.Equal(t, lease.Hello, out[0].Record.Kind)
	require.Equal(t, log, out[0].Partition)
	require.Equal(t, "x0", out[0].ID)
}

// A process that is alone finds its state of two logs contradicted, by a process that has died, and
// holds nothing. Nobody writes anything there any more, so its own Snapshots have to decide, or it
// would never claim again.
func TestADoubtEndsOnALogInWhichNobodyWrites(t *testing.T) {
	s := newSmallNode()
	ids := s.begun()
	follow := func(d time.Duration) {
		for end := s.now.Add(d); s.now.Mono < end.Mono; {
			for _, a := range s.pass(20*time.Millisecond, ids...) {
				s.record(a.Partition, a.ID, a.Record)
				s.Acked(a, nil, s.now)
			}
		}
	}
	follow(3 * time.Second)
	_, _, led := s.majority().Lease.Term(0)
	require.True(t, led)
	s.Set(Desired{Roles: 1, Contend: true, Unhealthy: true}, s.now)
	follow(3 * time.Second)
	for log, id := range ids {
		if log == s.announcer.HomeLog() {
			continue // its Hellos come back there
		}
		s.record(log, id, lease.Record{Kind: lease.Beat, Session: lease.Session{Process: "x", N: 1}, Read: s.ends[log] - 1, Seq: 1,
			T: s.set.T, Longest: s.set.T})
		require.True(t, s.channels[log].Log.Doubtful())
	}
	follow(3 * time.Second)
	for log := range ids {
		require.False(t, s.channels[log].Log.Doubtful(), "log %d", log)
	}
	s.Set(Desired{Roles: 1, Contend: true}, s.now)
	follow(3 * time.Second)
	_, _, led = s.majority().Lease.Term(0)
	require.True(t, led, "nobody leads")
}

// A record that was written for another incarnation, and lies in this one, is decoded as a record of another log.
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

func TestAFailedClaimOnSmallLogsIsRepeated(t *testing.T) {
	s := newSmallNode()
	s.begun()
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

// However many roles there are, the cost of a record depends on the roles that it changes: here one
// role, which another process takes from a third, while this one means to claim all roles later.
func BenchmarkRecordOnASmallLog(b *testing.B) {
	for _, roles := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(roles, " roles"), func(b *testing.B) {
			s := newSmallNode()
			ids := []string{"x0", "y0", "z0"}
			s.Set(Desired{Roles: roles, Contend: true}, s.now)
			all := make([]int32, roles)
			for i := range all {
				all[i] = int32(i)
			}
			for log, id := range ids {
				s.reset(log, id)
				for part := range slices.Chunk(all, lease.MaxClaim) {
					s.claimed(log, id, "b", part)
				}
			}
			s.shards[0].claims.Add(s.now.Mono.Add(time.Hour), all)
			s.taken()
			who := 0
			for b.Loop() {
				s.now = s.now.Add(time.Microsecond)
				s.claimed(who%3, ids[who%3], []string{"b", "c"}[who/3%2], []int32{7})
				s.taken()
				who++
			}
		})
	}
}

// Roles that the application finishes one by one are released a round trip after the first:
// the Node wakes for that, whether anything else happens or not.
func TestSmallLogsWakeForFinishedRoles(t *testing.T) {
	s := newSmallNode()
	s.set.HeartbeatInterval = time.Hour // no Beat wakes it
	s.Set(Desired{Roles: 2, Contend: true}, s.now)
	ids := s.begun()
	for _, a := range claimsOf(s.pass(1200*time.Millisecond, ids...)) {
		s.record(a.Partition, a.ID, a.Record)
	}
	s.terms.Collect(s.now)
	s.Set(Desired{Roles: 2}, s.now) // it steps down
	s.Ready(s.now)
	var revoked []term.Change
	for _, c := range s.terms.Collect(s.now) {
		if c.Kind == term.Revoked {
			revoked = append(revoked, c)
		}
	}
	require.Len(t, revoked, 1)
	require.Equal(t, []int{0, 1}, revoked[0].Units)

	s.pass(60*time.Millisecond, ids...) // it is clear by now who is to lead next: nobody
	s.Drained([]int{0}, revoked[0].ID, s.now)
	s.Tick(s.now) // anything else that happens meanwhile
	require.Equal(t, s.now.Mono.Add(s.trip.Takes()), s.shards[0].dueAt)
	s.now = s.now.Add(s.trip.Takes())
	s.Tick(s.now)
	released := 0
	for _, a := range s.taken() {
		if a.Record.Kind == lease.Release {
			released++
		}
	}
	require.Equal(t, len(ids), released)
}

// All members read each repeated Release. So on small logs, too, a process that holds nothing any
// more repeats a lost Release more and more seldom, on each log by itself.
func TestReleasesOnSmallLogsAreRepeatedLessAndLessOften(t *testing.T) {
	s := newSmallNode()
	ids := s.begun()
	for _, a := range claimsOf(s.pass(1200*time.Millisecond, ids...)) {
		s.record(a.Partition, a.ID, a.Record)
	}
	require.Len(t, s.terms.Collect(s.now), 1, "it leads")
	at := make([][]clock.Mono, len(ids))
	for end := s.now.Add(9 * s.set.T); s.now.Mono < end.Mono; { // it reads nothing of its own, and lapses
		for _, a := range append(s.taken(), s.pass(20*time.Millisecond, ids...)...) {
			if a.Record.Kind == lease.Release {
				at[a.Partition] = append(at[a.Partition], s.now.Mono)
				s.Acked(a, errors.New("timed out"), s.now)
			}
		}
	}
	quarter := clock.Resend(s.set.T)
	for log := range ids {
		require.GreaterOrEqual(t, len(at[log]), 5, "log %d", log)
		for i, want := range []time.Duration{quarter, 2 * quarter, 4 * quarter, 8 * quarter} {
			require.InDelta(t, want, at[log][i+1].Sub(at[log][i]), float64(45*time.Millisecond), "log %d, pause %d", log, i)
		}
	}
}

// Small logs say by themselves that they can be reached. So nothing has to be said in them
// before a holder's lease is over, and its roles are claimed at once when it is.
func TestSmallLogsAreClaimedWithoutAProbe(t *testing.T) {
	s := newSmallNode()
	ids := s.begun()
	for log, id := range ids {
		s.claimed(log, id, "b", []int32{0})
	}
	s.pass(2*clock.Stalled(s.set.T), ids...) // its own first Hello is over
	free := clock.Raw(clock.Never)
	for h := range s.shards[0].leases.Holders() {
		free = min(free, h.FreeAt)
	}
	require.NotEqual(t, clock.Raw(clock.Never), free)
	said := s.pass(free.Sub(s.now.Raw), ids...)
	require.Empty(t, said, "nothing is said before the lease is over")
	require.Len(t, claimsOf(s.pass(3*s.trip.Takes(), ids...)), len(ids), "the role is claimed in all logs at once")
}
