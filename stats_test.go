package neli_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/scenario"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// ended is how many terms have ended for any reason.
func ended(s neli.Stats) (n uint64) {
	for _, c := range s.TermsEnded {
		n += c
	}
	return n
}

// readAhead appends a record whose sender claims to have read beyond the log's end, which looks as
// if the log went back.
func readAhead(c *cluster) {
	beats := records(c, "app.neli", 0, "beat")
	ahead := regexp.MustCompile(`"read":\d+`).ReplaceAll(beats[len(beats)-1].Value, []byte(`"read":9999999`))
	_, err := c.Broker.Inject("app.neli", 0, ahead)
	require.NoError(c, err)
}

// claimedByAnother makes an unknown session claim all roles of the log's first claim. The claim
// says that its sender has read all of the log, so it counts.
func claimedByAnother(c *cluster) {
	all, claims := c.Broker.Records("app.neli", 0), records(c, "app.neli", 0, "claim")
	var of struct{ Log string }
	require.NoError(c, json.Unmarshal(claims[0].Value, &of))
	r := scenario.Decode(claims[0].Value, "app")
	require.NotNil(c, r)
	r.Session, r.Name = lease.Session{Process: "another", N: 1}, "another"
	r.Read, r.Fresh, r.Longest = all[len(all)-1].Offset, false, r.T
	_, err := c.Broker.Inject("app.neli", 0, lease.Codec{Group: "app", Log: of.Log}.Encode(r))
	require.NoError(c, err)
}

// An observer often has its members' configuration, but it does not call Healthy. It must not count as unhealthy for
// that, or the alert NeliUnhealthy would never stop firing.
func TestObserverIsNotUnhealthy(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		o := c.Join("o", func(cfg *neli.Config) {
			observer(cfg)
			cfg.Healthy = func() error { c.Error("called"); return nil }
		})
		c.Pass(10 * time.Second)
		require.True(c, o.Stats().Healthy)
	})
}

// What a leader and an observer count while nothing happens.
func TestStatsOfQuietTimes(t *testing.T) {
	simulateWith(t, nelitest.Options{}, roles(10), func(c *cluster) {
		two := func(cfg *neli.Config) { open(cfg); cfg.Partitions = 2 }
		a := c.Join("a", two)
		s := a.Stats()
		s.Steps = neli.Timing{} // their number is not fixed
		for _, timing := range []*neli.Timing{&s.RoundTrips, &s.Drains, &s.Vacancies} {
			require.Len(c, timing.Buckets, 12)
			timing.Buckets = nil
		}
		require.Equal(c, neli.Stats{Roles: 10, Healthy: true, RefusedSettings: map[string]string{}, Sentinel: "none", TermsEnded: map[neli.Reason]uint64{}}, s, "nothing was found yet")
		a.Start()
		c.Leader(9, 2*silence)
		o := c.Join("o", func(cfg *neli.Config) { two(cfg); cfg.Observer = true })
		c.Pass(10 * time.Second)
		before := a.Stats()
		c.Pass(time.Minute)
		s = a.Stats()
		require.Equal(c, uint64(10), s.TermsStarted)
		require.Zero(c, ended(s))
		require.Equal(c, []int{10, 10, 10, 0}, []int{s.Roles, s.Led, s.Held, s.Vacant})
		require.EqualValues(c, 10, s.Vacancies.Count, "the roles of a new group, until it claimed them")
		require.Less(c, s.Leaderless, 10*0.2)
		require.LessOrEqual(c, s.EvidenceAge, beat+100*time.Millisecond)
		require.Positive(c, s.EvidenceAge)
		require.LessOrEqual(c, s.RecordAge, beat+100*time.Millisecond)
		require.True(c, s.Healthy)
		beats := s.Appended - before.Appended
		require.InDelta(c, 2*60+12, beats, 15, "beats in two logs, and hellos")
		require.InDelta(c, beats, s.RoundTrips.Count-before.RoundTrips.Count, 2)
		require.InDelta(c, beats, s.Records-before.Records, 2)
		require.Zero(c, s.AppendFailed+s.LogResets)
		require.GreaterOrEqual(c, s.Steps.Count-before.Steps.Count, s.Records-before.Records, "a step for each record")

		s = o.Stats()
		require.Equal(c, []int{10, 0, 10, 0}, []int{s.Roles, s.Led, s.Held, s.Vacant})
		require.Zero(c, s.Appended+s.RoundTrips.Count+s.TermsStarted)
		require.Zero(c, s.PulseAge, "nobody expects it to pulse")
		require.Zero(c, s.EvidenceAge)
	})
}

