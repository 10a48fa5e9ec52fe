package sentinel

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/lease"
)

func TestGoodbyeComesBeforeTheRelease(t *testing.T) {
	d := newDesk(t, 2, false)
	a, b := d.member("a", 0), d.member("b", 1)
	d.claim(a, 0)
	d.claim(b, 0)
	d.pass(testT)
	d.heard()
	d.die("a")
	said := d.said
	require.Len(t, said, 3, "a leave in each log, and a Release in one")
	require.Equal(t, lease.Hello, said[0].Record.Kind, "the leave comes first")
	require.True(t, said[0].Record.Hello.Leaving)
	require.Equal(t, "a", said[0].Record.Session.Process)
	require.NotEqual(t, a.l.Session(), said[0].Record.Session, "a session that the dead process never had")
	require.Equal(t, lease.Release, said[1].Record.Kind, "then the Release, in the same log")
	require.Equal(t, lease.Hello, said[2].Record.Kind)
	require.Equal(t, 1, said[2].Partition)
	_, held := b.l.Holder(0)
	require.True(t, held, "others keep what they have")
	d.heard()
	d.die("a")
	d.pass(testT)
	for _, r := range d.heard(lease.Hello) {
		require.NotEqual(t, "a", r.Session.Process, "leave is taken once")
	}
}

func TestDeadMemberWithoutRolesSaysGoodbye(t *testing.T) {
	d := newDesk(t, 1, false)
	d.claim(d.member("a", 0), 0)
	d.heard()
	d.die("idle")
	require.Len(t, d.heard(lease.Hello), 1, "others would leave roles to it")
}

func TestLostGoodbyeIsRepeated(t *testing.T) {
	d := newDesk(t, 1, false)
	d.claim(d.member("a", 0), 0)
	d.heard()
	d.mute = true
	d.die("idle")
	lost := d.said[0]
	d.heard()
	d.mute = false
	d.w.Acked(lost, lease.ErrMalformed, d.now)
	d.pass(testT)
	var again int
	for _, r := range d.heard(lease.Hello) {
		if r.Session.Process == "idle" {
			again++
		}
	}
	require.Equal(t, 1, again)
}

func TestAllSessionsOfADeadMemberAreReleased(t *testing.T) {
	d := newDesk(t, 1, false)
	a := d.member("a", 0)
	d.claim(a, 0, 1)
	d.pass(testT + time.Second)
	a.l.Lapse(d.now) // its own Release is lost
	d.claim(a, 2)
	d.pass(testT)
	d.heard()
	read := int64(len(d.logs[0])) - 1
	d.die("a")
	released := d.heard(lease.Release)
	require.Len(t, released, 2, "one for each session")
	require.True(t, a.l.Vacant(), "nothing is left")
	for _, r := range released {
		require.Greater(t, r.Seq, uint64(foreignSeq), "a number that the dead process has never used")
		require.Equal(t, read, r.Read, "the sentinel's own read")
		require.Equal(t, testT, r.Longest, "the sentinel's own longest")
	}
}

func TestOnlyDeadMembersAreReleased(t *testing.T) {
	d := newDesk(t, 1, false)
	a, b := d.member("a", 0), d.member("b", 0)
	d.claim(a, 0)
	d.claim(b, 1)
	d.pass(testT)
	d.die("a")
	_, mine := b.l.Mine(1)
	require.True(t, mine, "who lives keeps what it has")
}

// A second sentinel has noted the same death, and its records arrive after a successor has begun.
func TestSeveralSentinelsDoNoHarm(t *testing.T) {
	d := newDesk(t, 1, false)
	a, b := d.member("a", 0), d.member("b", 0)
	d.claim(a, 0)
	d.pass(testT)
	second := NewWatch(Rules{Process: "another sentinel", Name: "s", Group: "g", T: testT, Rho: 0.0005, Random: func(time.Duration) time.Duration { return 0 }})
	second.Open(1, "id", d.now)
	second.Read(elector.Entry{Reset: true, Whole: true}, nil, nil, d.now)
	for o := range d.logs[0] {
		second.Read(elector.Entry{Offset: int64(o)}, &d.logs[0][o], nil, d.now)
	}
	second.Ready(d.now)
	d.now = d.now.Add(testT) // for it the term began when it read the log
	second.Died(Death{Process: "a", T: testT}, d.now)
	late := second.Ready(d.now).Append
	require.Len(t, late, 3, "the test's own: its own Hello, a leave and a Release")

	d.die("a")
	require.True(t, a.l.Vacant())
	d.claim(b, 0)
	for _, l := range late {
		d.append(0, l.Record)
	}
	_, mine := b.l.Mine(0)
	require.True(t, mine, "the successor keeps its term")
}

