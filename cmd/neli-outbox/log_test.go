//go:build unix

package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// The reader of a relay's log ends before the relay, as in `neli-outbox relay 2>&1 | head -1`. The relay continues, and
// ends without an error when it is told to.
func TestRelayOutlivesTheReaderOfItsLog(t *testing.T) {
	database, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer database.Close()
	log, own, err := os.Pipe()
	require.NoError(t, err)
	defer log.Close()
	relay := exec.Command(os.Args[0], "relay", "--listen", "", "--database",
		fmt.Sprintf("host=127.0.0.1 port=%d sslmode=disable", database.Addr().(*net.TCPAddr).Port))
	relay.Env = append(os.Environ(), asProgram+"=1")
	relay.Stdout, relay.Stderr = own, own
	require.NoError(t, relay.Start())
	defer relay.Process.Kill()
	require.NoError(t, own.Close())
	ended := make(chan error, 1)
	go func() {
		ended <- relay.Wait()
		database.Close() // so that Accept does not wait for another attempt
	}()
	refuse := func() {
		t.Helper()
		for attempt := false; !attempt; { // the driver also connects to cancel an attempt that it gave up
			conn, err := database.Accept()
			require.NoError(t, err, "the relay has ended")
			begin := make([]byte, 8) // the length, then the version or the code of a cancellation
			_, err = io.ReadFull(conn, begin)
			require.NoError(t, conn.Close())
			attempt = err == nil && binary.BigEndian.Uint32(begin[4:]) == 3<<16
		}
	}

	refuse()
	line, err := bufio.NewReader(log).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "the database does not answer")
	require.NoError(t, log.Close())
	for range 3 { // it logs each failure before its next attempt
		refuse()
	}
	require.NoError(t, relay.Process.Signal(syscall.SIGTERM), "the relay has ended")
	require.NoError(t, <-ended, "the relay has ended by itself")
}
