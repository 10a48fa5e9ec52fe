package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goneli/neli/cmd/neli/internal/guard"
	"github.com/goneli/neli/cmd/neli/internal/needs"
)

// firstProcess makes neli process 1 of a PID namespace of its own, as in a container.
func firstProcess(t *testing.T) func(*exec.Cmd) {
	t.Helper()
	unshare, err := exec.LookPath("unshare")
	if os.Getuid() != 0 || err != nil {
		needs.Missing(t, "root, and the command unshare")
	}
	return func(cmd *exec.Cmd) {
		cmd.Args = append([]string{"unshare", "--pid", "--fork", "--mount-proc", "--", cmd.Path}, cmd.Args[1:]...)
		cmd.Path = unshare
	}
}

// As process 1 of a container, neli passes signals on, waits for all orphans, and exits with its command's exit code.
func TestAsProcessOne(t *testing.T) {
	as := firstProcess(t)
	p := neliBy(t, as, environment(broker(t)), "run", "--timeout", medium.String(), "--", "sh", "-c", `
		for i in 1 2 3; do (setsid sh -c 'echo orphan $$' &); done
		sleep 0.2
		while grep -qs '^State:.Z' /proc/[0-9]*/status; do sleep 0.01; done
		trap 'exit 7' TERM
		echo first $(tr '\0' ' ' </proc/1/cmdline)
		while :; do sleep 0.01; done`)
	require.True(t, strings.HasPrefix(p.says("first", 1), program+" run"), "neli is process 1")
	for n := 1; n <= 3; n++ {
		p.says("orphan", n)
	}
	children, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "task", strconv.Itoa(p.cmd.Process.Pid), "children"))
	require.NoError(t, err)
	one, err := strconv.Atoi(strings.TrimSpace(string(children)))
	require.NoError(t, err)
	require.NoError(t, unix.Kill(one, unix.SIGTERM))
	require.Equal(t, 7, p.code())
}

// As process 1 of a container, neli also survives the death of its guard. No busy machine ends a term of
// T = medium before the command has killed the guard.
func TestProcessOneSurvivesItsGuard(t *testing.T) {
	as := firstProcess(t)
	p := neliBy(t, as, environment(broker(t)), "run", "--once", "--timeout", medium.String(), "--", "sh", "-c", `kill -KILL $PPID; exec sleep 1000`)
	require.Equal(t, 122, p.code())
	require.Contains(t, p.errors.String(), "the guard process was killed")
}

// A user to whom a cgroup was delegated needs no other right, and processes cannot escape.
func TestUserNeedsOnlyADelegatedCgroup(t *testing.T) {
	cgroups(t)
	const user = 65534
	for name, both := range map[string]bool{"elector killed": false, "elector and guard killed": true} {
		t.Run(name, func(t *testing.T) {
			own := delegated(t, user)
			dir, err := os.Open(own)
			require.NoError(t, err)
			defer dir.Close()
			require.NoError(t, os.Chmod(filepath.Dir(program), 0o755)) // so that other users can execute it
			p := neliBy(t, func(cmd *exec.Cmd) {
				cmd.Dir = "/"
				cmd.SysProcAttr.Credential = &syscall.Credential{Uid: user, Gid: user}
				cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
			}, environment(broker(t)), "run", "--timeout", medium.String(), "--", "sh", "-c", `
				setsid sh -c 'echo grandchild $$; exec sleep 1000' &
				echo cgroup $(grep ^0:: /proc/self/cgroup); echo child $$; exec sleep 1000`)
			require.Contains(t, p.says("cgroup", 1), "/"+filepath.Base(own)+"/neli-run-", "the command has a cgroup of its own")
			child, grandchild := p.pid("child", 1), p.pid("grandchild", 1)
			keeper := parent(t, child)
			pids := []int{p.cmd.Process.Pid}
			if both { // stopped first, so that neither can act between the two kills
				pids = append(pids, keeper)
			}
			for _, s := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} {
				for _, pid := range pids {
					require.NoError(t, unix.Kill(pid, s))
				}
			}
			t.Cleanup(func() {
				_ = unix.Kill(child, unix.SIGKILL)
				_ = unix.Kill(grandchild, unix.SIGKILL)
			})
			dead(t, 3*medium, child, grandchild)
			require.Eventually(t, func() bool {
				left, err := filepath.Glob(filepath.Join(own, "neli-run-*"))
				return err == nil && len(left) == 0
			}, soon, 5*time.Millisecond, "no cgroup is left behind")
		})
	}
}

// delegated makes a cgroup that belongs to a user, and returns its directory.
func delegated(t *testing.T, user int) string {
	t.Helper()
	c, err := guard.NewCgroup() // below this process's own, where neli looks for leftovers
	require.NoError(t, err)
	require.NoError(t, c.Close())
	own, err := os.MkdirTemp(filepath.Dir(c.Path), "neli-test-")
	require.NoError(t, err)
	t.Cleanup(func() {
		require.Eventually(t, func() bool { return unix.Rmdir(own) == nil }, soon, 5*time.Millisecond)
	})
	for _, f := range []string{"", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"} {
		require.NoError(t, os.Chown(filepath.Join(own, f), user, user))
	}
	return own
}
