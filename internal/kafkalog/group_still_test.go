package kafkalog

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/kafka"
)

// A client of a group is replaced when it has reached no broker four times in a row while another client has.
func TestReachability(t *testing.T) {
	r := newReachability(time.Second)
	alone := func(n int) (out []bool) {
		for range n {
			out = append(out, r.alone())
		}
		return out
	}
	require.NotContains(t, alone(3), true)
	r.reached()
	require.NotContains(t, alone(3), true, "it has reached a broker")
	r.nobody()
	require.NotContains(t, alone(3), true, "nobody has")
	require.True(t, r.alone())
	require.NotContains(t, alone(7), true, "a replacement in vain doubles the time")
	require.True(t, r.alone())
	r.reached()
	require.NotContains(t, alone(3), true)
	require.True(t, r.alone(), "and an answer undoes that")
	for range 20 {
		for !r.alone() {
		}
	}
	require.Equal(t, 5*time.Minute, time.Duration(r.most)*r.every(), "five minutes at most")
}

// unreached is a group's client that reaches no broker from a given instant on.
type unreached struct {
	kafka.GroupConsumer
	since time.Time
}

func (u *unreached) Reach(ctx context.Context, _ string) error {
	if !time.Now().Before(u.since) {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (u *unreached) Join(string, bool) error { return nil }

func (u *unreached) Poll(timeout time.Duration) (kafka.GroupEvent, error) {
	<-time.After(timeout)
	return kafka.GroupEvent{}, nil
}

// absentUntil answers like brokers that are down until a given instant.
type absentUntil struct {
	fakeAdmin
	up time.Time
}

func (a absentUntil) Log(context.Context, string, int) (kafka.LogInfo, error) {
	if time.Now().Before(a.up) {
		return kafka.LogInfo{}, errors.New("no broker")
	}
	return kafka.LogInfo{}, nil
}

// A group's client that stands still after an outage is replaced equally soon for any T.
func TestGroupClientIsReplacedSoonAfterAnOutage(t *testing.T) {
	for lease, within := range map[time.Duration]time.Duration{
		100 * time.Millisecond: 6500 * time.Millisecond,
		5 * time.Second:        6500 * time.Millisecond,
		10 * time.Second:       6500 * time.Millisecond,
		60 * time.Second:       12500 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			down := time.Now().Add(time.Hour)
			up := down.Add(30 * time.Second)
			client := &unreached{since: down}
			g := &GroupMember{consumer: client, admin: absentUntil{up: up}}
			g.Join(true)
			g.watch(t.Context(), newReachability(lease))
			require.Greater(t, time.Since(up), 3*time.Second, "T = %v: it has asked once or twice", lease)
			require.LessOrEqual(t, time.Since(up), within, "T = %v", lease)
		})
	}
}

// distant answers after two round trips.
type distant struct {
	fakeAdmin
	trip time.Duration
}

func (d distant) Log(ctx context.Context, _ string, _ int) (kafka.LogInfo, error) {
	select {
	case <-time.After(2 * d.trip):
		return kafka.LogInfo{}, nil
	case <-ctx.Done():
		return kafka.LogInfo{}, ctx.Err()
	}
}

// If brokers are so far away that a client only just reaches them in time, a client that does not
// reach them is still found to stand still.
func TestGroupClientIsReplacedFarFromItsBrokers(t *testing.T) {
	for _, lease := range []time.Duration{100 * time.Millisecond, 5 * time.Second, 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			reach := newReachability(lease)
			g := &GroupMember{consumer: &unreached{since: time.Now()}, admin: distant{trip: reach.bound() - time.Millisecond}}
			g.Join(true)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			g.watch(ctx, reach)
			require.NoError(t, ctx.Err(), "T = %v", lease)
		})
	}
}

// Replacements that do not help are at most five minutes apart, for any T: the questions to a client that
// stands still count in that time.
func TestGroupClientIsReplacedAgainWithinFiveMinutes(t *testing.T) {
	for _, lease := range []time.Duration{100 * time.Millisecond, 10 * time.Second, 20 * time.Second, 60 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			g := &GroupMember{consumer: &unreached{since: time.Now()}, admin: fakeAdmin{}}
			g.Join(true)
			reach := newReachability(lease)
			for range 10 {
				g.watch(t.Context(), reach)
			}
			began := time.Now()
			g.watch(t.Context(), reach)
			require.InDelta(t, 5*time.Minute, time.Since(began), float64(5*time.Second), "T = %v", lease)
		})
	}
}

// A client that works is asked only once in each long interval.
func TestWorkingGroupClientIsRarelyAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		client := &counted{}
		g := &GroupMember{consumer: client, admin: fakeAdmin{}}
		g.Join(true)
		g.watch(ctx, newReachability(60*time.Second))
		require.InDelta(t, 3600/5, client.asked, 1)
	})
}

// counted is a group's client that reaches brokers.
type counted struct {
	kafka.GroupConsumer
	asked int
}

func (c *counted) Reach(context.Context, string) error { c.asked++; return nil }

