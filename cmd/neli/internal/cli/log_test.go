package cli

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// blocked is a standard error that accepts nothing until it is opened.
type blocked struct {
	opened chan struct{}
	text   strings.Builder
}

func (b *blocked) Write(p []byte) (int, error) {
	<-b.opened
	return b.text.Write(p)
}

// Logging does not block on a full pipe. Later a line says how many lines are missing.
func TestLogDoesNotWaitForItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &blocked{opened: make(chan struct{})}
		w := newLogWriter(out)
		for range mostLines + 11 { // the first one is being written
			n, err := w.Write([]byte("line\n"))
			require.NoError(t, err)
			require.Equal(t, 5, n)
			synctest.Wait()
		}
		close(out.opened)
		synctest.Wait()
		w.close()
		require.Equal(t, mostLines+1, strings.Count(out.text.String(), "line\n"))
		require.Contains(t, out.text.String(), "level=WARN msg=\"log lines were dropped: standard error did not take them in time\" dropped=10\n")
	})
}

// full is a disk that is full for the first lines written to it.
type full struct {
	left int
	text strings.Builder
}

func (f *full) Write(p []byte) (int, error) {
	if f.left > 0 {
		f.left--
		return 0, os.NewSyscallError("write", errors.New("no space left on device"))
	}
	return f.text.Write(p)
}

// Lines that cannot be written are counted, and so is a note about them that cannot be written.
func TestLogCountsUnwrittenLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &full{left: 4}
		w := newLogWriter(out)
		for range 3 { // two lines, each with a note that cannot be written, either; then there is room
			_, err := w.Write([]byte("line\n"))
			require.NoError(t, err)
			synctest.Wait()
		}
		w.close()
		require.True(t, strings.HasPrefix(out.text.String(), "line\n"), out.text.String())
		require.Contains(t, out.text.String(), " dropped=2\n")
	})
}

// The process ends even if nobody reads its last lines.
func TestEndDoesNotWaitForTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &blocked{opened: make(chan struct{})}
		w := newLogWriter(out)
		_, err := w.Write([]byte("line\n"))
		require.NoError(t, err)
		w.close() // would otherwise be a deadlock
		close(out.opened)
	})
}