// Each way to lose leadership increments the counter of its reason by the number of roles. Terms
// that began and have not ended are held.
func TestTermsEndedByReason(t *testing.T) {
	type given struct {
		why neli.Reason
		do  func(c *cluster, a *member)
	}
	cutOff := func(c *cluster, a *member) {
		c.Broker.CutOff("a", nelitest.LinkAll)
		c.Pass(2 * silence)
	}
	for _, g := range []given{
		{neli.ReasonLapsed, cutOff},
		{neli.ReasonClosing, func(c *cluster, a *member) { require.NoError(c, a.Close()) }},
		{neli.ReasonRolesChanged, func(c *cluster, a *member) { require.NoError(c, a.SetRoles(1)); c.Pass(time.Second) }},
		{neli.ReasonSteppedDown, func(c *cluster, a *member) { require.NoError(c, a.StepDown(c.Context())) }},
		{neli.ReasonLogReset, func(c *cluster, a *member) {
			c.Pass(2 * beat)
			readAhead(c)
			c.Pass(5 * time.Second)
		}},
		{neli.ReasonSuperseded, func(c *cluster, a *member) {
			claimedByAnother(c)
			c.Pass(time.Second)
			require.False(c, a.IsLeader())
		}},
		{neli.ReasonOverdue, func(c *cluster, a *member) {
			a.Hold(15 * time.Second)
			go func() { _ = a.StepDown(c.Context()) }()
			c.Pass(20 * time.Second)
		}},
		{neli.ReasonTransferred, func(c *cluster, a *member) {
			c.Work("b", open)
			c.Pass(2 * time.Second)
			require.NoError(c, a.Transfer(c.Context(), 3, "b"))
		}},
		{neli.ReasonRebalanced, func(c *cluster, a *member) { c.Work("b", open); c.Pass(30 * time.Second) }},
		{neli.ReasonFatal, func(c *cluster, a *member) {
			require.NoError(c, c.Broker.Truncate("app.neli", 0, 1))
			c.Pass(5 * time.Second)
			require.Equal(c, neli.StateFailed, a.State())
		}},
	} {
		t.Run(g.why.String(), func(t *testing.T) {
			simulateWith(t, nelitest.Options{}, roles(4), func(c *cluster) {
				a := c.Work("a", open)
				c.Leader(3, 2*silence)
				require.Equal(c, uint64(4), a.Stats().TermsStarted)
				require.Zero(c, ended(a.Stats()))
				g.do(c, a)
				s := a.Stats()
				require.Positive(c, s.TermsEnded[g.why], "%v", s.TermsEnded)
				told := uint64(0)
				for _, e := range a.Events() {
					switch e := e.(type) {
					case neli.LeaderFenced:
						told += uint64(len(e.Roles()))
					case neli.LeaderRevoked:
						told += uint64(len(e.Roles()))
					}
				}
				if g.why == neli.ReasonLogReset || g.why == neli.ReasonFatal {
					require.GreaterOrEqual(c, ended(s), told)
				} else {
					require.Equal(c, told, ended(s), "as the application was told")
				}
				require.Equal(c, uint64(len(slices.Collect(a.Led()))), s.TermsStarted-ended(s), "what has not ended is led")
				require.Equal(c, len(slices.Collect(a.Led())), s.Led)
			})
		})
	}
}

// A process that no longer contends has resigned: its driver was closed, or the context of its Lead has ended.
func TestStatsOfAProcessThatResigns(t *testing.T) {
	simulateWith(t, nelitest.Options{}, roles(4), func(c *cluster) {
		a := c.Join("a", open)
		p, err := a.Background(a.Task)
		require.NoError(c, err)
		c.Leader(3, 2*silence)
		require.Zero(c, ended(a.Stats()))
		require.NoError(c, p.Close())
		s := a.Stats()
		require.Equal(c, uint64(4), s.TermsEnded[neli.ReasonResigned])
		require.Equal(c, uint64(4), ended(s), "and for no other reason")
		require.Zero(c, s.Led)
	})
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a := c.Join("a", open)
		ctx, cancel := context.WithCancel(c.Context())
		runs, result := leading(ctx, a)
		r := next(c, runs, 2*silence)
		cancel()
		<-r.ctx.Done()
		require.Zero(c, ended(a.Stats()), "it finishes")
		r.done <- r.ctx.Err()
		require.NoError(c, <-result)
		s := a.Stats()
		require.Equal(c, uint64(1), s.TermsEnded[neli.ReasonResigned])
		require.Equal(c, uint64(1), ended(s))
	})
}

