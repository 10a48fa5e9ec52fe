package lease

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
)

// doubting is a process that knows the fold. The test gives it the Snapshots of other processes,
// with the same fold or another one.
type doubting struct {
	*Lease
	now clock.Instant
}

func newDoubting() *doubting {
	l, now := filled(100)
	return &doubting{l, now}
}

// snapshot returns another process's Snapshot, made at the present offset.
func (d *doubting) snapshot(process string, same bool) *Record {
	r := d.Snapshot(d.now)[0]
	r.Session = Session{process, 1}
	if !same {
		state := *r.State
		state.Hash++
		r.State = &state
	}
	return &r
}

func (d *doubting) says(process string, same bool) Event { return d.next(d.snapshot(process, same)) }

// next reads r at the next offset.
func (d *doubting) next(r *Record) Event { return d.Read(d.Offset()+1, r, d.now) }

func (d *doubting) hello() Event {
	return d.next(&Record{Kind: Hello, Session: Session{"h", 1}, Read: d.Offset()})
}

const someRole = 5000 // nobody holds it

// A single process with another fold costs no process its leadership: the others outvote it.
func TestProcessWithAnotherFoldIsOutvoted(t *testing.T) {
	d := newDoubting()
	require.True(t, d.MayClaim(someRole, d.now))
	early := d.snapshot("early", true)
	e := d.says("bad", false)
	require.False(t, e.Rewound, "begins again after a single contradiction")
	require.True(t, e.Differs && e.Doubts)
	require.True(t, d.Asked(), "others have to be able to compare")
	require.False(t, d.MayClaim(someRole, d.now), "claims, though nobody knows who is wrong")

	e = d.says("bad", false)
	require.False(t, e.Rewound || e.Differs || e.Doubts, "counts one process twice")
	d.next(early)
	require.True(t, d.Doubtful(), "counts a Snapshot made before the contradiction")
	d.says("me", true)
	require.True(t, d.Doubtful(), "counts its own vote twice")

	d.says("good", true)
	require.False(t, d.Doubtful())
	require.True(t, d.Asked())
	require.True(t, d.MayClaim(someRole, d.now))
	d.says("good too", true)
	require.False(t, d.Asked(), "asks on, though enough have confirmed the fold")
	require.False(t, d.hello().Confirmed, "decides before others could vote")
	d.now = d.now.Add(time.Second / 2)
	require.True(t, d.hello().Confirmed)
	require.True(t, d.Known())
	require.False(t, d.Asked() || d.hello().Confirmed)
}

func TestOutvotedProcessBeginsAgain(t *testing.T) {
	d := newDoubting()
	one, two := d.snapshot("one", false), d.snapshot("two", false)
	d.next(one)
	e := d.next(two)
	require.True(t, e.Rewound && e.Outvoted && !e.Tied, "goes on with a fold that two others contradict")
	require.False(t, d.Known())
	two = newDoubting().snapshot("two", true)
	two.Read = d.Offset()
	require.True(t, d.next(two).Known, "does not adopt the majority's Snapshot")
}

// With one vote against one, either fold may be wrong. Both processes begin again, and neither
// adopts the other's Snapshot for a while.
func TestTieMakesBothProcessesBeginAgain(t *testing.T) {
	d := newDoubting()
	good := d.snapshot("other", true)
	d.says("bad", false)
	d.now = d.now.Add(time.Second/2 - 1)
	require.False(t, d.hello().Rewound)
	d.now = d.now.Add(1)
	e := d.hello()
	require.True(t, e.Rewound && e.Tied && !e.Outvoted, "keeps a fold that may be wrong")
	require.False(t, d.Known())

	bad := *good
	bad.Session.Process, bad.Read = "bad", d.Offset()
	require.False(t, d.next(&bad).Known, "adopts a Snapshot of the process that contradicted it")
	late := bad
	good.Read = d.Offset()
	require.True(t, d.next(good).Known)

	d = newDoubting()
	d.says("bad", false)
	d.now = d.now.Add(time.Second / 2)
	d.hello()
	d.now = d.now.Add(clock.Wait(clock.Tmax, 0.0005))
	late.Read = d.Offset()
	require.True(t, d.next(&late).Known, "refuses the other's Snapshot for ever")
}

// A process that began again because of another one's Snapshot waits no less because of that other
// process's records: with a wrong fold, the other process does not know the longest lease.
func TestDisbelievedProcessDoesNotShortenTheWait(t *testing.T) {
	s := newScript(t) // x leads role 0
	beat, _ := s.x.Beat(s.now)
	s.put(&beat)
	s.read(s.x, s.z)
	wrong := New(Rules{Process: "wrong", T: time.Second, History: 10}) // it has misread x's Claim
	wrong.Begin(0, true, s.now)
	wrong.join, wrong.fold, wrong.read = nil, newFold(), s.z.Offset()
	s.put(&wrong.Snapshot(s.now)[0])
	s.read(s.z)
	s.wait(time.Second / 2)
	e := s.z.Read(3, &Record{Kind: Hello, Session: Session{"other", 1}, Read: 2, Longest: Unsaid, Seq: 1}, s.now)
	require.True(t, e.Tied, "one vote against one")
	wrong.read = s.z.Offset()
	word := wrong.Word(Hello, s.now)
	require.Zero(t, word.Longest)
	s.z.Read(4, &word, s.now)
	s.wait(2 * time.Millisecond)
	_, leads := s.x.Leads(0, s.now)
	require.True(t, leads)
	_, ok := s.z.Claim([]int32{0}, s.now)
	require.False(t, ok, "claims what another process leads")
}

// If the process that differed has begun again and now has the same fold, the doubt is over.
func TestAgreementOfTheDifferingProcessEndsTheDoubt(t *testing.T) {
	d := newDoubting()
	d.says("bad", false)
	require.True(t, d.says("bad", true).Confirmed)
	require.True(t, d.MayClaim(someRole, d.now))
}

// A Beat of a session that holds nothing by this fold counts as a vote against the fold, like a
// Snapshot that differs.
func TestBeatOfASessionWithoutRolesIsAVoteAgainstTheFold(t *testing.T) {
	d := newDoubting()
	beat := func(process string) Event {
		return d.next(&Record{Kind: Beat, Session: Session{process, 1}, Read: d.Offset(), T: time.Second})
	}
	e := beat("y")
	require.True(t, e.Differs && e.Doubts && !e.Rewound, "ignores a Beat that contradicts the fold")
	require.True(t, beat("z").Outvoted)
	require.False(t, d.Known())
}

// A process that reads its own Snapshot and finds that its fold has changed begins again at once.
func TestProcessThatContradictsItselfBeginsAgain(t *testing.T) {
	d := newDoubting()
	e := d.says("me", false)
	require.True(t, e.Rewound && !e.Tied && !e.Outvoted)
}

func TestNumberOfVotesIsBounded(t *testing.T) {
	d := newDoubting()
	for i := range 2 * maxVoices {
		d.says(fmt.Sprint("good", i), true)
		d.says(fmt.Sprint("bad", i), false)
	}
	require.LessOrEqual(t, len(d.doubt.voices), maxVoices, "counts the votes of more processes than a group has")
}