// leaderless answers like a cluster whose first partition has no leader within reach.
type leaderless struct{ fakeAdmin }

func (leaderless) Topic(context.Context, string) (kafka.TopicInfo, error) {
	<-time.After(300 * time.Millisecond)
	return kafka.TopicInfo{}, nil
}

func (leaderless) Log(ctx context.Context, _ string, _ int) (kafka.LogInfo, error) {
	<-ctx.Done()
	return kafka.LogInfo{}, ctx.Err()
}

// A question about the group's client has a short time limit. If it gets no answer, the producer is not
// replaced, since everything else was acknowledged and answered.
func TestQuestionAboutAGroupClientDoesNotReplaceTheProducer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		provider := &fakeProvider{admin: leaderless{}}
		producer, err := newLastingProducer(provider, noProperties, nil, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		admin := lastingAdmin{producer}
		go func() {
			for pause(ctx, identityEvery) {
				_, _ = admin.Topic(ctx, "t")
			}
		}()
		g := &GroupMember{consumer: &unreached{since: time.Now()}, admin: admin}
		g.Join(true)
		g.watch(ctx, newReachability(5*time.Second))
		synctest.Wait()
		require.Equal(t, 1, len(provider.producers), "producers")
		admin.Close()
		require.NoError(t, producer.Close())
	})
}

// If a client stands still, other members have its roles by then. This process is no longer
// nominated for them, even if no other client can be made.
func TestGroupClientThatStandsStillLosesItsNomination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		g := &GroupMember{consumer: &unreached{since: time.Now()}, admin: fakeAdmin{}, T: 5 * time.Second, log: slog.New(slog.DiscardHandler),
			newConsumer: func() (kafka.GroupConsumer, error) { return nil, errReported }}
		g.Join(true)
		lost := false
		require.NoError(t, g.Run(ctx, func(_ []int, over bool) {
			require.NoError(t, ctx.Err(), "too late")
			lost = lost || over
		}))
		require.True(t, lost)
	})
}

// eventful is a group's client that reaches brokers, and returns an event at once and then none.
type eventful struct {
	unreached
	events []kafka.GroupEvent
}

func (e *eventful) Reach(context.Context, string) error { return nil }

func (e *eventful) Poll(timeout time.Duration) (kafka.GroupEvent, error) {
	if len(e.events) > 0 {
		ev := e.events[0]
		e.events = e.events[1:]
		return ev, nil
	}
	return e.unreached.Poll(timeout)
}

// The clients report no error while a group has no coordinator. Without a log line such a member
// would lead nothing, without any explanation.
func TestGroupThatAssignsNothingIsLogged(t *testing.T) {
	assigned, lost := kafka.GroupEvent{Kind: kafka.GroupAssigned}, kafka.GroupEvent{Kind: kafka.GroupLost}
	for name, c := range map[string]struct {
		events []kafka.GroupEvent
		lasts  time.Duration
		quiet  bool
		logged bool
	}{
		"it has just joined":            {nil, 59 * time.Second, false, false},
		"it has joined":                 {nil, 61 * time.Second, false, true},
		"it has no partition":           {[]kafka.GroupEvent{assigned}, time.Hour, false, false},
		"it was thrown out":             {[]kafka.GroupEvent{assigned, lost, lost}, 61 * time.Second, false, true},
		"it is back":                    {[]kafka.GroupEvent{assigned, lost, assigned}, time.Hour, false, false},
		"it may not be told of nothing": {nil, time.Hour, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.lasts)
				defer cancel()
				var out bytes.Buffer
				g := &GroupMember{group: "g", consumer: &eventful{events: c.events}, admin: fakeAdmin{}, T: 5 * time.Second, quiet: c.quiet,
					log: slog.New(slog.NewTextHandler(&out, nil))}
				g.Join(true)
				require.NoError(t, g.Run(ctx, func([]int, bool) {}))
				require.Equal(t, c.logged, strings.Contains(out.String(), "the group has assigned nothing for a minute"), out.String())
			})
		})
	}
}

// unreading is a group's client that cannot read a record, and reads on behind it by itself.
type unreading struct {
	unreached
	polls int
}

func (u *unreading) Poll(timeout time.Duration) (kafka.GroupEvent, error) {
	if u.polls++; u.polls <= 3 {
		return kafka.GroupEvent{}, &kafka.UnreadableError{Err: errors.New("damaged")}
	}
	<-time.After(timeout)
	return kafka.GroupEvent{Kind: kafka.GroupRecord}, nil
}

// Records that the client cannot read do not disturb a member: they are logged once, and reading goes on.
func TestGroupMemberReadsOnBehindAnUnreadableRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		read := 0
		g := &GroupMember{consumer: &unreading{}, log: slog.New(slog.NewTextHandler(&out, nil)), OnRecord: func(kafka.Record) { read++ }}
		g.Join(true)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		require.NoError(t, g.take(ctx, func([]int, bool) {}))
		require.Greater(t, read, 40)
		require.Equal(t, 1, strings.Count(out.String(), "skipping what cannot be read"), out.String())
		require.NotContains(t, out.String(), "disturbed")
	})
}
