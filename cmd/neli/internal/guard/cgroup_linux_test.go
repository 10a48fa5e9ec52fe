package guard

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goneli/neli/cmd/neli/internal/needs"
)

// headless makes a process end its main thread and go on.
const headless = "__headless"

// The environment variable becoming says how a process executes its command: on another thread than its
// main one, or never.
const (
	becoming  = "NELI_BECOMING"
	elsewhere = "elsewhere"
	never     = "never"
)

func init() {
	if len(os.Args) > 1 && (os.Args[1] == headless || os.Args[1] == verbExec && os.Getenv(becoming) == elsewhere) {
		runtime.LockOSThread() // an init function runs on the main thread
	}
}

// helper does one thing for a test, in a process of its own.
func helper() (code int, ok bool) {
	if len(os.Args) < 2 {
		return 0, false
	}
	switch os.Args[1] {
	case verbExec:
		switch os.Getenv(becoming) {
		case elsewhere:
			failed := make(chan int)
			go func() {
				code, _ := Main(os.Args[1:])
				failed <- code
			}()
			return <-failed, true
		case never:
			for {
				_ = unix.Pause()
			}
		}
		return 0, false
	case "__setuid": // becomes another user's, which its parent cannot kill
		if err := syscall.Setresuid(0, 0, 0); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1, true
		}
		for {
			_ = unix.Pause()
		}
	case headless:
		_, _ = os.Stdin.Read(make([]byte, 1)) // until it is in its cgroup
		go func() {
			for {
				_ = unix.Pause()
			}
		}()
		_, _, _ = syscall.Syscall(unix.SYS_EXIT, 0, 0, 0)
	case "__refuse": // becomes a guard some of whose system calls are refused
		runtime.LockOSThread() // a filter belongs to a thread, and stays with the program that the thread executes
		err := refuse(os.Args[2])
		if err == nil {
			err = unix.Exec(Self, append(os.Args[:1], os.Args[3:]...), os.Environ())
		}
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	case "__clock": // in a namespace whose CLOCK_BOOTTIME is ahead
		fmt.Println(int64(Now() / time.Second))
		a, err := newAlarm()
		if err != nil {
			return 1, true
		}
		a.set(Now() + 50*time.Millisecond)
		select {
		case <-a.fired:
			fmt.Println("fired")
		case <-time.After(soon):
		}
		return 0, true
	}
	return 0, false
}

func newCgroup(t *testing.T) *Cgroup {
	t.Helper()
	c, err := NewCgroup()
	if err != nil {
		require.False(t, os.Getuid() == 0 && hasCgroup2() && !errors.Is(err, unix.EROFS), "root can have a cgroup: %v", err)
		needs.Missing(t, fmt.Sprint("a cgroup of its own: ", err))
	}
	t.Cleanup(func() {
		_ = c.Empty()
		_ = c.Close()
	})
	return c
}

// The kernel writes some characters of paths as octal numbers in mountinfo, but unchanged in cgroup.
func TestCgroupPathMayHaveUnusualCharacters(t *testing.T) {
	for _, tc := range []struct{ mounts, of, want string }{
		{"30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/system.slice/a.service\n", "/sys/fs/cgroup/system.slice/a.service"},
		{`30 23 0:26 / /mnt/a\040b\011c\012d\134e rw - cgroup2 cgroup2 rw` + "\n", "0::/job\n", "/mnt/a b\tc\nd\\e/job"},
		{`30 23 0:26 /my\134x2dapp.service /sys/fs/cgroup rw - cgroup2 cgroup2 rw` + "\n", `0::/my\x2dapp.service/job` + "\n", "/sys/fs/cgroup/job"},
		{`30 23 0:26 / /a\134040b rw - cgroup2 cgroup2 rw` + "\n", "0::/\n", `/a\040b`},
	} {
		own, err := cgroupIn(tc.mounts, tc.of)
		require.NoError(t, err, tc.mounts)
		require.Equal(t, tc.want, own)
	}
}

// hasCgroup2 reports whether a mounted cgroup2 contains this process.
func hasCgroup2() bool {
	_, err := ownCgroup()
	return err == nil
}

// sleeper starts a process in a cgroup, in a session of its own.
func sleeper(t *testing.T, c *Cgroup) int {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	require.NoError(t, c.add(cmd.Process.Pid))
	return cmd.Process.Pid
}

