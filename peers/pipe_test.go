package peers

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/peers/internal/wire"
)

// The receiver of a record owns its value (kafka.LogEntry), so a change of it must not reach the
// log, from which others read.
func TestARecordIsNotSharedWithTheMemberInTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost()
		id := h.store.ID()
		open := func() *pipe {
			p := openPipe(t.Context(), h)
			require.NoError(t, p.Send(hello(h)))
			m, err := p.Recv()
			require.NoError(t, err)
			require.NotNil(t, m.GetBegin())
			return p
		}
		read := func(p *pipe) []byte {
			m, err := p.Recv()
			require.NoError(t, err)
			return m.GetRecord().GetValue()
		}
		p := open()
		record := &wire.Append{Seq: 1, Incarnation: id[:], Value: []byte("as it was")}
		require.NoError(t, p.Send(&wire.ToHost{Kind: &wire.ToHost_Append{Append: record}}))
		copy(read(p), "not at all")
		require.Equal(t, "as it was", string(read(open())))
	})
}
