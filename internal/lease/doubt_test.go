package lease

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
)

// doubting is a process that knows the fold, and others that say they have the same, or
// another one.
type doubting struct {
	*Lease
	now clock.Instant
}

func newDoubting() *doubting {
	l, now := filled(100)
	return &doubting{l, now}
}

// snapshot is another process's Snapshot, made of what was read up to now.
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

// next reads a record that is the next one.
func (d *doubting) next(r *Record) Event { return d.Read(d.Offset()+1, r, d.now) }

func (d *doubting) hello() Event {
	return d.next(&Record{Kind: Hello, Session: Session{"h", 1}, Read: d.Offset()})
}

const someRole = 5000 // that nobody holds

// A single process that differs costs nobody his terms: it is contradicted by the others.
func TestOneThatDiffersIsOutvotedByOthers(t *testing.T) {
	d := newDoubting()
	require.True(t, d.MayClaim(someRole, d.now))
	early := d.snapshot("early", true)
	e := d.says("bad", false)
	require.False(t, e.Rewound, "one contradiction ends everything")
	require.True(t, e.Differs && e.Doubts)
	require.True(t, d.Asked(), "others have to be able to compare")
	require.False(t, d.MayClaim(someRole, d.now), "claims, though nobody knows who is wrong")

	e = d.says("bad", false)
	require.False(t, e.Rewound || e.Differs || e.Doubts, "it is one voice")
	d.next(early)
	require.True(t, d.Doubtful(), "what was written before says nothing")
	d.says("me", true)
	require.True(t, d.Doubtful(), "the own voice is counted already")

	d.says("good", true)
	require.False(t, d.Doubtful())
	require.True(t, d.Asked())
	require.True(t, d.MayClaim(someRole, d.now))
	d.says("good too", true)
	require.False(t, d.Asked(), "enough have said so")
	require.False(t, d.hello().Confirmed, "others may yet speak")
	d.now = d.now.Add(time.Second / 2)
	require.True(t, d.hello().Confirmed)
	require.True(t, d.Known())
	require.False(t, d.Asked() || d.hello().Confirmed)
}

func TestWhoIsOutvotedBeginsAnew(t *testing.T) {
	d := newDoubting()
	one, two := d.snapshot("one", false), d.snapshot("two", false)
	d.next(one)
	e := d.next(two)
	require.True(t, e.Rewound && e.Outvoted && !e.Tied, "goes on with a fold that two others contradict")
	require.False(t, d.Known())
	two = newDoubting().snapshot("two", true)
	two.Read = d.Offset()
	require.True(t, d.next(two).Known, "it believes them")
}

// A fold is as good as another when nobody else speaks. Then all begin again who are
// contradicted, and do not believe each other at once.
func TestATieMakesBeginAnew(t *testing.T) {
	d := newDoubting()
	good := d.snapshot("other", true)
	d.says("bad", false)
	d.now = d.now.Add(time.Second/2 - 1)
	require.False(t, d.hello().Rewound)
	d.now = d.now.Add(1)
	e := d.hello()
	require.True(t, e.Rewound && e.Tied && !e.Outvoted, "a wrong fold lives on")
	require.False(t, d.Known())

	bad := *good
	bad.Session.Process, bad.Read = "bad", d.Offset()
	require.False(t, d.next(&bad).Known, "believes who has contradicted it")
	late := bad
	good.Read = d.Offset()
	require.True(t, d.next(good).Known)

	d = newDoubting()
	d.says("bad", false)
	d.now = d.now.Add(time.Second / 2)
	d.hello()
	d.now = d.now.Add(clock.Wait(clock.Tmax, 0.0005))
	late.Read = d.Offset()
	require.True(t, d.next(&late).Known, "for ever it must not")
}

// Who changes his mind has begun again.
func TestOneThatDiffersNoMoreEndsTheDoubt(t *testing.T) {
	d := newDoubting()
	d.says("bad", false)
	require.True(t, d.says("bad", true).Confirmed)
	require.True(t, d.MayClaim(someRole, d.now))
}

// A Beat of a session that holds nothing is a voice like a Snapshot that differs.
func TestABeatThatCannotBeIsAVoice(t *testing.T) {
	d := newDoubting()
	beat := func(process string) Event {
		return d.next(&Record{Kind: Beat, Session: Session{process, 1}, Read: d.Offset(), T: time.Second})
	}
	e := beat("y")
	require.True(t, e.Differs && e.Doubts && !e.Rewound, "a Beat that cannot be is passed over")
	require.True(t, beat("z").Outvoted)
	require.False(t, d.Known())
}

// Who contradicts itself needs nobody else to tell.
func TestWhoContradictsItselfBeginsAnew(t *testing.T) {
	d := newDoubting()
	e := d.says("me", false)
	require.True(t, e.Rewound && !e.Tied && !e.Outvoted)
}

func TestVoicesAreBounded(t *testing.T) {
	d := newDoubting()
	for i := range 2 * maxVoices {
		d.says(fmt.Sprint("good", i), true)
		d.says(fmt.Sprint("bad", i), false)
	}
	require.LessOrEqual(t, len(d.doubt.voices), maxVoices, "more processes are listened to than a group has")
}
