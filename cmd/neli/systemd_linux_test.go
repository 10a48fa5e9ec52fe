package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"golang.org/x/sys/unix"
)

// The shipped unit under a real systemd, on a machine that is made for it: make booted. The tests install
// units, users and commands, so they run nowhere else.

// booted skips a test that is not on such a machine.
func booted(t *testing.T) {
	t.Helper()
	if os.Getenv("NELI_BOOTED") == "" {
		t.Skip("needs a machine of its own whose process 1 is systemd: make booted")
	}
	comm, err := os.ReadFile("/proc/1/comm")
	require.NoError(t, err)
	require.Equal(t, "systemd\n", string(comm), "process 1")
}

const bootedSocket = "/run/neli/sentinel.sock"

// systemctl runs the command of that name, and returns what it prints.
func systemctl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("systemctl", args...).CombinedOutput()
	require.NoError(t, err, "systemctl %s: %s", strings.Join(args, " "), out)
	return strings.TrimSpace(string(out))
}

// mainPID is the process of a unit; 0 without one.
func mainPID(t *testing.T, unit string) int {
	t.Helper()
	pid, err := strconv.Atoi(systemctl(t, "show", "-p", "MainPID", "--value", unit))
	require.NoError(t, err)
	return pid
}

// service is a member that systemd has started.
type service struct {
	t              *testing.T
	unit, out, err string // the files have what it prints
}

// serviceOf starts a member as a service of a group. more has further directives.
func serviceOf(t *testing.T, c *kfake.Cluster, group, name string, more ...string) *service {
	t.Helper()
	unit := group + "-" + name
	base := filepath.Join("/run/members", unit)
	require.NoError(t, os.MkdirAll(filepath.Dir(base), 0o755)) //nolint:gosec // the service's user looks there
	require.NoError(t, unix.Mkfifo(base+".in", 0o600))
	orders, err := os.OpenFile(base+".in", os.O_RDWR, 0) // it stays open: the member ends with its standard input
	require.NoError(t, err)
	t.Cleanup(func() { _ = orders.Close() })
	text := append([]string{"[Service]", "User=jobs", "SupplementaryGroups=neli", "ExecStart=/usr/local/bin/neli-member",
		"StandardInput=file:" + base + ".in", "StandardOutput=append:" + base + ".out", "StandardError=append:" + base + ".err",
		fmt.Sprintf("Environment=%s=member NELI_BOOTSTRAP=%s NELI_GROUP=%s NELI_NAME=%s NELI_SENTINEL=%s",
			programVariable, c.ListenAddrs()[0], group, name, bootedSocket)}, more...)
	require.NoError(t, os.WriteFile("/run/systemd/system/"+unit+".service", []byte(strings.Join(text, "\n")+"\n"), 0o644)) //nolint:gosec // as units are
	systemctl(t, "daemon-reload")
	systemctl(t, "start", unit)
	t.Cleanup(func() {
		_ = exec.Command("systemctl", "kill", "-s", "KILL", unit).Run()
		if t.Failed() {
			for _, file := range []string{base + ".out", base + ".err"} {
				b, _ := os.ReadFile(file)
				t.Logf("%s:\n%s", file, b)
			}
		}
	})
	return &service{t: t, unit: unit, out: base + ".out", err: base + ".err"}
}

// watched waits until the member's log says, for the n-th time, that a sentinel watches it.
func (s *service) watched(n int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		b, _ := os.ReadFile(s.err)
		return strings.Count(string(b), "a sentinel watches this process") >= n
	}, soon, 5*time.Millisecond, "%s is not watched", s.unit)
}

// led waits until the member, or the one that systemd has started in its place, begins to lead for the n-th
// time, and returns when that was.
func (s *service) led(n int) time.Time {
	s.t.Helper()
	began := regexp.MustCompile(`(?m)^leads true (\d+)$`)
	var at int64
	require.Eventually(s.t, func() bool {
		b, _ := os.ReadFile(s.out)
		all := began.FindAllSubmatch(b, -1)
		if len(all) < n {
			return false
		}
		at, _ = strconv.ParseInt(string(all[n-1][1]), 10, 64)
		return true
	}, soon, 2*time.Millisecond, "%s does not lead", s.unit)
	return time.Unix(0, at)
}

// tenured waits until a term that began then is so old that a sentinel may release it.
func tenured(since time.Time) { <-time.After(time.Until(since.Add(wardT + wardT/10))) }

// pairOf starts a leader with its only possible successor, and returns both when the leader's term is old
// enough.
func pairOf(t *testing.T, c *kfake.Cluster, group string, more ...string) (leader, follower *service) {
	t.Helper()
	leader = serviceOf(t, c, group, "leader", more...)
	since := leader.led(1)
	follower = serviceOf(t, c, group, "follower")
	leader.watched(1)
	follower.watched(1)
	tenured(since)
	return leader, follower
}

// succeeds checks that a leader is succeeded within round trips of what happened at a time.
func succeeds(t *testing.T, what string, at, led time.Time) {
	t.Helper()
	t.Logf("%s: led again after %v, T = %v", what, led.Sub(at).Round(time.Millisecond), wardT)
	require.Less(t, led.Sub(at), wardT/2, what)
}

