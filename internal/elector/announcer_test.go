package elector

import (
	"fmt"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTheNextHello(t *testing.T) {
	for _, c := range []struct {
		name string
		size int
		do   func(*announcer, int)
		want time.Duration // after the last Hello; 2 s have passed since
	}{
		{"nothing happens", 3, func(*announcer, int) {}, 5 * time.Second},
		{"there is news", 3, func(a *announcer, n int) { a.soon(n, at(2*time.Second)) }, 2 * time.Second},
		{"there is news in a large group", 100, func(a *announcer, n int) { a.soon(n, at(2*time.Second)) }, 5 * time.Second},
		{"another's Hello is read early", 3, func(a *announcer, n int) { a.with(n, at(2*time.Second)) }, 5 * time.Second},
		{"another's Hello is read late", 3, func(a *announcer, n int) { a.with(n, at(2500*time.Millisecond)) }, 2500 * time.Millisecond},
		{"a process calls", 3, func(a *announcer, n int) { a.called("p", 1, n, at(2*time.Second)) }, 2 * time.Second},
		{"a process calls at once", 3, func(a *announcer, n int) { a.called("p", 1, n, at(0)) }, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &announcer{}
			a.said(nil, c.size, at(0))
			c.do(a, c.size)
			require.Equal(t, at(c.want).Mono, a.at)
		})
	}
}

// A Hello that was put off on purpose waits, whatever others say.
func TestAHelloThatIsPutOffWaits(t *testing.T) {
	a := &announcer{}
	a.said(nil, 3, at(0))
	a.putOff(at(time.Minute).Mono)
	a.with(3, at(30*time.Second))
	a.called("p", 1, 3, at(30*time.Second))
	require.Equal(t, at(time.Minute).Mono, a.at)
	a.putOff(at(time.Second).Mono)
	require.Equal(t, at(time.Minute).Mono, a.at)
}

// Calls bring Hellos forward and never put one off, and the answers of a large group are
// spread over as long as its members need to say twenty a second.
func TestCallsAreAnsweredInTurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 300).Draw(t, "size")
		a := &announcer{}
		a.said(nil, size, at(0))
		before, now := a.at, at(time.Duration(rapid.IntRange(0, 60_000).Draw(t, "ms"))*time.Millisecond)
		a.called(fmt.Sprint("p", rapid.IntRange(0, 99).Draw(t, "process")), rapid.Int64().Draw(t, "offset"), size, now)
		switch {
		case a.at > before:
			t.Fatal("it was put off")
		case a.at < before && (a.at < now.Mono || a.at < a.saidAt.Add(helloGap(size))):
			t.Fatal("it comes too early")
		case a.at > max(now.Mono, at(0).Mono).Add(helloGap(size)) && a.at > a.saidAt.Add(helloGap(size)) && a.at != before:
			t.Fatal("it comes too late")
		}
	})
}

// A moment in which a process did not want all it can have is said in its next Hello, though
// it has passed, and once.
func TestAMomentOfUnwillingnessIsAdmitted(t *testing.T) {
	a := &announcer{}
	say, changed := a.admit(nil)
	require.Nil(t, say)
	require.True(t, changed)
	a.said(say, 3, at(0))
	_, changed = a.admit(nil)
	require.False(t, changed)
	_, changed = a.admit([]int{})
	require.True(t, changed)
	say, changed = a.admit(nil)
	require.Equal(t, []int{}, say)
	require.True(t, changed)
	a.said(say, 3, at(time.Second))
	say, changed = a.admit(nil)
	require.Nil(t, say)
	require.True(t, changed)
}

