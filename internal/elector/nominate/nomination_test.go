package nominate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What is held when the group's session is lost is kept, until the group says who is
// nominated again.
func TestALostSessionEndsNoLease(t *testing.T) {
	for _, c := range []struct {
		name               string
		was                Nomination
		named, lost, holds bool
		retained, changed  bool
	}{
		{"nominated at last", Nomination{}, true, false, false, false, true},
		{"nominated on", Nomination{nominated: true}, true, false, true, false, false},
		{"not any more", Nomination{nominated: true}, false, false, true, false, true},
		{"the session is lost", Nomination{nominated: true}, false, true, true, true, true},
		{"and holds nothing", Nomination{nominated: true}, false, true, false, false, true},
		{"and is lost again", Nomination{retained: true}, false, true, true, true, false},
		{"it is back, and another one is nominated", Nomination{retained: true}, false, false, true, false, false},
		{"lost by one that was not nominated", Nomination{}, false, true, true, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := c.was
			require.Equal(t, c.changed, g.Nominate(c.named, c.lost, c.holds, at(time.Second)))
			require.Equal(t, c.named, g.nominated)
			require.Equal(t, c.retained, g.retained)
			require.Equal(t, c.changed && c.named, g.since == at(time.Second))
		})
	}
}

// A nominee whose Claims are not heard of for 15 s, or for 3T if that is longer, cannot reach
// the partition. Anything that is read there shows that it can.
func TestWhenAPartitionIsUnheard(t *testing.T) {
	g := Nomination{nominated: true}
	require.False(t, g.Unheard(time.Second, at(time.Hour)), "it has claimed nothing")
	g.Claimed(at(0))
	g.Claimed(at(10 * time.Second))
	require.False(t, g.Unheard(time.Second, at(GiveWayAfter-1)))
	require.True(t, g.Unheard(time.Second, at(GiveWayAfter)))
	require.False(t, g.Unheard(10*time.Second, at(30*time.Second-1)))
	require.True(t, g.Unheard(10*time.Second, at(30*time.Second)))
	g.Heard()
	require.False(t, g.Unheard(time.Second, at(time.Hour)))
	g.Claimed(at(0))
	g.nominated = false
	require.False(t, g.Unheard(time.Second, at(time.Hour)), "others are nominated")
}

// After an outage that ended the nomination, a process is nominated before its reader has recovered. It must not leave the
// group because of Claims that failed in the outage.
func TestClaimsOfAnEarlierNominationDoNotCount(t *testing.T) {
	g := Nomination{nominated: true}
	g.Claimed(at(0))
	g.Nominate(false, true, false, at(10*time.Second))
	g.Nominate(true, false, false, at(time.Minute))
	require.False(t, g.Unheard(time.Second, at(time.Minute)))
	g.Claimed(at(time.Minute))
	require.False(t, g.Unheard(time.Second, at(time.Minute+15*time.Second-1)))
	require.True(t, g.Unheard(time.Second, at(time.Minute+15*time.Second)))
}

// A process that cannot reach a partition stays away for so long at most, and after that it
// stays in the group for so long at least.
func TestAbsenceIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, now, left, back := &Attendance{}, time.Duration(0), time.Duration(-1), time.Duration(-1)
		for range 200 {
			now += time.Duration(rapid.IntRange(1, 10).Draw(t, "s")) * time.Second
			var unheard []int
			if rapid.Bool().Draw(t, "unheard") {
				unheard = []int{3}
			}
			away, lost := a.Away(func() []int { return unheard }, at(now))
			switch {
			case len(lost) > 0 && (!away || left >= 0 || back >= 0 && now-back < Presence-10*time.Second):
				t.Fatal("it leaves too soon after it was back")
			case len(lost) > 0:
				left, back = now, -1
			case away && (left < 0 || now-left >= Absence):
				t.Fatal("it is away for too long, or without a reason")
			case !away && left >= 0 && now-left < Absence:
				t.Fatal("it is back too soon")
			case !away && left >= 0:
				left, back = -1, now
			}
		}
	})
}
