package kafkatest

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheKernelLetsNoProcessOutliveAKilledParent(t *testing.T) {
	cmd, child, watchdog, _ := parent(t, "process")
	require.NoError(t, syscall.Kill(watchdog, syscall.SIGKILL))
	eventuallyDead(t, watchdog)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	eventuallyDead(t, child)
}
