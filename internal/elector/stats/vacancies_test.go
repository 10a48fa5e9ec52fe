package stats

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/observe"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var at = clock.HourAnd // an instant after the beginning of a test

// nobody holds any role, nor may a newer version.
type nobody struct{ observe.Fold }

func (nobody) NewerUntil() clock.Raw { return 0 }

// Roles become vacant and are won in any order, R changes, time passes: the counters agree with a naive count.
func TestVacancyStatsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &Counters{}
		v := NewVacancies(nobody{}, nil, time.Second, c)
		naive, below, now := map[int32]time.Duration{}, int32(8), time.Second
		leaderless, lasted, won := 0.0, 0.0, uint64(0)
		roles := rapid.SliceOfNDistinct(rapid.Int32Range(0, 11), 0, 6, func(r int32) int32 { return r })
		v.account(0, false, c, at(now))
		t.Repeat(map[string]func(*rapid.T){
			"vacated": func(t *rapid.T) {
				some := roles.Draw(t, "roles")
				number := v.open(at(now).Raw, at(now).Raw)
				for _, r := range some {
					v.vacated(r, below, number)
					if _, is := naive[r]; !is && r < below {
						naive[r] = now
					}
				}
				v.close(number)
			},
			"occupied": func(t *rapid.T) {
				some := roles.Draw(t, "roles")
				over := endedSpans{v: &v, now: at(now)}
				for _, r := range some {
					if number := v.occupied(r); number != 0 {
						over.add(number)
					}
					if since, is := naive[r]; is {
						won++
						lasted += (now - since).Seconds()
						delete(naive, r)
					}
				}
				over.count()
			},
			"resize": func(t *rapid.T) {
				below = rapid.Int32Range(0, 12).Draw(t, "below")
				v.resize(int(below))
				for r := range naive {
					if r >= below {
						delete(naive, r)
					}
				}
			},
			"free": func(*rapid.T) { v.Free() },
			"time": func(t *rapid.T) {
				d := time.Duration(rapid.IntRange(1, 9).Draw(t, "s")) * time.Second
				now += d
				leaderless += d.Seconds() * float64(len(naive))
				v.account(0, false, c, at(now))
			},
			"": func(t *rapid.T) {
				if v.count != len(naive) || c.Vacancies.Count != won || c.Leaderless != leaderless || c.Vacancies.Sum != lasted {
					t.Fatalf("%d vacant, %d won after %v s, %v s; should be %d, %d after %v s, %v s", v.count, c.Vacancies.Count, c.Vacancies.Sum, c.Leaderless,
						len(naive), won, lasted, leaderless)
				}
				if used := len(v.list) - len(v.unused); used > len(naive) {
					t.Fatalf("%d spans for %d vacant roles", used, len(naive))
				}
			},
		})
	})
}

// A role is not counted as vacant while a member of a newer version may hold it.
func TestRoleThatANewerVersionMayHoldIsNotVacant(t *testing.T) {
	v, c := &spans{}, &Counters{}
	v.account(0, false, c, at(0))
	number := v.open(at(0).Raw, at(0).Raw)
	v.vacated(0, 2, number)
	v.vacated(1, 2, number)
	v.account(at(3*time.Second).Raw, false, c, at(2*time.Second))
	require.Zero(t, c.Leaderless)
	v.account(at(3*time.Second).Raw, false, c, at(5*time.Second))
	require.InDelta(t, 4, c.Leaderless, 1e-9)
}

// The time without a leader is the same, however often it is added up.
func TestLeaderlessTimeDoesNotDependOnLooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var once, often spans
		var c, d Counters
		end, now := time.Duration(rapid.IntRange(1, 60_000).Draw(t, "ms"))*time.Millisecond, time.Duration(0)
		for _, v := range []*spans{&once, &often} {
			v.vacated(1, 4, v.open(at(0).Raw, at(0).Raw))
			v.account(0, false, &Counters{}, at(0))
		}
		newer := at(time.Duration(rapid.IntRange(0, 60_000).Draw(t, "newer")) * time.Millisecond).Raw
		for now < end {
			now = min(end, now+time.Duration(rapid.IntRange(1, 9000).Draw(t, "pause"))*time.Millisecond)
			often.account(newer, false, &d, at(now))
		}
		once.account(newer, false, &c, at(end))
		if diff := c.Leaderless - d.Leaderless; diff > 1e-6 || diff < -1e-6 {
			t.Fatalf("%v s at once, %v s in all", c.Leaderless, d.Leaderless)
		}
	})
}

// Vacancies that began and ended together are added to the histogram at once, with their number, so
// that a million roles cost no more than one.
func TestVacanciesThatEndTogetherAreCountedTogether(t *testing.T) {
	c := &Counters{}
	v := NewVacancies(nobody{}, nil, time.Second, c)
	for role, since := range []time.Duration{2, 2, 7, 2} {
		if role != 1 {
			v.open(at(since*time.Second).Raw, at(since*time.Second).Raw)
		}
		v.vacated(int32(role), 5, int32(len(v.list)))
	}
	e := endedSpans{v: &v, now: at(10 * time.Second)}
	for local := range int32(4) {
		e.add(v.occupied(local))
	}
	e.count()
	e.count()
	require.Equal(t, uint64(4), c.Vacancies.Count)
	require.InDelta(t, 3*8+3, c.Vacancies.Sum, 1e-9)
	require.InDelta(t, 3*8+3, c.Leaderless, 1e-9, "nothing was added up while they lasted")
	require.Len(t, v.unused, 3, "no span is left")
}

// A gap hides time, and an own record that is read back shows part of it.
func TestGaps(t *testing.T) {
	for name, c := range map[string]struct {
		past             []gap
		proved           time.Duration
		silence, vacancy time.Duration // from 10 to 20
	}{
		"none":                             {nil, 0, 10, 10},
		"before":                           {[]gap{{from: 1, known: 1, to: 9}}, 0, 10, 10},
		"within":                           {[]gap{{from: 12, known: 12, to: 15}}, 0, 7, 7},
		"over the beginning":               {[]gap{{from: 5, known: 5, to: 15}}, 0, 5, 5},
		"of a log that stood still":        {[]gap{{from: 12, known: 12, to: 15}}, 14, 7, 9},
		"of a log that stood still, ended": {[]gap{{from: 12, known: 12, to: 15}}, 16, 7, 10},
		"asleep":                           {[]gap{{from: 12, known: 12, to: 15, asleep: true}}, 14, 7, 7},
		"asleep, and nothing was missed":   {[]gap{{from: 12, known: 12, to: 15, asleep: true}}, 15, 10, 10},
		"all of it":                        {[]gap{{from: 12, known: 12, to: 15}, {from: 8, known: 8, to: 12}, {from: 15, known: 15, to: 30}}, 0, 0, 0},
	} {
		g := gaps{past: c.past}
		g.Proved(clock.Raw(c.proved))
		require.Equal(t, [2]time.Duration{c.silence, c.vacancy}, [2]time.Duration{g.silence(10, 20), g.vacancy(10, 20)}, name)
	}
	var g gaps
	for i := range 100 {
		g.add(gap{from: clock.Raw(10 * i), known: clock.Raw(10*i + 1), to: clock.Raw(10*i + 2)})
	}
	require.Len(t, g.past, maxGaps)
	require.EqualValues(t, (maxGaps-1)*8, g.silence(g.past[0].to, 992), "the newest are kept")
	require.Zero(t, g.silence(1, g.past[0].to), "the others count as one")
}
