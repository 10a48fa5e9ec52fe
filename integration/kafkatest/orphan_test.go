package kafkatest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// envChild makes this test binary play the parent that dies.
const envChild = "KAFKATEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(envChild) {
	case "broker":
		c, err := Start(context.Background(), Options{})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(c.Brokers()[0].Pid(), c.nursery.watchdog.Process.Pid, c.dir)
		select {}
	case "process":
		dir, err := os.MkdirTemp("", "neli-kafka-test-")
		if err != nil {
			panic(err)
		}
		n, err := newNursery(dir)
		if err != nil {
			panic(err)
		}
		n.deathsig = os.Getenv("KAFKATEST_DEATHSIG") != "0"
		p, err := n.start(exec.Command("sleep", "300"), nil)
		if err != nil {
			panic(err)
		}
		fmt.Println(p.cmd.Process.Pid, n.watchdog.Process.Pid, dir)
		select {}
	}
	os.Exit(m.Run())
}

// parent starts this test binary as a parent and returns what it started.
func parent(t *testing.T, role string, env ...string) (cmd *exec.Cmd, child, watchdog int, dir string) {
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), envChild+"="+role), env...)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	_, err = fmt.Sscan(line, &child, &watchdog, &dir)
	require.NoError(t, err, line)
	require.True(t, lives(child))
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return cmd, child, watchdog, dir
}

func TestNoBrokerOutlivesAKilledParent(t *testing.T) {
	requireOwn(t)
	cmd, jvm, watchdog, dir := parent(t, "broker")
	require.NoError(t, syscall.Kill(jvm, syscall.SIGSTOP), "a suspended broker must go, too")
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	eventuallyDead(t, jvm)
	eventuallyDead(t, watchdog)
	assert.NoDirExists(t, dir)
}

// Each of the two nets holds alone: the watchdog, and on Linux the kernel.
func TestTheWatchdogLetsNoProcessOutliveAKilledParent(t *testing.T) {
	cmd, child, watchdog, dir := parent(t, "process", "KAFKATEST_DEATHSIG=0")
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	eventuallyDead(t, child)
	eventuallyDead(t, watchdog)
	assert.NoDirExists(t, dir)
}

func TestNurseryClose(t *testing.T) {
	dir := t.TempDir()
	n, err := newNursery(dir)
	require.NoError(t, err)
	p, err := n.start(exec.Command("sleep", "300"), nil)
	require.NoError(t, err)
	ended, err := n.start(exec.Command("true"), nil)
	require.NoError(t, err)
	<-ended.done
	n.close()
	assert.False(t, p.running())
	assert.NoDirExists(t, dir)
	_, err = n.start(exec.Command("true"), nil)
	assert.ErrorIs(t, err, errStopped)
}

func eventuallyDead(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool { return !lives(pid) }, 10*time.Second, 20*time.Millisecond, "process %d", pid)
}

// lives tells whether a process runs. One that has ended and waits for an init
// that never reaps it, as in many containers, does not.
func lives(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}