// Roles that the group assigns to another member are counted as unassigned, in both modes.
func TestStatsOfUnassignedRoles(t *testing.T) {
	simulateWith(t, nelitest.Options{RebalanceTime: 300 * time.Millisecond}, roles(2), func(c *cluster) {
		with := func(cfg *neli.Config) { cfg.Partitions = 2 }
		a := c.Work("a", with)
		c.Leader(0, 2*silence)
		c.Leader(1, 2*silence)
		c.Pass(10 * time.Second)
		require.Zero(c, ended(a.Stats()))
		b := c.Work("b", with)
		c.Eventually(30*time.Second, "b has one", b.IsLeader)
		s := a.Stats()
		require.Equal(c, uint64(1), s.TermsEnded[neli.ReasonUnassigned])
		require.Equal(c, uint64(1), ended(s))
		require.Equal(c, 1, s.Led)
	})
	simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
		with := func(cfg *neli.Config) {
			cfg.Mode = neli.NonExclusive
			cfg.KafkaConfig = neli.KafkaConfigMap{"partition.assignment.strategy": "range"}
		}
		b := c.Work("b", with)
		c.Leader(0, time.Minute)
		a := c.Work("a", with) // the range assignor gives it the partition
		c.Eventually(10*time.Second, "a leads", a.IsLeader)
		require.Zero(c, ended(b.Stats()), "it leads until its lease is over")
		c.Pass(18 * time.Second)
		s := b.Stats()
		require.Equal(c, uint64(1), s.TermsEnded[neli.ReasonUnassigned])
		require.Equal(c, uint64(1), ended(s))
		require.Zero(c, s.Led)
	})
}

// A loss because the application does not pulse is counted as that, even if the application was not
// told of it. So is a loss because Healthy returns an error.
func TestStatsOfASickApplication(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a := c.Join("a", open)
		_, err := a.Pulse(2 * silence)
		require.NoError(c, err)
		c.Pass(20 * time.Second)
		require.Equal(c, 20*time.Second, a.Stats().PulseAge.Round(100*time.Millisecond))
		c.Pass(20 * time.Second)
		require.Equal(c, uint64(1), a.Stats().TermsEnded[neli.ReasonNotPulsed])
		require.Equal(c, []string{"acquired"}, a.Kinds(), "it was not told")
		_, err = a.Pulse(2 * silence)
		require.NoError(c, err)
		b, done := c.Join("b", open), make(chan struct{})
		go func() { defer close(done); _, _ = b.Pulse(2 * time.Second) }()
		c.Pass(time.Second)
		require.Zero(c, b.Stats().PulseAge, "it waits")
		<-done
	})
	simulate(t, nelitest.Options{}, func(c *cluster) {
		var sick atomic.Bool
		asked := make(chan struct{})
		a := c.Work("a", func(cfg *neli.Config) {
			open(cfg)
			cfg.Healthy = func() error {
				<-asked
				if sick.Load() {
					return errors.New("no disk")
				}
				return nil
			}
		})
		require.False(c, a.Stats().Healthy, "it has not said yet")
		close(asked)
		c.Leader(0, 2*silence)
		require.True(c, a.Stats().Healthy)
		sick.Store(true)
		c.Pass(5 * time.Second)
		s := a.Stats()
		require.False(c, s.Healthy)
		require.Equal(c, uint64(1), s.TermsEnded[neli.ReasonUnhealthy])
		require.Equal(c, 1, s.Vacant)
	})
}

