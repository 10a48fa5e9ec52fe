package announce

import (
	"fmt"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var at = clock.HourAnd // an instant after the beginning of a test

func yes() bool { return true }

func no() bool { return false }

func after(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

func TestTheNextHello(t *testing.T) {
	for _, c := range []struct {
		name string
		size int
		do   func(*Announcer, int)
		want time.Duration // after the last Hello; 2 s have passed since
	}{
		{"nothing happens", 3, func(*Announcer, int) {}, 5 * time.Second},
		{"there is news", 3, func(a *Announcer, n int) { a.Soon(n, at(2*time.Second)) }, 2 * time.Second},
		{"there is news in a large group", 100, func(a *Announcer, n int) { a.Soon(n, at(2*time.Second)) }, 5 * time.Second},
		{"another's Hello is read early", 3, func(a *Announcer, n int) { a.With(n, at(2*time.Second)) }, 5 * time.Second},
		{"another's Hello is read late", 3, func(a *Announcer, n int) { a.With(n, at(2500*time.Millisecond)) }, 2500 * time.Millisecond},
		{"a process calls", 3, func(a *Announcer, n int) { a.Called("p", 1, n, at(2*time.Second)) }, 2 * time.Second},
		{"a process calls at once", 3, func(a *Announcer, n int) { a.Called("p", 1, n, at(0)) }, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &Announcer{}
			a.Said(nil, c.size, at(0))
			c.do(a, c.size)
			require.Equal(t, at(c.want).Mono, a.at)
		})
	}
}

// A Hello that was put off on purpose waits, whatever others say.
func TestAHelloThatIsPutOffWaits(t *testing.T) {
	a := &Announcer{}
	a.Said(nil, 3, at(0))
	a.PutOff(at(time.Minute).Mono)
	a.With(3, at(30*time.Second))
	a.Called("p", 1, 3, at(30*time.Second))
	require.Equal(t, at(time.Minute).Mono, a.at)
	a.PutOff(at(time.Second).Mono)
	require.Equal(t, at(time.Minute).Mono, a.at)
}

// Calls bring Hellos forward and never put one off. The answers of a large group are spread out, so
// that its members say twenty a second.
func TestCallsAreAnsweredInTurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 300).Draw(t, "size")
		a := &Announcer{}
		a.Said(nil, size, at(0))
		before, now := a.at, at(time.Duration(rapid.IntRange(0, 60_000).Draw(t, "ms"))*time.Millisecond)
		a.Called(fmt.Sprint("p", rapid.IntRange(0, 99).Draw(t, "process")), rapid.Int64().Draw(t, "offset"), size, now)
		switch {
		case a.at > before:
			t.Fatal("it was put off")
		case a.at < before && (a.at < now.Mono || a.at < a.saidAt.Add(roster.HelloGap(size))):
			t.Fatal("it comes too early")
		case a.at > max(now.Mono, at(0).Mono).Add(roster.HelloGap(size)) && a.at > a.saidAt.Add(roster.HelloGap(size)) && a.at != before:
			t.Fatal("it comes too late")
		}
	})
}

func newAnnouncements() *Announcements {
	a := &Announcements{}
	a.Reset(at(0))
	return a
}

func TestOfferedSnapshotIsWrittenOnce(t *testing.T) {
	const lease = 20 * time.Second
	a := newAnnouncements()
	require.False(t, a.Answer(no, no, lease, at(time.Hour)), "nobody has asked for one")
	a.Offer(after(time.Second), 0, lease, at(0))
	a.Offer(after(0), 0, lease, at(0))
	require.False(t, a.Answer(no, no, lease, at(time.Second-1)))
	require.True(t, a.Answer(no, no, lease, at(time.Second)))
	require.False(t, a.Answer(no, no, lease, at(time.Second)), "one is enough")

	a.Offer(after(time.Second), 0, lease, at(2*time.Second))
	a.Told(at(2 * time.Second))
	require.False(t, a.Answer(no, no, lease, at(time.Minute)), "another process has written one")
	a.Offer(after(time.Second), time.Minute, lease, at(3*time.Second))
	require.False(t, a.Answer(no, no, lease, at(3*time.Second+time.Minute-1)), "that would be too soon after it")
	require.True(t, a.Answer(no, no, lease, at(3*time.Second+time.Minute)))
}

