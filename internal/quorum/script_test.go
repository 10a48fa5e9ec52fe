package quorum

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// Hand-made schedules for situations that random ones rarely reach. All processes have the same
// clock, and records are appended and read when the script says so.

type script struct {
	*testing.T
	now  time.Duration
	logs [][]lease.Record
}

// actor is a process in a script.
type actor struct {
	*Lease
	s    *script
	next []int64
}

func newScript(t *testing.T, logs int) *script {
	return &script{T: t, logs: make([][]lease.Record, logs)}
}

func (s *script) at() clock.Instant {
	now := clock.Alike(time.Hour + s.now)
	now.Wall = simEpoch.Add(s.now)
	return now
}

func (s *script) wait(d time.Duration) { s.now += d }

// silence waits until every lease that is not renewed meanwhile is over.
func (s *script) silence() { s.wait(clock.Wait(simT, 0) + time.Millisecond) }

// start boots a process that wants role 0, and lets it begin to read all logs at their ends.
func (s *script) start(name string) *actor {
	a := &actor{s: s, next: make([]int64, len(s.logs)), Lease: New(Rules{Logs: len(s.logs), Process: name, Name: name, T: simT, History: 64,
		Random: func(time.Duration) time.Duration { return 0 }})}
	a.Want(1, func(int32) bool { return true })
	for log := range s.logs {
		a.begin(log)
	}
	return a
}

func (a *actor) begin(log int) { a.beginAt(log, int64(len(a.s.logs[log]))) }

func (a *actor) beginAt(log int, o int64) {
	a.next[log] = o
	a.Begin(log, o, int64(len(a.s.logs[log])), 0, a.s.at())
}

// forget empties a log. The given actors begin to read it.
func (s *script) forget(log int, all ...*actor) {
	s.logs[log] = nil
	for _, a := range all {
		a.begin(log)
	}
}

// append appends each record to its log.
func (s *script) append(out ...Out) {
	for _, o := range out {
		s.logs[o.Log] = append(s.logs[o.Log], o.Record)
	}
}

// read reads all logs to their ends.
func (a *actor) read() {
	for log := range a.s.logs {
		a.readOn(log)
	}
}

// contest makes the Claims of role 0.
func (a *actor) contest() []Out {
	a.read()
	out := a.Contest([]int32{0}, a.s.at())
	require.NotEmpty(a.s, out, "makes no Claim")
	return out
}

// win contests role 0 until the actor leads. It returns the token.
func (a *actor) win() int64 {
	a.s.append(a.contest()...)
	return a.settleIt()
}

func (a *actor) settleIt() int64 {
	a.s.Helper()
	for range 5 {
		a.read()
		if token, ok := a.Leads(0, a.s.at()); ok {
			return token
		}
		a.s.append(a.Tick(a.s.at())...)
	}
	require.Fail(a.s, "does not lead")
	return 0
}

// leave gives role 0 up and releases it.
func (a *actor) leave() {
	a.Want(0, a.want)
	a.Forget([]int32{0})
	a.s.append(a.Release([]int32{0}, a.s.at())...)
	a.read()
}

func (a *actor) snapshot(log int) {
	for _, r := range a.Snapshot(log, a.s.at()) {
		a.s.append(Out{log, r})
	}
}

// A process that does not know the fold has claimed, and its Claim comes very late, after a whole
// term of another process. Nobody holds anything, so the Claim is valid, though its ballot is
// lower than that of the term. One might let a Claim of a free role count only if its ballot
// exceeds the largest one in the log. But then a process that adopts this fresh Claim, and does
// not know that ballot, would have another fold than all others. So the fold ignores ballots, and
// a process that reads its own Claim back raises its ballot above all that it has read before.
func TestLateFreshClaimLeadsWithALargerBallotThanTheTermBefore(t *testing.T) {
	s := newScript(t, 1)
	slow, b := s.start("slow"), s.start("b")
	s.silence()
	late := slow.contest()
	s.wait(10 * time.Millisecond)
	first := b.win()
	b.leave()
	s.append(late...)
	require.Less(t, late[0].Record.Ballot, first)
	second := slow.settleIt()
	require.Greater(t, second, first, "token went back")

	b.read()
	newcomer := s.start("newcomer")
	newcomer.beginAt(0, 0)
	newcomer.read()
	require.Equal(t, b.Snapshot(0, s.at())[0].State.Hash, newcomer.Snapshot(0, s.at())[0].State.Hash, "folds differ")
}

