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

// toldAdmin is an admin that describes the topic in the way that the test sets.
type toldAdmin struct {
	fakeAdmin
	topic   func() (kafka.TopicInfo, error)
	brokers int
	refuse  func(kafka.TopicSpec) error // the error of a creation
	specs   []kafka.TopicSpec           // all creations that were tried
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

// someOf returns brokers 1 to n.
func someOf(n int) []kafka.BrokerInfo {
	all := make([]kafka.BrokerInfo, n)
	for i := range all {
		all[i].ID = i + 1
	}
	return all
}

// told returns a topic, its admin client, and its log.
func told(describe func() (kafka.TopicInfo, error)) (*Topic, *toldAdmin, *said.Text) {
	var out said.Text
	a := &toldAdmin{topic: describe, brokers: 3}
	return &Topic{name: "t", Admin: a, log: slog.New(slog.NewTextHandler(&out, nil)), suspect: make(chan struct{}, 1), T: 5 * time.Second, health: new(Health)}, a, &out
}

// After a cold start of all brokers their metadata can lack a topic for a while. That alone ends no
// process within a minute. Another id ends it at once.
func TestTopicUnknownForAWhile(t *testing.T) {
	for _, c := range []struct {
		name    string
		missing time.Duration
		then    string // the id afterwards; empty if the topic stays away
		want    error
		took    time.Duration // the least time, which may be exceeded by 3 s
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

// The time for which this process is suspended proves nothing about the topic, since it has not asked meanwhile.
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

// Without an id a recreated topic looks like the former one. So brokers that give no ids are an
// error of their own, and a process waits for a broker that is late with the id.
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
		// If a broker leaves the id out for a moment, this does not count as another topic.
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

// A topic is created with settings that shut out no process whose clock is ahead, and that keep
// records over a downtime of days.
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

// The first question has three seconds. Brokers may be too far away for that. So each question that
// has taken too long gives the next one twice the time, up to the limit of later questions.
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
