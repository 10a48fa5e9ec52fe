package kafkatest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/nursery"
)

// envChild makes this test binary act as the parent that dies.
const envChild = "KAFKATEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(envChild) == "" {
		os.Exit(m.Run())
	}
	c, err := Start(context.Background(), Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(c.Brokers()[0].Pid(), c.dir)
	select {}
}

func TestNoBrokerOutlivesAKilledParent(t *testing.T) {
	requireOwn(t, KafkaVersion)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"=1")
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill() }()
	var jvm int
	var dir string
	_, err = fmt.Fscan(out, &jvm, &dir)
	require.NoError(t, err)
	defer func() { _ = os.RemoveAll(dir) }()
	require.True(t, nursery.Alive(jvm))

	require.NoError(t, syscall.Kill(jvm, syscall.SIGSTOP), "a suspended broker must go, too")
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.Eventually(t, func() bool { return !nursery.Alive(jvm) }, patience, 20*time.Millisecond)
	assert.Eventually(t, func() bool { _, err := os.Stat(dir); return os.IsNotExist(err) }, patience, 20*time.Millisecond)
}