// The sentinel's unit, unchanged, beside services that use it: a killed process, a cgroup that the kernel
// kills as a whole (OOMPolicy=kill is memory.oom.group), a service that systemd starts again, and a sentinel
// that was killed itself.
func TestUnderSystemd(t *testing.T) {
	booted(t)
	c := broker(t)
	sentinel := installSentinel(t, c)

	leader, follower := pairOf(t, c, "killed")
	at := time.Now()
	require.NoError(t, unix.Kill(mainPID(t, leader.unit), unix.SIGKILL))
	succeeds(t, "SIGKILL of a service", at, follower.led(1))

	leader, follower = pairOf(t, c, "oom", "MemoryMax=160M", "MemorySwapMax=0", "OOMPolicy=kill")
	pid := mainPID(t, leader.unit)
	cgroup := filepath.Join("/sys/fs/cgroup", systemctl(t, "show", "-p", "ControlGroup", "--value", leader.unit))
	group, err := os.ReadFile(filepath.Join(cgroup, "memory.oom.group"))
	require.NoError(t, err)
	require.Equal(t, "1\n", string(group))
	at = eat(t, cgroup)
	succeeds(t, "OOM kill of a cgroup", at, follower.led(1))
	require.False(t, alive(pid), "the kernel has killed the member, although another process was the one that ate")
	require.True(t, alive(sentinel), "it has a slice of its own")

	lone := serviceOf(t, c, "lone", "leader", "Restart=always", "RestartSec=0")
	since := lone.led(1)
	lone.watched(1)
	tenured(since)
	at = time.Now()
	require.NoError(t, unix.Kill(mainPID(t, lone.unit), unix.SIGKILL))
	succeeds(t, "a lone service, started again by systemd", at, lone.led(2))

	leader, follower = pairOf(t, c, "again")
	require.NoError(t, unix.Kill(sentinel, unix.SIGKILL))
	require.Eventually(t, func() bool {
		next := mainPID(t, "neli-sentinel")
		return next != 0 && next != sentinel
	}, soon, 50*time.Millisecond, "systemd has started the sentinel again")
	leader.watched(2)
	follower.watched(2)
	at = time.Now()
	require.NoError(t, unix.Kill(mainPID(t, leader.unit), unix.SIGKILL))
	// The new sentinel has not seen the term begin, and waits until it is T old for it, too.
	t.Logf("SIGKILL of a service whose sentinel was started again: led again after %v", follower.led(1).Sub(at).Round(time.Millisecond))
}

// installSentinel installs what the unit needs, starts it, and returns its process.
func installSentinel(t *testing.T, c *kfake.Cluster) int {
	t.Helper()
	for _, user := range []string{"neli", "jobs"} {
		out, err := exec.Command("useradd", "--system", "--user-group", "--no-create-home", user).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	for name, from := range map[string]string{"/usr/local/bin/neli": program, "/usr/local/bin/neli-member": os.Args[0],
		"/etc/systemd/system/neli-sentinel.service": "../../deploy/systemd/neli-sentinel.service"} {
		b, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, b, 0o755)) //nolint:gosec // others run it
	}
	require.NoError(t, os.MkdirAll("/etc/neli", 0o755))                                                                         //nolint:gosec // the sentinel reads it
	require.NoError(t, os.WriteFile("/etc/neli/kafka.properties", []byte("bootstrap.servers="+c.ListenAddrs()[0]+"\n"), 0o644)) //nolint:gosec // the sentinel reads it
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := exec.Command("journalctl", "--no-pager", "--lines=50").CombinedOutput()
			t.Logf("%s", out)
		}
	})
	systemctl(t, "daemon-reload")
	systemctl(t, "start", "neli-sentinel")
	require.Eventually(t, func() bool { _, err := os.Stat(bootedSocket); return err == nil }, soon, 5*time.Millisecond)
	pid := mainPID(t, "neli-sentinel")
	read := func(file string) string {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		require.NoError(t, err)
		return string(b)
	}
	status := strings.Join(strings.Fields(read("status")), " ")
	for _, want := range []string{"NoNewPrivs: 1", "Seccomp: 2", "CapEff: 0000000000000000", "CapBnd: 0000000000000000"} {
		require.Contains(t, status, want)
	}
	require.Equal(t, "-900\n", read("oom_score_adj"), "OOMScoreAdjust")
	require.Regexp(t, `Max open files +65536 +65536`, read("limits"), "LimitNOFILE")
	require.Contains(t, read("cgroup"), "system-neli.slice/neli-sentinel.service", "Slice")
	require.Regexp(t, `(?m)^\d+ \d+ \S+ \S+ / ro[, ]`, read("mountinfo"), "the root is read-only")
	return pid
}

// eat has a process of a cgroup take more memory than the cgroup may have, and returns when the kernel has
// killed it.
func eat(t *testing.T, cgroup string) time.Time {
	t.Helper()
	cmd := exec.Command("tail", "/dev/zero") // it looks for the last lines, and finds no end of the first
	cmd.SysProcAttr = &unix.SysProcAttr{}
	inCgroup(t, cmd, cgroup)
	require.NoError(t, cmd.Start())
	require.Error(t, cmd.Wait(), "the kernel kills it")
	return time.Now()
}
