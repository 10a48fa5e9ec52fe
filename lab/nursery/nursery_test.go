//go:build unix

package nursery

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// envDeathsig makes this test binary act as the parent that dies; with 1 the kernel kills its children.
const envDeathsig = "NURSERY_DEATHSIG"

func TestMain(m *testing.M) {
	deathsig := os.Getenv(envDeathsig)
	if deathsig == "" {
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "neli-nursery-")
	if err != nil {
		panic(err)
	}
	n, err := New(dir)
	if err != nil {
		panic(err)
	}
	n.deathsig = deathsig == "1"
	p, err := n.Start(exec.Command("sleep", "300"))
	if err != nil {
		panic(err)
	}
	fmt.Println(p.Pid(), n.watchdog.Process.Pid, dir)
	select {}
}

// parent starts this test binary as a parent and returns what it started.
func parent(t *testing.T, deathsig string) (cmd *exec.Cmd, child, watchdog int, dir string) {
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envDeathsig+"="+deathsig)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	_, err = fmt.Fscan(out, &child, &watchdog, &dir)
	require.NoError(t, err)
	require.True(t, Alive(child))
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return cmd, child, watchdog, dir
}

func eventuallyDead(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool { return !Alive(pid) }, time.Minute, 20*time.Millisecond, "process %d", pid)
}

// Each of the two mechanisms is enough alone: the watchdog, and on Linux the kernel.
func TestTheWatchdogLetsNoProcessOutliveAKilledParent(t *testing.T) {
	cmd, child, watchdog, dir := parent(t, "0")
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	eventuallyDead(t, child)
	eventuallyDead(t, watchdog)
	assert.NoDirExists(t, dir)
}

func TestClose(t *testing.T) {
	dir := t.TempDir()
	n, err := New(dir)
	require.NoError(t, err)
	var living []*Process
	for range 2 {
		p, err := n.Start(exec.Command("sleep", "600"))
		require.NoError(t, err)
		session, err := unix.Getsid(p.Pid())
		require.NoError(t, err)
		assert.Equal(t, p.Pid(), session, "a session of its own")
		assert.True(t, p.Running())
		living = append(living, p)
	}
	require.NoError(t, living[0].Suspend(), "suspended processes end, too")
	ended, err := n.Start(exec.Command("true"))
	require.NoError(t, err)
	<-ended.Done()
	assert.Equal(t, "exit status 0", ended.State())
	assert.False(t, n.Closed())

	n.Close()
	n.Close()
	assert.True(t, n.Closed())
	for _, p := range living {
		assert.False(t, p.Running())
		assert.Equal(t, "signal: killed", p.State())
	}
	assert.NoDirExists(t, dir)
	_, err = n.Start(exec.Command("true"))
	assert.ErrorIs(t, err, ErrClosed)
}

// TMPDIR may be relative to the working directory, which is not the watchdog's.
func TestTheDirectoryToRemoveMayBeRelative(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("scratch", 0o755))
	absolute, err := filepath.Abs("scratch")
	require.NoError(t, err)
	n, err := New("scratch")
	require.NoError(t, err)
	n.Close()
	assert.NoDirExists(t, absolute)
}
