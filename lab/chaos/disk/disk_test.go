package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goneli/neli/lab/nursery"
)

func TestMain(m *testing.M) {
	if os.Getenv(Env) != "" {
		fmt.Fprintln(os.Stderr, Main())
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// A write waits while the disk is stalled, and succeeds once the disk answers again. It fails if the disk's process ends.
func TestStalledDiskAnswersNothing(t *testing.T) {
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("this kernel has no FUSE: ", err)
	}
	n, err := nursery.New("")
	require.NoError(t, err)
	defer n.Close()
	from, at := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "at")
	disk, err := Start(t.Context(), n, from, at)
	require.NoError(t, err)
	defer func() { assert.NoError(t, unix.Unmount(at, unix.MNT_DETACH)) }()

	file, err := os.Create(filepath.Join(at, "file"))
	require.NoError(t, err)
	defer file.Close()
	write := func() <-chan error {
		written := make(chan error, 1)
		go func() { _, err := file.WriteString("x"); written <- err }()
		return written
	}
	require.NoError(t, <-write())
	dir, err := os.Open(at)
	require.NoError(t, err)
	require.NoError(t, dir.Sync(), "Kafka syncs directories")
	require.NoError(t, dir.Close())

	stall := func() <-chan error {
		require.NoError(t, disk.Suspend())
		written := write()
		select {
		case err := <-written:
			assert.Fail(t, "a stalled disk answered", "%v", err)
		case <-time.After(300 * time.Millisecond):
		}
		return written
	}
	written := stall()
	require.NoError(t, disk.Signal(syscall.SIGCONT))
	require.NoError(t, <-written)
	content, err := os.ReadFile(filepath.Join(from, "file"))
	require.NoError(t, err)
	assert.Equal(t, "xx", string(content))

	written = stall()
	disk.Kill()
	assert.Error(t, <-written)
}
