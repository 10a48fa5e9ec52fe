package main

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goneli/neli/cmd/neli/internal/guard"
	"github.com/goneli/neli/cmd/neli/internal/needs"
)

// escape is a script whose three processes escape both signals and the death of their parent: child
// changes its user, grandchild and daemon leave the group and the session.
const escape = `
other='setpriv --reuid 65534 --regid 65534 --clear-groups'
setsid $other sh -c 'echo grandchild $$; exec sleep 1000' &
setsid sh -c '(setsid '"$other"' sh -c "echo daemon \$\$; exec sleep 1000" &)'
exec $other sh -c 'echo child $$; exec sleep 1000'`

// cgroups skips a test where a command cannot have a cgroup of its own or cannot change its user. Root
// can do both if there is a writable cgroup2.
func cgroups(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		needs.Missing(t, "root")
	}
	if _, err := exec.LookPath("setpriv"); err != nil {
		needs.Missing(t, "the command setpriv")
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	c, err := guard.NewCgroup()
	if !strings.Contains(string(mounts), " - cgroup2 ") || errors.Is(err, unix.EROFS) {
		needs.Missing(t, "a cgroup2 that can be written to")
	}
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

// Whether the elector or the guard is killed or stopped, nothing of the command outlives the lease.
func TestNothingEscapesItsCgroup(t *testing.T) {
	cgroups(t)
	for name, end := range map[string]func(elector, guard int) []error{
		"elector killed": func(elector, _ int) []error { return []error{unix.Kill(elector, unix.SIGKILL)} },
		"guard killed":   func(_, guard int) []error { return []error{unix.Kill(guard, unix.SIGKILL)} },
		"both killed": func(elector, guard int) []error { // stopped first, so that neither can act between the two kills
			return []error{unix.Kill(elector, unix.SIGSTOP), unix.Kill(guard, unix.SIGSTOP),
				unix.Kill(guard, unix.SIGKILL), unix.Kill(elector, unix.SIGKILL)}
		},
		"both stopped": func(elector, guard int) []error {
			return []error{unix.Kill(elector, unix.SIGSTOP), unix.Kill(guard, unix.SIGSTOP)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := neli(t, broker(t), "run", "--timeout", medium.String(), "--", "sh", "-c", escape)
			pids := []int{p.pid("child", 1), p.pid("grandchild", 1), p.pid("daemon", 1)}
			began := time.Now()
			guard := parent(t, pids[0])
			for _, err := range end(p.cmd.Process.Pid, guard) {
				require.NoError(t, err)
			}
			t.Cleanup(func() {
				_ = unix.Kill(guard, unix.SIGKILL) // it may be stopped
				for _, pid := range pids {
					_ = unix.Kill(pid, unix.SIGKILL)
				}
			})
			dead(t, 3*medium, pids...)
			t.Log("all dead after", time.Since(began))
		})
	}
}

// If only the second guard is killed, the command continues, and one warning is logged.
func TestCommandOutlivesTheSecondGuard(t *testing.T) {
	cgroups(t)
	const lost = "the second guard has ended unexpectedly"
	p := neli(t, broker(t), "run", "--timeout", medium.String(), "--", "sh", "-c", `echo child $$; exec sleep 1000`)
	child := p.pid("child", 1)
	require.NoError(t, unix.Kill(secondGuard(t, p.cmd.Process.Pid), unix.SIGKILL))
	p.logs(lost)
	require.True(t, alive(child), "the command goes on")
	p.signal(unix.SIGTERM)
	require.Equal(t, 143, p.code())
	require.Equal(t, 1, strings.Count(p.errors.String(), lost))

	p = neli(t, broker(t), "run", "--", "true")
	require.Equal(t, 0, p.code())
	require.NotContains(t, p.errors.String(), lost, "it ends with the command")
}

// secondGuard returns the second guard of an elector.
func secondGuard(t *testing.T, elector int) int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		args, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if !strings.HasPrefix(string(args), "neli\x00"+guard.SecondVerb+"\x00") {
			continue
		}
		// The second guards of other tests may end at any moment.
		if stat, err := stats(pid); err == nil && stat[1] == strconv.Itoa(elector) {
			return pid
		}
	}
	require.FailNow(t, "there is no second guard")
	return 0
}