func TestLostReleaseIsRepeatedEachQuarterOfT(t *testing.T) {
	d := newDesk(t, 1, false)
	a := d.member("a", 0)
	d.claim(a, 0)
	d.pass(testT)
	d.heard()
	d.mute = true // the Release is lost: it is neither read nor reported as failed
	d.die("a")
	sent := d.said
	require.Len(t, d.heard(lease.Release), 1)
	d.pass(3 * testT)
	require.Empty(t, d.heard(lease.Release), "none is repeated while one is under way")
	for _, s := range sent {
		d.w.Acked(s, lease.ErrMalformed, d.now)
	}
	d.carry()
	var at []clock.Mono
	b := d.member("b", 0)
	for i := range 40 {
		d.pass(testT / 20)
		if i%3 == 0 {
			d.claim(b, int32(10+i)) // a change makes the Watch look at the fold
		}
		for _, a := range d.said {
			if a.Record.Kind == lease.Release {
				at = append(at, d.now.Mono)
				d.w.Acked(a, lease.ErrMalformed, d.now)
			}
		}
		d.said = nil
	}
	require.GreaterOrEqual(t, len(at), 6, "a Release that is lost is sent again")
	for i := 1; i < len(at); i++ {
		require.GreaterOrEqual(t, at[i].Sub(at[i-1]), testT/4, "no more often than each T/4")
	}
}

// Nothing else happens in the log: no record makes the Watch look again.
func TestALostReleaseIsRepeatedInASilentLog(t *testing.T) {
	d := newDesk(t, 1, false)
	d.claim(d.member("a", 0), 0)
	d.pass(testT)
	d.mute = true
	d.die("a")
	sent := 0
	for range 12 {
		for _, a := range d.said {
			if a.Record.Kind == lease.Release {
				sent++
				d.w.Acked(a, lease.ErrMalformed, d.now)
			}
		}
		d.said = nil
		d.pass(testT / 4)
	}
	require.GreaterOrEqual(t, sent, 6, "a Release that is lost is sent again")
}

// A Claim of a dead process may have waited in a socket, and take effect after its death.
func TestLateClaimOfADeadMemberIsReleased(t *testing.T) {
	d := newDesk(t, 1, false)
	a := d.member("a", 0)
	d.claim(a, 0)
	late, ok := a.l.Claim([]int32{1}, d.now)
	require.True(t, ok)
	d.pass(testT)
	d.die("a")
	require.True(t, a.l.Vacant())
	d.pass(29 * time.Minute)
	d.append(0, late)
	require.False(t, a.l.Vacant(), "the test's own: the late Claim is valid")
	d.heard()
	d.pass(testT)
	require.True(t, a.l.Vacant(), "and released, when it is T old")
	require.Len(t, d.heard(lease.Release), 1)
	d.pass(2 * time.Minute)
	require.True(t, d.w.Idle(), "the dead are forgotten after half an hour")
}

func TestTheOldestDeadAreForgotten(t *testing.T) {
	d := newDesk(t, 1, false)
	d.mute = true
	for i := range MaxMembers + 10 {
		d.w.Died(Death{Process: ProcessID(string(rune(i))), T: testT}, d.now)
	}
	require.Len(t, d.w.dead, MaxMembers)
	require.Len(t, d.w.order, MaxMembers)
	require.NotContains(t, d.w.dead, ProcessID(string(rune(0))), "the oldest goes")
}

func TestTermYoungerThanTIsNotReleased(t *testing.T) {
	d := newDesk(t, 1, false)
	a := d.member("a", 0)
	d.claim(a, 0)
	d.pass(testT / 2)
	d.heard()
	d.die("a")
	require.Empty(t, d.heard(lease.Release), "the term is T/2 old")
	d.pass(testT/2 - testT/100)
	require.Empty(t, d.heard(lease.Release), "the term is not T old yet")
	d.pass(testT / 50)
	require.Len(t, d.heard(lease.Release), 1, "the term is T old")
}

func TestGoodbyesWaitUntilTheFoldIsKnown(t *testing.T) {
	d := newDesk(t, 1, false)
	d.die("a")
	d.pass(testT)
	for _, a := range d.said {
		require.Equal(t, "sentinel", a.Record.Session.Process, "nothing in another's name while nothing is known")
	}
	d.heard()
	d.claim(d.member("b", 0), 0) // a fresh Claim makes the fold known
	d.pass(time.Millisecond)
	var left []string
	for _, r := range d.heard(lease.Hello) {
		left = append(left, r.Session.Process)
	}
	require.Contains(t, left, "a", "and what was put off is done")
}

func TestSentinelAsksForASnapshot(t *testing.T) {
	d := newDesk(t, 1, false)
	hello := d.heard(lease.Hello)
	require.Len(t, hello, 1, "it asks at the beginning")
	require.Equal(t, lease.Unsaid, hello[0].Longest, "as one that knows nothing")
	require.True(t, hello[0].Hello.Leaving, "so that it is nobody's successor")
	d.pass(minAsk)
	require.Len(t, d.heard(lease.Hello), 1, "and again")
}