// A process that closes in a crowd waits for goodbyes, from the moment on at which it closes:
// the wait has an end before the first goodbye was said.
func TestClosingInACrowd(t *testing.T) {
	const patience, quiet = 600 * time.Millisecond, 20 * time.Millisecond
	a := &announcer{}
	require.False(t, a.over())
	a.close(at(0))
	require.False(t, a.over(), "it has not said so yet")
	require.Equal(t, at(patience).Mono, a.crowdedUntil(patience, quiet))
	a.bye = true
	require.True(t, a.over())
	a.close(at(time.Second))
	a.parted(at(100 * time.Millisecond))
	require.Equal(t, at(patience).Mono, a.crowdedUntil(patience, quiet), "its own goodbye was not read back")
	a.parted(at(200 * time.Millisecond))
	a.ownBye()
	require.Equal(t, at(220*time.Millisecond).Mono, a.crowdedUntil(patience, quiet))
	a.parted(at(300 * time.Millisecond))
	require.Equal(t, at(320*time.Millisecond).Mono, a.crowdedUntil(patience, quiet))
	a.parted(at(599 * time.Millisecond))
	require.Equal(t, at(patience).Mono, a.crowdedUntil(patience, quiet))
}

func yes() bool { return true }
func no() bool  { return false }

func newAnnouncements() *announcements {
	a := &announcements{}
	a.reset(at(0))
	return a
}

func TestSnapshotsAreOffered(t *testing.T) {
	const lease = 20 * time.Second
	a := newAnnouncements()
	require.False(t, a.answer(no, no, lease, at(time.Hour)), "nobody has asked for one")
	a.offer(after(time.Second), 0, lease, at(0))
	a.offer(after(0), 0, lease, at(0))
	require.False(t, a.answer(no, no, lease, at(time.Second-1)))
	require.True(t, a.answer(no, no, lease, at(time.Second)))
	require.False(t, a.answer(no, no, lease, at(time.Second)), "one is enough")

	a.offer(after(time.Second), 0, lease, at(2*time.Second))
	a.told(at(2 * time.Second))
	require.False(t, a.answer(no, no, lease, at(time.Minute)), "another process has written one")
	a.offer(after(time.Second), time.Minute, lease, at(3*time.Second))
	require.False(t, a.answer(no, no, lease, at(3*time.Second+time.Minute-1)), "that would be too soon after it")
	require.True(t, a.answer(no, no, lease, at(3*time.Second+time.Minute)))
}

// Newcomers that ask soon after a Snapshot are answered by one process, not by all that the pause
// holds back.
func TestOneAnswersAfterThePause(t *testing.T) {
	const lease, pause = 20 * time.Second, 10 * time.Second
	first, second := newAnnouncements(), newAnnouncements()
	for i, a := range []*announcements{first, second} {
		a.told(at(time.Second))
		a.offer(after(time.Duration(i)*100*time.Millisecond), pause, lease, at(2*time.Second))
	}
	now := at(time.Second + pause)
	require.True(t, first.answer(no, no, lease, now))
	require.False(t, second.answer(no, no, lease, now), "it has its turn after the pause, too")
	second.told(now.Add(50 * time.Millisecond))
	require.False(t, second.answer(no, no, lease, at(time.Hour)), "the first one has written it")
}

// A process that is behind may have missed another's Snapshot, and waits for it, but not for
// ever.
func TestALaggingProcessAnswersLater(t *testing.T) {
	const lease = 20 * time.Second
	a := newAnnouncements()
	a.offer(after(0), 0, lease, at(0))
	for d := time.Duration(0); d < lease/2; d += lease / 20 {
		require.False(t, a.answer(no, yes, lease, at(d)))
		require.Equal(t, at(d+lease/20).Mono, a.snapshotAt)
	}
	require.True(t, a.answer(no, yes, lease, at(lease/2)), "everyone may be behind")
	a.offer(after(0), 0, lease, at(lease))
	require.False(t, a.answer(no, yes, lease, at(lease)))
	require.True(t, a.answer(no, no, lease, at(lease+lease/20)), "it has caught up")
}

// A Snapshot for others to compare is written though others write theirs, at once, and as
// long as it is asked for.
func TestASnapshotToCompare(t *testing.T) {
	const lease = 20 * time.Second
	a := newAnnouncements()
	a.speak(time.Second, at(0))
	a.told(at(0))
	require.True(t, a.answer(yes, yes, lease, at(time.Second)), "it does not wait though it is behind")
	a.speak(time.Second, at(0))
	require.False(t, a.answer(no, no, lease, at(time.Second)), "enough have said so")
	require.Zero(t, a.snapshotAt)
}