// The durations of a hand-over and a fail-over are measured as other processes see them, for each
// role. Leaderless grows as long as a role has no leader.
func TestVacanciesAreTimed(t *testing.T) {
	simulateWith(t, nelitest.Options{}, roles(3), func(c *cluster) {
		o := c.Join("o", observer)
		a := c.Work("a", open)
		c.Leader(2, 2*silence)
		c.Pass(time.Second)
		began := o.Stats()
		require.Equal(c, 3, began.Held)
		require.NoError(c, a.Close())
		c.Pass(100 * time.Second)
		s := o.Stats()
		require.Equal(c, []int{3, 0, 3}, []int{s.Roles, s.Held, s.Vacant})
		require.Equal(c, began.Vacancies.Count, s.Vacancies.Count, "they last")
		require.InDelta(c, 3*100, s.Leaderless-began.Leaderless, 1, "those that last are added up all the same")
		c.Pass(10 * time.Second)
		require.InDelta(c, 3*110, o.Stats().Leaderless-began.Leaderless, 1)

		b := c.Work("b", open)
		c.Leader(2, 2*silence)
		c.Pass(time.Second)
		s = o.Stats()
		require.Equal(c, began.Vacancies.Count+3, s.Vacancies.Count)
		require.InDelta(c, 3*110, s.Vacancies.Sum-began.Vacancies.Sum, 4)

		d := c.Work("d", open)
		c.Pass(25 * time.Second) // the roles are shared out by now
		before, led := o.Stats(), d.Stats().Led
		require.Positive(c, led)
		c.Crash(d)
		c.Pass(2 * silence)
		s = o.Stats()
		require.Equal(c, 3, b.Stats().Led)
		require.Equal(c, before.Vacancies.Count+uint64(led), s.Vacancies.Count)
		require.InDelta(c, (silence-beat/2).Seconds()*float64(led), s.Vacancies.Sum-before.Vacancies.Sum, (beat/2+200*time.Millisecond).Seconds()*float64(led), "since it was last heard")
		require.InDelta(c, s.Vacancies.Sum-before.Vacancies.Sum, s.Leaderless-before.Leaderless, 1e-6)
	})
}

// A vacancy also ends when its former holder returns before anybody has claimed the role.
func TestVacancyEndsWhenItsHolderReturns(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		o := c.Join("o", observer)
		c.Work("a", open)
		c.Leader(0, 2*silence)
		c.Pass(time.Second)
		before := o.Stats()
		c.Broker.CutOff("o", nelitest.LinkReads)
		c.Pass(silence + 2*time.Second) // too short for its reader to be replaced
		s := o.Stats()
		require.Equal(c, []int{0, 1}, []int{s.Held, s.Vacant}, "as far as it has read")
		require.InDelta(c, (silence + 2*time.Second).Seconds(), s.RecordAge.Seconds(), 1.5)
		c.Broker.Restore("o", nelitest.LinkReads)
		c.Pass(2 * time.Second)
		s = o.Stats()
		require.Equal(c, []int{1, 0}, []int{s.Held, s.Vacant})
		require.Equal(c, before.Vacancies.Count+1, s.Vacancies.Count)
		require.InDelta(c, 2, s.Vacancies.Sum-before.Vacancies.Sum, 1.5)
		require.LessOrEqual(c, s.RecordAge, beat+10*time.Millisecond)
	})
}

// The application's part of a hand-over is measured, whether it finishes in time or not.
func TestDrainsAreTimed(t *testing.T) {
	simulateWith(t, nelitest.Options{}, roles(5), func(c *cluster) {
		a := c.Work("a", open)
		c.Leader(4, 2*silence)
		a.Hold(3 * time.Second)
		require.NoError(c, a.StepDown(c.Context()))
		s := a.Stats()
		require.Equal(c, uint64(1), s.Drains.Count, "one for all that go together")
		require.InDelta(c, 3, s.Drains.Sum, 0.1)
		c.Leader(4, time.Minute)
		a.Hold(12 * time.Second)
		go func() { _ = a.StepDown(c.Context()) }()
		c.Pass(15 * time.Second)
		s = a.Stats()
		require.Equal(c, uint64(2), s.Drains.Count)
		require.InDelta(c, 13, s.Drains.Sum, 0.2, "DrainTimeout at most")
		require.Equal(c, uint64(5), s.TermsEnded[neli.ReasonOverdue])
		c.Pass(time.Minute)
	})
}