// The Claim of the test above has come back, and its ballot is too low. Until a Beat with a
// larger ballot has come back, the log does not show that ballot to its readers.
func TestATermBeginsWhenItsBallotHasComeBack(t *testing.T) {
	s := newScript(t, 1)
	slow, b := s.start("slow"), s.start("b")
	s.silence()
	late := slow.contest()
	s.wait(10 * time.Millisecond)
	b.win()
	b.leave()
	s.append(late...)
	slow.read()
	_, leads := slow.Leads(0, s.at())
	require.False(t, leads, "leads with a ballot that is in no log")
	beat := slow.Tick(s.at())
	require.Len(t, beat, 1)
	require.Equal(t, lease.Beat, beat[0].Record.Kind)
	slow.Answered(0, s.at())
	_, leads = slow.Leads(0, s.at())
	require.False(t, leads, "leads before its Beat has come back")
	s.append(beat...)
	token := slow.settleIt()

	b.read()
	s.silence() // the slow process has crashed
	b.Want(1, b.want)
	require.Greater(t, b.win(), token, "token went back")
}

// A leader has left no trace but a Snapshot, written by a process whose own ballot was never large.
// A newcomer must still learn the leader's ballot.
func TestASnapshotShowsTheBallotOfALeaderThatLeft(t *testing.T) {
	s := newScript(t, 1)
	a, witness := s.start("a"), s.start("witness")
	s.silence()
	first := a.win()
	a.leave()
	witness.read()
	end := int64(len(s.logs[0]))
	witness.snapshot(0)
	c := s.start("c")
	c.beginAt(0, end)
	require.Greater(t, c.win(), first, "token went back")
}

// If a log reports the largest ballot in it, tokens rise without any clock, even if the process
// begins behind all records, and the former leader's wall clock was far ahead.
func TestALogReportsItsLargestBallot(t *testing.T) {
	s := newScript(t, 1)
	a := s.start("a")
	s.silence()
	a.lift(micros(s.at()) + time.Hour.Microseconds())
	first := a.win()
	a.leave()
	b := s.start("b")
	b.Begin(0, b.next[0], b.next[0], first, s.at())
	s.silence()
	require.Greater(t, b.win(), first, "token went back")
}

// A record of a newer version has a ballot too, and a token may have begun with it.
func TestARecordOfANewerVersionShowsItsBallot(t *testing.T) {
	s := newScript(t, 1)
	a := s.start("a")
	s.silence()
	first := a.win()
	a.leave()
	a.Want(1, a.want)
	s.append(Out{0, lease.Record{}}) // its offset
	newer := first + 5
	a.ReadNewer(0, a.next[0], newer, s.at())
	a.next[0]++
	s.silence()
	require.Greater(t, a.win(), newer, "token went back")
}

// A leader crashes, and only its evidence shows its ballots.
func TestEvidenceShowsItsBallot(t *testing.T) {
	for _, by := range []lease.Kind{lease.Claim, lease.Beat} {
		t.Run(string(by), func(t *testing.T) {
			s := newScript(t, 1)
			a, b := s.start("a"), s.start("b")
			s.silence()
			s.append(a.contest()...)
			if by == lease.Beat {
				a.lift(a.bal + 5) // as another log may have taught it
			}
			first := a.settleIt()
			b.read()
			s.silence()
			require.Greater(t, b.win(), first, "token went back")
		})
	}
}

// a leads, and the log forgets that. b leads on the log's next incarnation, which a never reads, and
// which is lost, too. When a claims for the second time, it knows no ballot but its own.
func TestEveryFreshClaimStartsFromTheWallClock(t *testing.T) {
	s := newScript(t, 1)
	a := s.start("a")
	s.silence()
	a.win()
	s.forget(0)
	b := s.start("b")
	s.silence()
	a.Tick(s.at()) // its term is over
	second := b.win()
	s.forget(0, a)
	s.silence()
	require.Greater(t, a.win(), second, "token went back")
}

// A log whose Claim was sent before the term's token was chosen sustains the term only after a Beat.
func TestALogJoinsATermWithItsToken(t *testing.T) {
	s := newScript(t, 3)
	a := s.start("a")
	s.silence()
	s.append(a.contest()...)
	a.lift(a.bal + 5) // as another process's ballot would raise it
	for log := range 2 {
		r, ok := a.readOn(log).Beat(log, s.at())
		require.True(t, ok)
		s.append(Out{log, r})
		a.readOn(log)
	}
	token, line, led := a.Term(0)
	require.True(t, led)
	require.Equal(t, 0b011, line)
	a.readOn(2)
	again, line, led := a.Term(0)
	require.True(t, led)
	require.Equal(t, token, again)
	require.Equal(t, 0b011, line, "a log sustains a term whose token is not in it")
	r, ok := a.Beat(2, s.at())
	require.True(t, ok)
	s.append(Out{2, r})
	a.readOn(2)
	_, line, _ = a.Term(0)
	require.Equal(t, 0b111, line)
}

