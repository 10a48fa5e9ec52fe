package offsets_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/offsets"
	"github.com/goneli/neli/kafka"
)

// at answers with the given ends, in the order of the partitions asked for.
func at(ends map[int32]kafka.LogInfo) offsets.Ends {
	return func(_ context.Context, _ string, partitions []int32) ([]kafka.LogInfo, error) {
		var out []kafka.LogInfo
		for _, p := range partitions {
			out = append(out, ends[p])
		}
		return out, nil
	}
}

func end(offset int64, epoch int) kafka.LogInfo {
	return kafka.LogInfo{OffsetRange: kafka.OffsetRange{End: offset}, Epoch: epoch}
}

func TestExtents(t *testing.T) {
	starts := at(map[int32]kafka.LogInfo{0: end(3, 1), 1: end(9, 1)})
	ends := at(map[int32]kafka.LogInfo{0: end(7, 4), 1: end(2, 5)})
	got, err := offsets.Of(t.Context(), "t", 2, starts, ends)
	require.NoError(t, err)
	require.Equal(t, []kafka.OffsetRange{{Start: 3, End: 7}, {Start: 2, End: 2}}, got, "a log that was recreated in between is empty")

	log, err := offsets.Log(t.Context(), "t", 0, starts, ends)
	require.NoError(t, err)
	require.Equal(t, kafka.LogInfo{OffsetRange: kafka.OffsetRange{Start: 3, End: 7}, Epoch: 4}, log, "the epoch is that of the end")
}

func TestNoAnswer(t *testing.T) {
	down := errors.New("down")
	none := func(context.Context, string, []int32) ([]kafka.LogInfo, error) { return nil, down }
	some := at(nil)
	for _, c := range [][2]offsets.Ends{{none, some}, {some, none}} {
		_, err := offsets.Of(t.Context(), "t", 1, c[0], c[1])
		require.ErrorIs(t, err, down)
		_, err = offsets.Log(t.Context(), "t", 0, c[0], c[1])
		require.ErrorIs(t, err, down)
	}
}
