package nursery

import (
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestTheKernelLetsNoProcessOutliveAKilledParent(t *testing.T) {
	cmd, child, watchdog, _ := parent(t, "1")
	require.NoError(t, syscall.Kill(watchdog, syscall.SIGKILL))
	eventuallyDead(t, watchdog)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	eventuallyDead(t, child)
}

// StartBy calls the caller's function on the thread whose end kills the children.
func TestStartBy(t *testing.T) {
	n, err := New("")
	require.NoError(t, err)
	defer n.Close()
	threads := map[int]bool{}
	for range 5 {
		p, err := n.StartBy(exec.Command("true"), func(cmd *exec.Cmd) error {
			threads[unix.Gettid()] = true
			return cmd.Start()
		})
		require.NoError(t, err)
		<-p.Done()
	}
	assert.Len(t, threads, 1)
	_, err = n.StartBy(exec.Command("true"), func(*exec.Cmd) error { return syscall.EPERM })
	assert.ErrorIs(t, err, syscall.EPERM)
}