// If newcomers ask soon after a Snapshot, one process answers them, not all that the pause holds back.
func TestOneProcessAnswersAfterThePause(t *testing.T) {
	const lease, pause = 20 * time.Second, 10 * time.Second
	first, second := newAnnouncements(), newAnnouncements()
	for i, a := range []*Announcements{first, second} {
		a.Told(at(time.Second))
		a.Offer(after(time.Duration(i)*100*time.Millisecond), pause, lease, at(2*time.Second))
	}
	now := at(time.Second + pause)
	require.True(t, first.Answer(no, no, lease, now))
	require.False(t, second.Answer(no, no, lease, now), "it has its turn after the pause, too")
	second.Told(now.Add(50 * time.Millisecond))
	require.False(t, second.Answer(no, no, lease, at(time.Hour)), "the first one has written it")
}

func TestSnapshotsComeEverySoManyRecords(t *testing.T) {
	a := newAnnouncements()
	for range leastHistory - 1 {
		require.False(t, a.Heard(SnapshotEvery(0)))
	}
	require.True(t, a.Heard(SnapshotEvery(0)))
	a.Told(at(0))
	require.False(t, a.Heard(SnapshotEvery(0)))
	require.Equal(t, History, SnapshotEvery(1_000_000))
	require.Equal(t, 10*time.Second, SnapshotPause(1_000_000, 100, 20*time.Second))
	require.Less(t, SnapshotPause(10, 3, 20*time.Second), time.Millisecond)
}

func TestWhenToGreet(t *testing.T) {
	const lease, every = 20 * time.Second, 4 * time.Second
	never, soon := clock.Mono(clock.Never), at(30*time.Second).Mono
	for _, c := range []struct {
		name string
		Greeting
		greeted bool
		want    time.Duration // negative: never
	}{
		{"a log that was read and is not known", Greeting{Read: true, FreeAt: never, Unsure: no}, false, 0},
		{"one that may have gaps at its end", Greeting{FreeAt: never, Unsure: no}, false, every},
		{"one that was greeted and is being read", Greeting{FreeAt: never, Unsure: yes}, true, -1},
		{"one where nobody has answered", Greeting{Read: true, FreeAt: never, Unsure: yes}, true, lease / 2},
		{"one that may be free before that", Greeting{Read: true, FreeAt: at(12 * time.Second).Mono, Unsure: yes}, true, 7 * time.Second},
		{"and works", Greeting{Read: true, FreeAt: at(12 * time.Second).Mono, Unsure: no}, true, lease / 2},
		{"one without roles", Greeting{Read: true, Spare: true, FreeAt: never, Unsure: yes}, false, 0},
		{"and greeted", Greeting{Read: true, Spare: true, FreeAt: never, Unsure: yes}, true, -1},
		{"one that is known", Greeting{Known: true, Read: true, FreeAt: never, Unsure: yes}, true, -1},
		{"and whose holder may be over", Greeting{Known: true, Read: true, FreeAt: soon, Unsure: yes}, true, 25 * time.Second},
		{"and works all the same", Greeting{Known: true, Read: true, FreeAt: soon, Unsure: no}, true, -1},
		{"with a Hello on its way", Greeting{Known: true, Read: true, FreeAt: soon, Unsure: yes, Probed: at(time.Minute).Mono}, true, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAnnouncements()
			a.greeted = c.greeted
			c.T, c.HeartbeatInterval = lease, every
			due, ok := a.GreetDue(c.Greeting)
			require.Equal(t, c.want >= 0, ok)
			if ok {
				require.Equal(t, at(c.want).Mono, due)
			}
		})
	}
}