func TestCatchingUp(t *testing.T) {
	const lease = 20 * time.Second
	a := newAnnouncements()
	require.False(t, a.catchUp(false, lease, at(lease-1)))
	require.True(t, a.catchUp(true, lease, at(lease-1)))
	require.False(t, a.catchUp(true, lease, at(lease)), "it is said once")
	a.reset(at(lease))
	require.False(t, a.caughtUp)
	require.True(t, a.catchUp(false, lease, at(2*lease)), "there may be gaps")
}

func TestSnapshotsComeEverySoManyRecords(t *testing.T) {
	a := newAnnouncements()
	for range leastHistory - 1 {
		require.False(t, a.heard(snapshotEvery(0)))
	}
	require.True(t, a.heard(snapshotEvery(0)))
	a.told(at(0))
	require.False(t, a.heard(snapshotEvery(0)))
	require.Equal(t, History, snapshotEvery(1_000_000))
	require.Equal(t, 10*time.Second, snapshotPause(1_000_000, 100, 20*time.Second))
	require.Less(t, snapshotPause(10, 3, 20*time.Second), time.Millisecond)
}

func TestWhenToGreet(t *testing.T) {
	const lease, every = 20 * time.Second, 4 * time.Second
	never, soon := clock.Mono(clock.Never), at(30*time.Second).Mono
	for _, c := range []struct {
		name string
		greeting
		greeted bool
		want    time.Duration // negative: never
	}{
		{"a log that was read and is not known", greeting{read: true, freeAt: never, unsure: no}, false, 0},
		{"one that may have gaps at its end", greeting{freeAt: never, unsure: no}, false, every},
		{"one that was greeted and is being read", greeting{freeAt: never, unsure: yes}, true, -1},
		{"one where nobody has answered", greeting{read: true, freeAt: never, unsure: yes}, true, lease / 2},
		{"one that may be free before that", greeting{read: true, freeAt: at(12 * time.Second).Mono, unsure: yes}, true, 7 * time.Second},
		{"and works", greeting{read: true, freeAt: at(12 * time.Second).Mono, unsure: no}, true, lease / 2},
		{"one without roles", greeting{read: true, spare: true, freeAt: never, unsure: yes}, false, 0},
		{"and greeted", greeting{read: true, spare: true, freeAt: never, unsure: yes}, true, -1},
		{"one that is known", greeting{known: true, read: true, freeAt: never, unsure: yes}, true, -1},
		{"and whose holder may be over", greeting{known: true, read: true, freeAt: soon, unsure: yes}, true, 25 * time.Second},
		{"and works all the same", greeting{known: true, read: true, freeAt: soon, unsure: no}, true, -1},
		{"with a Hello on its way", greeting{known: true, read: true, freeAt: soon, unsure: yes, probed: at(time.Minute).Mono}, true, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAnnouncements()
			a.greeted = c.greeted
			c.t, c.every = lease, every
			due, ok := a.greetDue(c.greeting)
			require.Equal(t, c.want >= 0, ok)
			if ok {
				require.Equal(t, at(c.want).Mono, due)
			}
		})
	}
}

// Whoever is asked, all members have an order in which they answer, and each pair agrees on
// who comes first.
func TestTurnsDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, key := rapid.IntRange(2, 40).Draw(t, "members"), rapid.Uint64().Draw(t, "key")
		turns := map[time.Duration]bool{}
		first := 0
		for i := range n {
			ms := newMembers()
			for k := range n {
				if k != i {
					ms.by[fmt.Sprint("p", k)] = &member{present: true}
				}
			}
			turn := ms.turn(fmt.Sprint("p", i), key, false, 5*time.Second, 10*time.Millisecond, at(0))
			turns[turn] = true
			if turn == 0 {
				first++
			}
		}
		if first != 1 || len(turns) != n {
			t.Fatalf("%d of %d answer at once, there are %d turns", first, n, len(turns))
		}
	})
}

func after(d time.Duration) func() time.Duration { return func() time.Duration { return d } }