// readOn reads one log to its end.
func (a *actor) readOn(log int) *actor {
	a.Answered(log, a.s.at())
	for ; a.next[log] < int64(len(a.s.logs[log])); a.next[log]++ {
		r := a.s.logs[log][a.next[log]]
		ev := a.Read(log, a.next[log], &r, a.s.at())
		require.Equal(a.s, ev.Missing > 0, ev.Rewound)
	}
	return a
}

// A process loses another one's Claims on two of three logs, and reads on. By what it has read, the
// role is free. Its own Claim would be valid in every fold, since it says that its sender read all
// evidence. Only the gap shows the loss.
func TestRecordsLostOnTheirWayMakeNoSecondLeader(t *testing.T) {
	s := newScript(t, 3)
	a, b := s.start("a"), s.start("b")
	s.silence()
	a.win()
	a.leave()
	b.read()
	a.Want(1, a.want)
	a.win()
	for log := range 2 {
		b.next[log] = int64(len(s.logs[log]))
		s.append(Out{log, a.Word(log, lease.Hello, s.at())})
	}
	b.read()
	s.append(b.Contest([]int32{0}, s.at())...)
	b.read()
	_, first := a.Leads(0, s.at())
	_, second := b.Leads(0, s.at())
	require.True(t, first)
	require.False(t, second, "two leaders")
}

// A log did not answer when a holder's lease ended, and now answers again, first with a record. The
// leader claims its role there, because another log may fail next.
func TestALogThatAnswersWithARecordIsClaimed(t *testing.T) {
	for name, read := range map[string]func(a *actor, r *lease.Record){
		"record":           func(a *actor, r *lease.Record) { a.Read(2, a.next[2], r, a.s.at()) },
		"of another group": func(a *actor, _ *lease.Record) { a.Skip(2, a.next[2], a.s.at()) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, 3)
			a, b := s.start("a"), s.start("b")
			s.silence()
			b.win()
			a.read()
			s.silence() // b has crashed
			a.readOn(0).readOn(1)
			s.append(a.Contest([]int32{0}, s.at())...)
			for range 5 {
				a.readOn(0).readOn(1)
				s.append(a.Tick(s.at())...)
			}
			token, leads := a.Leads(0, s.at())
			require.True(t, leads && token > 0)
			require.Zero(t, a.Log(2).Holding())

			hello := b.Word(2, lease.Hello, s.at())
			read(a, &hello)
			out := a.Tick(s.at())
			require.Len(t, out, 1, "the log is not claimed")
			require.Equal(t, lease.Claim, out[0].Record.Kind)
			require.Equal(t, 2, out[0].Log)
		})
	}
}

// Tick must do everything for which Due asked. Otherwise the caller would call it again and again, without a pause.
func TestTickDoesWhatIsDue(t *testing.T) {
	claimed := func(s *script, a, _ *actor) { s.silence(); a.contest() } // and the Claims are lost
	for name, before := range map[string]func(s *script, a, b *actor){
		"an unknown log":          func(*script, *actor, *actor) {},
		"a lost Claim":            claimed,
		"a lost Claim and a lead": func(s *script, a, b *actor) { claimed(s, a, b); b.win(); a.read() },
		"a failed Claim": func(s *script, a, _ *actor) {
			s.silence()
			for _, o := range a.contest() {
				a.Failed(o.Log, &o.Record, s.at())
			}
		},
		"an own lease":           func(s *script, a, _ *actor) { s.silence(); a.win() },
		"another's lease":        func(s *script, a, b *actor) { s.silence(); b.win(); a.read() },
		"a role held on one log": func(s *script, a, _ *actor) { s.silence(); s.append(a.contest()[0]); a.read() },
		"a newer version": func(s *script, a, _ *actor) {
			s.silence()
			a.win()
			s.append(Out{0, lease.Record{}}) // its offset
			a.ReadNewer(0, a.next[0], 5, s.at())
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, 3)
			a, b := s.start("a"), s.start("b")
			before(s, a, b)
			for end := s.now + 5*simT; s.now < end; {
				for i := 0; a.Due(s.at()) <= s.at().Mono; i++ {
					require.Less(t, i, 10, "what was due is still due after Tick")
					a.Tick(s.at())
				}
				s.wait(min(a.Due(s.at()).Sub(s.at().Mono), simT))
			}
		})
	}
}

func TestLogThatWasNeverReadShowsNoVacancy(t *testing.T) {
	s := newScript(t, 3)
	q := New(Rules{Logs: 3, Process: "q", T: simT})
	require.False(t, q.Known())
	q.Begin(0, 0, 0, 0, s.at())
	require.False(t, q.Known(), "no log is known, and two were never read")
	require.EqualValues(t, clock.Never, q.FreeAt(0))
}
