package kafkalog

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli/internal/said"
	"github.com/goneli/neli/kafka"
	"github.com/stretchr/testify/require"
)

// toldAdmin is an admin that describes the topic as it is told to.
type toldAdmin struct {
	fakeAdmin
	topic   func() (kafka.TopicInfo, error)
	brokers int
	refuse  func(kafka.TopicSpec) error // what a creation is refused with
	specs   []kafka.TopicSpec           // of all creations that were tried
	old     kafka.TopicInfo             // Kafka's own topic; without partitions: unknown
}

func (a *toldAdmin) Topic(_ context.Context, name string) (kafka.TopicInfo, error) {
	switch {
	case name == anyOldTopic && a.old.Partitions > 0:
		return a.old, nil
	case name == anyOldTopic:
		return kafka.TopicInfo{}, kafka.ErrUnknownTopic
	case a.topic == nil:
		return kafka.TopicInfo{}, kafka.ErrUnknownTopic
	}
	return a.topic()
}

func (a *toldAdmin) Brokers(context.Context, bool) ([]kafka.BrokerInfo, error) {
	return someOf(a.brokers), nil
}

func (a *toldAdmin) CreateTopic(_ context.Context, s kafka.TopicSpec) error {
	a.specs = append(a.specs, s)
	if a.refuse == nil {
		return nil
	}
	return a.refuse(s)
}

// someOf are brokers 1 to n.
func someOf(n int) []kafka.BrokerInfo {
	all := make([]kafka.BrokerInfo, n)
	for i := range all {
		all[i].ID = i + 1
	}
	return all
}

// told returns a topic, whose admin it is, and what it logs.
func told(describe func() (kafka.TopicInfo, error)) (*Topic, *toldAdmin, *said.Text) {
	var out said.Text
	a := &toldAdmin{topic: describe, brokers: 3}
	return &Topic{name: "t", Admin: a, log: slog.New(slog.NewTextHandler(&out, nil)), suspect: make(chan struct{}, 1), lease: 5 * time.Second, pace: new(Pace)}, a, &out
}

// After a cold start of all brokers their metadata can lack a topic for a while:
// that alone ends nobody within a minute, another id does at once.
func TestTopicUnknownForAWhile(t *testing.T) {
	for _, c := range []struct {
		name    string
		missing time.Duration
		then    string // id; empty: it stays away
		want    error
		took    time.Duration // at least, and at most 3 s more
	}{
		{"back after 50 s", 50 * time.Second, "id", nil, 50 * time.Second},
		{"another after 7 s", 7 * time.Second, "other", ErrTopicReplaced, 7 * time.Second},
		{"gone", time.Hour, "", ErrTopicReplaced, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				leader, _, _ := told(func() (kafka.TopicInfo, error) {
					if time.Since(began) < c.missing {
						return kafka.TopicInfo{}, kafka.ErrUnknownTopic
					}
					return kafka.TopicInfo{ID: c.then, Partitions: 1}, nil
				})
				leader.id, leader.Size = "id", 1
				require.ErrorIs(t, leader.verify(t.Context()), c.want)
				require.GreaterOrEqual(t, time.Since(began), c.took)
				require.Less(t, time.Since(began), c.took+3*time.Second)
			})
		})
	}
}

// The time in which this process is suspended shows nothing of the topic: nobody has asked meanwhile.
func TestTopicUnknownAroundASuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		leader, _, _ := told(func() (kafka.TopicInfo, error) {
			switch asked++; asked {
			case 2:
				time.Sleep(2 * unknownFor)
				fallthrough
			case 1:
				return kafka.TopicInfo{}, kafka.ErrUnknownTopic
			}
			return kafka.TopicInfo{ID: "id", Partitions: 1}, nil
		})
		leader.id, leader.Size = "id", 1
		require.NoError(t, leader.verify(t.Context()))
		require.Equal(t, 3, asked)
	})
}

// Without an id a recreated topic looks like the former one, so brokers that give
// none are refused, by name; one that is late with it is waited for.
func TestTopicWithoutID(t *testing.T) {
	for _, id := range []string{"AAAAAAAAAAAAAAAAAAAAAA", ""} {
		synctest.Test(t, func(t *testing.T) {
			leader, _, _ := told(func() (kafka.TopicInfo, error) { return kafka.TopicInfo{ID: id, Partitions: 1, Replicas: 1}, nil })
			began := time.Now()
			err := leader.Open(t.Context())
			require.ErrorIs(t, err, ErrNoTopicID)
			require.ErrorContains(t, err, "topic t")
			require.Less(t, time.Since(began), 15*time.Second)
		})
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			leader, _, _ := told(func() (kafka.TopicInfo, error) {
				if time.Since(began) < 3*time.Second {
					return kafka.TopicInfo{ID: id, Partitions: 1, Replicas: 1}, nil
				}
				return kafka.TopicInfo{ID: "late", Partitions: 1, Replicas: 1}, nil
			})
			require.NoError(t, leader.Open(t.Context()))
			require.Equal(t, "late", leader.id)
		})
		// Nor is it another topic when a broker forgets to say for a moment.
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			leader, _, _ := told(func() (kafka.TopicInfo, error) {
				if time.Since(began) < 3*time.Second {
					return kafka.TopicInfo{ID: id, Partitions: 1, Replicas: 1}, nil
				}
				return kafka.TopicInfo{ID: "id", Partitions: 1, Replicas: 1}, nil
			})
			leader.id, leader.Size = "id", 1
			require.NoError(t, leader.verify(t.Context()))
		})
	}
}

// A topic is created so that no process whose clock is ahead is shut out, and so
// that what was written before a downtime of days is found again.
func TestCreatedTopic(t *testing.T) {
	leader, admin, out := told(nil)
	leader.create = &kafka.TopicSpec{Name: "t", Partitions: 2}
	require.NoError(t, leader.make(t.Context()))
	require.Len(t, admin.specs, 1)
	s := admin.specs[0].Settings
	require.Equal(t, "LogAppendTime", s["message.timestamp.type"])
	require.Equal(t, "604800000", s["retention.ms"])
	require.Equal(t, "2", s["min.insync.replicas"])
	require.Equal(t, "false", s["unclean.leader.election.enable"])
	require.NotContains(t, out.String(), "WARN")
}

// The first question has three seconds. Brokers may be further away than that takes: each
// question that has taken too long gives the next one twice the time, up to what all have
// later.
func TestFarBrokersAreGivenTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leader, _, _ := told(nil)
		var had []time.Duration
		slow := func(ctx context.Context) error {
			began := time.Now()
			<-ctx.Done()
			had = append(had, time.Since(began))
			return ctx.Err()
		}
		for range 4 {
			require.Error(t, leader.attempt(t.Context(), slow))
		}
		require.Equal(t, []time.Duration{3 * time.Second, 6 * time.Second, 10 * time.Second, 10 * time.Second}, had)
		require.ErrorIs(t, leader.attempt(t.Context(), func(context.Context) error { return errReported }), errReported)
	})
}
