package sentinel

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Tests of members in namespaces and cgroups: the pidfd proves their deaths as it does elsewhere.

// cgroupWith creates a cgroup that has the given file: every cgroup of version 2 has "cgroup.freeze",
// those with the memory controller have "memory.max", and version 1 has "memory.limit_in_bytes". It
// returns its directory, or "" if this machine has no such hierarchy.
func cgroupWith(t *testing.T, file string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("who is not root has no cgroups here")
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		if len(f) < 3 || !strings.HasPrefix(f[2], "cgroup") {
			continue
		}
		if f[2] == "cgroup2" {
			_ = os.WriteFile(filepath.Join(f[1], "cgroup.subtree_control"), []byte("+memory"), 0o600) // fails where there is no memory controller
		}
		dir := filepath.Join(f[1], fmt.Sprintf("neli-sentinel-test-%d-%d", os.Getpid(), time.Now().UnixNano()))
		if os.Mkdir(dir, 0o755) != nil {
			continue // read-only
		}
		t.Cleanup(func() {
			for end := time.Now().Add(10 * time.Second); os.Remove(dir) != nil && time.Now().Before(end); { // its processes must end first
				<-time.After(10 * time.Millisecond)
			}
		})
		if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
			return dir
		}
	}
	return ""
}

func put(t *testing.T, dir, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
}

// inPIDNamespace makes a command process 1 of its own PID namespace, as in a container.
func inPIDNamespace(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	}
}

// Each member has the process id 1 in its namespace. The proof of death does not use that id.
func TestMembersInPIDNamespacesDieIndependently(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	a, b := startChild(t, p.socket, "member", inPIDNamespace), startChild(t, p.socket, "member", inPIDNamespace)
	a.says("watching")
	b.says("watching")
	a.kill()
	p.dies(a.id)
	require.Never(t, func() bool { return p.isDead(b.id) }, 200*time.Millisecond, 10*time.Millisecond, "the other one lives")
	b.kill()
	p.dies(b.id)
}

// A process that executes another program has not died: it keeps its pid, and only its files are closed.
func TestAMemberThatExecsHasNotDied(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	m := startChild(t, p.socket, "member")
	m.says("watching")
	m.order("exec")
	require.Eventually(t, func() bool {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", m.cmd.Process.Pid))
		return string(name) == "sleep\n"
	}, 10*time.Second, time.Millisecond)
	require.Never(t, func() bool { return p.isDead(m.id) }, 300*time.Millisecond, 10*time.Millisecond, "it runs, as another program")
	m.kill()
	p.dies(m.id)
}

// A process in a frozen cgroup is suspended, not dead. It dies when it is killed there.
func TestAFrozenMemberIsNotDead(t *testing.T) {
	dir := cgroupWith(t, "cgroup.freeze")
	if dir == "" {
		t.Skip("no cgroup of version 2 can be made")
	}
	p := startPost(t, socketIn(directory(t)), nil)
	m := startChild(t, p.socket, "member")
	m.says("watching")
	put(t, dir, "cgroup.procs", fmt.Sprint(m.cmd.Process.Pid))
	put(t, dir, "cgroup.freeze", "1")
	require.Never(t, func() bool { return p.isDead(m.id) }, 300*time.Millisecond, 10*time.Millisecond, "a frozen process has not died")
	m.kill()
	p.dies(m.id)
}

// limited gives a cgroup 64 MB and no swap, and returns a function that starts a member in it.
func limited(t *testing.T, p *post, dir, limit string) (inside func() *process) {
	t.Helper()
	put(t, dir, limit, "67108864")
	_ = os.WriteFile(filepath.Join(dir, "memory.swap.max"), []byte("0"), 0o600) // fails where the kernel has no such limit
	return func() *process {
		m := startChild(t, p.socket, "member")
		m.says("watching")
		put(t, dir, "cgroup.procs", fmt.Sprint(m.cmd.Process.Pid))
		return m
	}
}

// With memory.oom.group, as in Kubernetes, the kernel kills all processes of the cgroup. The sentinel
// notices each death. Only cgroups of version 2 with the memory controller have this file: cmd/neli/boot/boot.sh
// runs a machine that has it, and does not accept a skip.
func TestMembersKilledTogetherByTheOOMKillerAreDead(t *testing.T) {
	dir := cgroupWith(t, "memory.oom.group")
	if dir == "" {
		if os.Getenv("NELI_BOOTED") != "" {
			t.Fatal("this machine has no memory.oom.group")
		}
		t.Skip("needs memory.oom.group, of cgroups of version 2: cmd/neli/boot/boot.sh")
	}
	p := startPost(t, socketIn(directory(t)), nil)
	inside := limited(t, p, dir, "memory.max")
	put(t, dir, "memory.oom.group", "1")
	hungry, other := inside(), inside()
	hungry.order("eat")
	p.dies(hungry.id)
	p.dies(other.id)
	require.Error(t, other.cmd.Wait(), "the kernel has killed it, too")
}