// Stats count records that never reach the log, records that reach it late, and a log that went back.
func TestStatsOfABadLog(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a := c.Work("a", open)
		c.Leader(0, 2*silence)
		c.Pass(10 * time.Second)
		s := a.Stats()
		require.Zero(c, s.AppendFailed)
		require.Less(c, s.RoundTrips.Sum/float64(s.RoundTrips.Count), 0.05)
		c.Broker.Delay("a", 700*time.Millisecond)
		c.Pass(10 * time.Second)
		slow := a.Stats().RoundTrips
		require.Equal(c, s.RoundTrips.Count, upTo(s.RoundTrips, 500*time.Millisecond))
		require.Greater(c, upTo(slow, time.Second), upTo(slow, 500*time.Millisecond))
		c.Broker.Delay("a", 0)
		c.Broker.CutOff("a", nelitest.LinkAppends)
		c.Pass(2 * silence)
		require.Positive(c, a.Stats().AppendFailed)
		c.Broker.Restore("a", nelitest.LinkAppends)
		c.Leader(0, 2*silence)
		require.Zero(c, a.Stats().LogResets)
		c.Pass(2 * beat)
		readAhead(c)
		c.Pass(5 * time.Second)
		s = a.Stats()
		require.Equal(c, uint64(1), s.LogResets)
		require.Equal(c, uint64(1), s.TermsEnded[neli.ReasonLogReset])
		require.Equal(c, 1, s.Roles-s.Held-s.Vacant, "unknown")
	})
}

// Non-exclusive mode counts only what it can know.
func TestStatsOfNonExclusiveMode(t *testing.T) {
	simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
		a := c.Work("a", func(cfg *neli.Config) { cfg.Mode, cfg.Partitions, cfg.Roles = neli.NonExclusive, 2, 5 })
		c.Leader(0, time.Minute)
		c.Pass(10 * time.Second)
		s := a.Stats()
		require.Equal(c, 5, s.Led)
		require.Equal(c, uint64(2), s.TermsStarted, "one for each partition")
		require.Positive(c, s.Appended)
		require.Positive(c, s.EvidenceAge)
		require.Less(c, s.EvidenceAge, time.Second)
		require.Less(c, s.RecordAge, time.Second)
		c.Broker.CutOff("a", nelitest.LinkAll)
		c.Pass(30 * time.Second)
		s = a.Stats()
		require.Zero(c, s.Led)
		require.Equal(c, uint64(2), ended(s))
		require.Positive(c, s.AppendFailed)
		require.Zero(c, s.EvidenceAge)
		require.Greater(c, s.RecordAge, 29*time.Second)
		require.Zero(c, s.Held+s.Vacant)
	})
}

// In JSON durations are in seconds and reasons are words.
func TestStatsAsJSON(t *testing.T) {
	s := neli.Stats{Records: 7, Leaderless: 2.5, Preparation: neli.Preparation{Running: 3, Longest: 1500 * time.Millisecond}, TermsEnded: map[neli.Reason]uint64{neli.ReasonNotPulsed: 3},
		RoundTrips: neli.Timing{Count: 2, Sum: 0.25, Buckets: []neli.TimingBucket{{UpTo: 5 * time.Millisecond, Count: 1}}}}
	want := map[string]any{"records": 7.0, "leaderless": 2.5, "terms_ended": map[string]any{"not_pulsed": 3.0},
		"round_trips": map[string]any{"count": 2.0, "sum": 0.25, "buckets": []any{map[string]any{"up_to": 0.005, "count": 1.0}}}}
	fields := reflect.ValueOf(&s).Elem()
	for i := range fields.NumField() {
		if d, ok := fields.Field(i).Addr().Interface().(*time.Duration); ok {
			*d = time.Duration(i)*time.Second + 500*time.Millisecond
			want[fields.Type().Field(i).Tag.Get("json")] = float64(i) + 0.5
		}
	}
	b, err := json.Marshal(s)
	require.NoError(t, err)
	var of map[string]any
	require.NoError(t, json.Unmarshal(b, &of))
	require.Len(t, of, fields.NumField(), "each has a name of its own")
	require.Len(t, want, 12)
	require.Equal(t, []any{3.0, 1.5}, []any{of["preparation"].(map[string]any)["running"], of["preparation"].(map[string]any)["longest"]})
	for name, v := range want {
		require.Equal(t, v, of[name], name)
	}
}

// upTo returns how many durations were not longer than a bound.
func upTo(t neli.Timing, bound time.Duration) uint64 {
	i := slices.IndexFunc(t.Buckets, func(b neli.TimingBucket) bool { return b.UpTo == bound })
	return t.Buckets[i].Count
}