// A new cgroup empties and removes cgroups whose neli was killed. It leaves those of a running neli alone.
func TestLeftoversAreRemoved(t *testing.T) {
	held := newCgroup(t)
	kept := sleeper(t, held)
	left := newCgroup(t)
	lost := sleeper(t, left)
	require.NoError(t, os.Mkdir(filepath.Join(left.Path, "below"), 0o755))
	require.NoError(t, left.Dir.Close()) // the last process that has the lock releases it
	next := newCgroup(t)
	require.Eventually(t, func() bool { return !alive(lost) }, soon, time.Millisecond, "what was left behind is killed")
	require.Eventually(t, func() bool {
		sweep(filepath.Dir(left.Path)) // as each new cgroup does
		_, err := os.Stat(left.Path)
		return errors.Is(err, os.ErrNotExist)
	}, soon, time.Millisecond, "what was left behind is removed")
	require.Never(t, func() bool { // what is killed may live on for a moment
		sweep(filepath.Dir(left.Path))
		return !alive(kept)
	}, 300*time.Millisecond, 10*time.Millisecond, "a cgroup that is in use is left alone")
	require.DirExists(t, held.Path)
	require.NoError(t, next.Close())
	require.NoDirExists(t, next.Path)
}

// Before Linux 5.14 there is no cgroup.kill. The error must be that the file does not exist.
func TestMissingCgroupFileIsReportedAsMissing(t *testing.T) {
	c := newCgroup(t)
	require.ErrorIs(t, write(filepath.Join(c.Path, "cgroup.nothing"), "1"), os.ErrNotExist)
	require.NoError(t, c.Close())
}

// The command is in its cgroup before it is released. Otherwise processes that it starts at once would
// escape. In this test the guard cannot release it, since the pipe for its report is full.
func TestCommandIsInItsCgroupBeforeItIsReleased(t *testing.T) {
	c := newCgroup(t)
	full, out, size := fullPipe(t)
	file := filepath.Join(t.TempDir(), "file")
	e := guardedBy(t, func(cmd *exec.Cmd) {
		cmd.ExtraFiles[1] = out
		cmd.ExtraFiles = append(cmd.ExtraFiles, c.Dir)
	}, "sh", "-c", "exec cat /proc/self/cgroup >"+file)
	require.NoError(t, out.Close())
	e.lease(time.Minute)
	require.Eventually(t, func() bool { return len(members(c.Path)) == 1 }, soon, time.Millisecond, "the command is in its cgroup before it is released")
	require.NoFileExists(t, file, "it is not released yet")
	_, err := full.Read(make([]byte, size))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(file)
		return strings.Contains(string(text), filepath.Base(c.Path))
	}, soon, time.Millisecond, "the command runs in its cgroup")
}

// The guard waits for a process that left the command's group and whose parent has ended.
func TestOrphansAreReaped(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	e := guarded(t, "sh", "-c", `(setsid sh -c 'echo $$ >`+file+`.new; mv `+file+`.new `+file+`' &); exec sleep 1000`)
	e.lease(time.Minute)
	e.started()
	orphan := pidIn(t, file)
	require.Eventually(t, func() bool { return errors.Is(unix.Kill(orphan, 0), unix.ESRCH) }, soon, time.Millisecond, "the orphan is reaped")
}

// Kernels before 5.14 have no cgroup.kill.
func TestProcessesAreKilledOneByOneWithoutCgroupKill(t *testing.T) {
	c := newCgroup(t)
	pid := sleeper(t, c)
	require.NoError(t, killEach(c.Path))
	require.Eventually(t, func() bool { return !alive(pid) }, soon, time.Millisecond, "it is killed")
}

// A process whose main thread has ended goes on while it has another thread. It is killed, and until
// then the command does not count as ended.
func TestProcessWithoutItsMainThreadCountsAsRunning(t *testing.T) {
	c := newCgroup(t)
	cmd := exec.Command(os.Args[0], headless)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	ready, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	pid := cmd.Process.Pid
	require.NoError(t, c.add(pid))
	require.NoError(t, ready.Close())
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err == nil && strings.Contains(string(text), ") Z ")
	}, soon, time.Millisecond, "its main thread ends")
	require.Equal(t, []int{pid}, members(c.Path), "it runs in its cgroup")
	require.Equal(t, []int{pid}, groupMembers(pid), "it runs in its group")
	require.NoError(t, killEach(c.Path))
	require.Eventually(t, func() bool { return len(members(c.Path)) == 0 }, soon, time.Millisecond, "it is killed")
	require.Empty(t, groupMembers(pid))
}

