package absent

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTopicThatStaysUnknownIsMissing(t *testing.T) {
	start := time.Now()
	at := func(d time.Duration) time.Time { return start.Add(d) }
	var topics Topics
	require.False(t, topics.Missing("a", at(0), at(time.Second)))
	require.False(t, topics.Missing("a", at(9*time.Second), at(9900*time.Millisecond)))
	require.True(t, topics.Missing("a", at(9900*time.Millisecond), at(Patience)))
	require.True(t, topics.Missing("a", at(20*time.Second), at(20*time.Second)), "it still is")
	require.False(t, topics.Missing("b", at(20*time.Second), at(21*time.Second)), "another topic")
	require.True(t, topics.Missing("c", at(0), at(Patience)), "the client has waited by itself")
}

func TestTopicThatWasWrittenToIsNotMissing(t *testing.T) {
	start := time.Now()
	var topics Topics
	topics.Known(slices.Values([]string{"a"}))
	topics.Missing("a", start, start)
	topics.Known(slices.Values([]string{"b"}))
	require.True(t, topics.Missing("a", start.Add(Patience), start.Add(Patience)))
	topics.Known(slices.Values([]string{"b", "a"}))
	require.False(t, topics.Missing("a", start.Add(Patience), start.Add(Patience)))
}

func TestOldAnswerDoesNotCount(t *testing.T) {
	start := time.Now()
	var topics Topics
	topics.Missing("a", start, start)
	later := start.Add(forgotten + time.Second)
	require.False(t, topics.Missing("a", later, later))
	require.True(t, topics.Missing("a", later.Add(Patience), later.Add(Patience)))
}
