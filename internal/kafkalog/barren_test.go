package kafkalog

import (
	"errors"
	"testing"
	"time"

	"github.com/goneli/neli/kafka"
	"github.com/stretchr/testify/require"
)

// A producer is barren if for ten seconds all reports were failures.
func TestBarren(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1000+int64(s), 0) }
	gone := errors.New("message timed out")
	b := barren{patience: barrenAfter}
	require.False(t, b.failed(gone, at(0)), "the first failure")
	require.False(t, b.failed(gone, at(9)), "for less than ten seconds")
	b.acknowledged()
	require.False(t, b.failed(gone, at(10)), "something was acknowledged")
	require.False(t, b.failed(errors.Join(errReported, kafka.ErrTopicAuthorization), at(20)), "a broker has answered")
	require.False(t, b.failed(gone, at(21)), "a broker had answered")
	require.True(t, b.failed(gone, at(31)), "for ten seconds")
	require.False(t, b.failed(gone, at(32)), "the new one has failed once")
	require.False(t, b.failed(gone, at(51)), "a replacement in vain doubles the time")
	require.True(t, b.failed(gone, at(52)))
	b = barren{patience: stillMost}
	for s := 0; s < 1000; s += 301 {
		require.False(t, b.failed(gone, at(s)), "the first failure of each")
		require.False(t, b.failed(gone, at(s+299)))
		require.True(t, b.failed(gone, at(s+300)), "five minutes at most")
	}
	b.acknowledged()
	b.failed(gone, at(30_000))
	require.True(t, b.failed(gone, at(30_010)), "an acknowledgement makes it patient anew")
}
