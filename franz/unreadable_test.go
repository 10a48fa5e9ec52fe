package franz

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli/kafka"
)

// After a broker has fenced a reader's leader epoch, franz-go asks for the end of that epoch. If a broker that shuts
// down closes the connection, the error names the partition. Nothing was read, so nothing may be skipped: a skipped
// record costs a minute without a leader.
func TestLostConnectionIsNoUnreadableBatch(t *testing.T) {
	for _, err := range []error{&kgo.ErrFirstReadEOF{}, errors.New("connection reset by peer")} {
		r := &reader{client: &client{}}
		r.failed(kgo.FetchPartition{Partition: 0, Err: err})
		require.Len(t, r.errs, 1)
		require.ErrorIs(t, r.errs[0], err)
		require.NotErrorIs(t, r.errs[0], kafka.ErrUnreadable)
	}
}
