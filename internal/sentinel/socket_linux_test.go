package sentinel

import (
	"log/slog"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A sentinel never removes the socket of another program, which may be of another kind.
func TestAnotherProgramsSocketIsLeftAlone(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "other.sock")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	defer l.Close()
	_, err = Listen(socket, &Hub{}, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "is in use")
	c, err := net.Dial("unix", socket)
	require.NoError(t, err)
	require.NoError(t, c.Close())
}