// startSecond starts a second guard of a cgroup.
func startSecond(t *testing.T, c *Cgroup) (orders *os.File, guard *exec.Cmd) {
	t.Helper()
	in, orders, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0], SecondVerb, "--", c.Path)
	cmd.ExtraFiles = []*os.File{in, c.Dir}
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	require.NoError(t, in.Close())
	t.Cleanup(func() {
		_ = orders.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return orders, cmd
}

// The second guard kills the cgroup when the lease is over or the elector has gone, without the first guard.
func TestSecondGuardKillsTheCgroup(t *testing.T) {
	for name, end := range map[string]func(orders *os.File) error{
		"lease over": func(orders *os.File) error {
			_, err := orders.Write(Until(Now() + 100*time.Millisecond))
			return err
		},
		"elector gone": func(orders *os.File) error { return orders.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCgroup(t)
			pid := sleeper(t, c)
			orders, _ := startSecond(t, c)
			_, err := orders.Write(Until(Now()))
			require.NoError(t, err)
			require.NoError(t, end(orders))
			require.Eventually(t, func() bool { return !alive(pid) }, soon, time.Millisecond, "the second guard kills")
			if name == "elector gone" {
				require.Eventually(t, func() bool {
					_, err := os.Stat(c.Path)
					return errors.Is(err, os.ErrNotExist)
				}, soon, time.Millisecond, "the second guard removes the cgroup")
			}
		})
	}
}

// Without a cgroup, the guard reports a command that it cannot kill because it has changed its user.
func TestUnkillableCommandIsReported(t *testing.T) {
	if os.Getuid() != 0 {
		needs.Missing(t, "root")
	}
	dir, err := os.MkdirTemp("/tmp", "neli") // where others may read
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	program := filepath.Join(dir, "program")
	text, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(program, text, 0o755))
	require.NoError(t, os.Chmod(program, 0o755|os.ModeSetuid))
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, text, 0o755))
	e := guardedBy(t, func(cmd *exec.Cmd) {
		cmd.Path, cmd.Dir = plain, "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}, program, "__setuid")
	e.lease(time.Minute)
	e.started()
	told := func() string {
		r, ok := e.report()
		require.True(t, ok && !r.Ended, "the guard tells of trouble")
		return r.Trouble
	}
	require.Eventually(t, func() bool { return realUser(e.group) == "0" }, soon, time.Millisecond, "it is another user's")
	_, err = e.orders.Write(Deliver(unix.SIGTERM))
	require.NoError(t, err)
	require.Contains(t, told(), "cannot be sent SIGTERM")
	_, err = e.orders.Write([]byte("rubbish!!!"))
	require.NoError(t, err)
	require.Contains(t, told(), fmt.Sprintf("processes [%d] cannot be killed", e.group))
	require.NoError(t, unix.Kill(e.group, unix.SIGKILL))
	require.Equal(t, 137, e.last().Code)
}

// realUser returns the real user of a process.
func realUser(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(text), "\nUid:\t")
	user, _, _ := strings.Cut(rest, "\t")
	return user
}

// CLOCK_BOOTTIME counts suspensions, CLOCK_MONOTONIC does not. The test runs in a time namespace where
// the former is far ahead, so that using the wrong one shows.
func TestClockCountsSuspensions(t *testing.T) {
	const ahead = 1_000_000
	args := []string{"--time", "--fork", "--boottime", strconv.Itoa(ahead), os.Args[0], "__clock"}
	if os.Getuid() != 0 {
		args = append([]string{"--user", "--map-root-user"}, args...)
	}
	if err := exec.Command("unshare", append(args[:len(args)-2:len(args)-2], "true")...).Run(); err != nil {
		needs.Missing(t, fmt.Sprint("a time namespace: ", err))
	}
	out, err := exec.Command("unshare", args...).Output()
	require.NoError(t, err)
	var now int64
	var fired string
	_, _ = fmt.Sscan(string(out), &now, &fired)
	require.GreaterOrEqual(t, now, int64(ahead), "time is told by CLOCK_BOOTTIME")
	require.Equal(t, "fired", fired, "the alarm goes by CLOCK_BOOTTIME")
}

// Other users can neither open the directory nor lock it: a lock would keep the next neli from removing what is left there.
func TestNoOtherUserMayLockACgroup(t *testing.T) {
	c := newCgroup(t)
	info, err := c.Dir.Stat()
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077)
}