func TestSentinelAnswersMembersThatAskForASnapshot(t *testing.T) {
	d := newDesk(t, 1, false)
	d.claim(d.member("a", 0), 0)
	stranger := lease.New(lease.Rules{Process: "new", T: testT, History: 1000})
	stranger.Begin(int64(len(d.logs[0])), false, d.now)
	hello := stranger.Word(lease.Hello, d.now)
	hello.Hello = &lease.Announcement{}
	d.heard()
	d.append(0, hello)
	d.pass(testT / 20)
	require.Len(t, d.heard(lease.Snapshot), 1, "a Snapshot for who asks")
	// If another process writes the Snapshot, the sentinel does not.
	d.append(0, hello)
	d.mute = true
	d.append(0, d.all[0].l.Snapshot(d.now)[0])
	d.pass(testT / 20)
	require.Empty(t, d.heard(lease.Snapshot), "one is enough")
}

func TestSnapshotIsLeftIfNobodyClaims(t *testing.T) {
	d := newDesk(t, 1, false)
	a, b := d.member("a", 0), d.member("b", 0)
	d.claim(a, 0)
	d.pass(testT)
	d.die("a")
	d.heard()
	d.pass(testT / 40)
	require.Empty(t, d.heard(lease.Snapshot), "others may claim yet")
	d.pass(testT / 20)
	require.Len(t, d.heard(lease.Snapshot), 1, "whoever comes next knows at once")
	d.claim(b, 0)
	d.pass(testT)
	d.die("b")
	d.claim(d.member("c", 0), 0)
	d.heard()
	d.pass(testT / 10)
	require.Empty(t, d.heard(lease.Snapshot), "somebody has claimed")
}

func TestAHelloEachMinuteKeepsTheProducerWarm(t *testing.T) {
	d := newDesk(t, 1, false)
	d.claim(d.member("a", 0), 0)
	d.pass(2 * time.Minute)
	d.heard()
	d.pass(10 * time.Minute)
	hello := d.heard(lease.Hello)
	require.InDelta(t, 10, len(hello), 1, "one Hello each minute")
	for _, r := range hello {
		require.True(t, r.Hello.Leaving)
	}
}

func TestASmallLogIsReleasedUnderItsOwnID(t *testing.T) {
	d := newDesk(t, 3, true)
	var seats []*seat
	for i := range 3 {
		seats = append(seats, d.member("a", i))
		d.claim(seats[i], 0)
	}
	old := d.logs[2][len(d.logs[2])-1]
	old.Ballot, old.Kind, old.Roles, old.T = 77, lease.Ping, nil, 0
	old.To = "x"
	d.append(2, old)
	d.pass(testT)
	d.heard()
	d.die("a")
	logs := map[int]bool{}
	for _, a := range d.said {
		if a.Record.Kind == lease.Release {
			logs[a.Partition] = true
			require.Equal(t, "incarnation", a.ID)
		}
	}
	require.Len(t, logs, 3, "the same on each log")
	for _, s := range seats {
		require.True(t, s.l.Vacant())
	}
	d.heard()
	d.pass(testT)
	snapshots := d.heard(lease.Snapshot)
	require.Len(t, snapshots, 3)
	for _, r := range snapshots {
		require.Equal(t, int64(77), r.Ballot, "a Snapshot teaches the largest ballot that was read")
	}
}

// A log that has lost its memory has a new id. Late entries of the former incarnation do not count.
func TestLogThatForgetsIsReadAnew(t *testing.T) {
	d := newDesk(t, 1, true)
	d.claim(d.member("a", 0), 0)
	d.pass(testT)
	d.w.Read(elector.Entry{Partition: 0, Reset: true, ID: "another"}, nil, nil, d.now)
	d.carry()
	require.False(t, d.w.logs[0].lease.Known())
	for o := range d.logs[0] {
		d.w.Read(elector.Entry{Partition: 0, Offset: int64(o), ID: "incarnation"}, &d.logs[0][o], nil, d.now)
	}
	require.False(t, d.w.logs[0].lease.Known(), "what the former log says counts for nothing")
	d.heard()
	d.die("a")
	require.Empty(t, d.heard(lease.Release), "nothing is known of the new one")
}

// A sentinel never appends a record that could win or keep a role.
func TestASentinelNeverBeatsOrClaims(t *testing.T) {
	d := newDesk(t, 1, false)
	for _, id := range []string{"a", "b", "c"} {
		d.claim(d.member(id, 0), int32(id[0]-'a'))
		d.pass(testT + time.Second)
		d.die(id)
		d.pass(testT)
	}
	d.pass(10 * testT)
	for _, a := range d.said {
		require.Contains(t, []lease.Kind{lease.Hello, lease.Release, lease.Snapshot}, a.Record.Kind, "an observer that gives back")
		if a.Record.Kind == lease.Hello {
			require.True(t, a.Record.Hello.Leaving, "never a member")
		}
	}
	require.Zero(t, d.w.logs[0].lease.Holding())
}
