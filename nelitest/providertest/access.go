package providertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/drive"
	"github.com/goneli/neli/kafka"
)

var accessPoints = []point{
	{"a reader that may not read the topic gets an error, each time", Restrict, mayNotRead},
	{"a producer that may not write to the topic gets an error", Restrict, mayNotWrite},
	{"a member that may not join the group gets an error", Restrict, mayNotJoin},
	{"a member that may not read the topic gets an error, each time", Restrict, memberMayNotRead},
	{"a client that may not create a topic gets an error", Restrict, mayNotCreate},
	{"refused credentials are reported", Stranger, stranger},
}

func mayNotRead(t *testing.T, b Bed) {
	topic := b.topic(t, 1)
	r := b.Restrict(t, topic, newName(), Rights{WriteTopic: true}).reader(t)
	for range 2 {
		require.NoError(t, r.Assign(topic, []int64{0}))
		readError(t, r, kafka.ErrTopicAuthorization)
	}
}

func mayNotWrite(t *testing.T, b Bed) {
	topic := b.topic(t, 1)
	p := b.Restrict(t, topic, newName(), Rights{ReadTopic: true}).producer(t)
	for range 2 {
		done := make(chan error, 1)
		err := p.Append(topic, 0, nil, func(err error) { done <- err })
		if err == nil { // a client may know already
			err = drive.Reported(t, done)
		}
		require.ErrorIs(t, err, kafka.ErrAuthorization)
	}
}

func mayNotJoin(t *testing.T, b Bed) {
	topic, group := b.topic(t, 1), newName()
	refused(t, b.Restrict(t, topic, group, Rights{ReadTopic: true, WriteTopic: true}), topic, group,
		kafka.ErrGroupAuthorization, kafka.ErrTopicAuthorization, 1)
}

func memberMayNotRead(t *testing.T, b Bed) {
	topic, group := b.topic(t, 1), newName()
	refused(t, b.Restrict(t, topic, group, Rights{WriteTopic: true, ReadGroup: true}), topic, group,
		kafka.ErrTopicAuthorization, kafka.ErrGroupAuthorization, 2)
}

// refused joins as often as times says. Each time the member must get the error in why, and never the one in not.
func refused(t *testing.T, b Bed, topic, group string, why, not error, times int) {
	t.Helper()
	g := b.member(t, group)
	for range times {
		require.NoError(t, g.Join(topic, true))
		for end := time.Now().Add(patience); ; {
			_, err := g.Poll(100 * time.Millisecond)
			require.NotErrorIs(t, err, not)
			if errors.Is(err, why) {
				break
			}
			require.True(t, time.Now().Before(end), "no error %q, last %v", why, err)
		}
		require.NoError(t, g.Leave())
	}
}

func mayNotCreate(t *testing.T, b Bed) {
	topic := b.topic(t, 1)
	r := b.Restrict(t, topic, newName(), Rights{ReadTopic: true})
	err := r.admin(t, r.producer(t)).CreateTopic(t.Context(), kafka.TopicSpec{Name: newName(), Partitions: 1, Replicas: 1})
	require.ErrorIs(t, err, kafka.ErrAuthorization)
}

func stranger(t *testing.T, b Bed) {
	topic := b.topic(t, 1)
	s := b.Stranger(t)
	p, r, g := s.producer(t, "message.timeout.ms", "5000"), s.reader(t), s.member(t, newName())
	require.NoError(t, r.Assign(topic, []int64{0}))
	require.NoError(t, g.Join(topic, false))
	done := make(chan error, 1)
	require.NoError(t, p.Append(topic, 0, nil, func(err error) { done <- err }))
	require.ErrorIs(t, drive.Reported(t, done), kafka.ErrAuthentication)
	readError(t, r, kafka.ErrAuthentication)
	eventually(t, patience, "the member is told", func() bool {
		_, err := g.Poll(100 * time.Millisecond)
		return errors.Is(err, kafka.ErrAuthentication)
	})
	a := s.admin(t, p)
	eventually(t, patience, "the administrator is told", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := a.Brokers(ctx, false)
		return errors.Is(err, kafka.ErrAuthentication)
	})
}
