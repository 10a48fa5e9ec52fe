//go:build booted

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

// These tests run the shipped unit under a real systemd, on a machine that is made for them: boot/boot.sh.
// They install units, users and commands, so they run nowhere else.

// booted asserts that the test runs on such a machine.
func booted(t *testing.T) {
	t.Helper()
	comm, err := os.ReadFile("/proc/1/comm")
	require.NoError(t, err)
	require.Equal(t, "systemd\n", string(comm), "process 1")
}

const bootedSocket = "/run/neli/sentinel.sock"

// bootedT is T on that machine, which is emulated and takes seconds to start a process.
const bootedT = 30 * time.Second

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
	require.NoError(t, os.MkdirAll(filepath.Dir(base), 0o755)) //nolint:gosec // the service's user reads it
	require.NoError(t, unix.Mkfifo(base+".in", 0o600))
	orders, err := os.OpenFile(base+".in", os.O_RDWR, 0) // it stays open: the member ends with its standard input
	require.NoError(t, err)
	t.Cleanup(func() { _ = orders.Close() })
	text := append([]string{"[Service]", "User=jobs", "SupplementaryGroups=neli", "ExecStart=/usr/local/bin/neli-member",
		"StandardInput=file:" + base + ".in", "StandardOutput=append:" + base + ".out", "StandardError=append:" + base + ".err",
		fmt.Sprintf("Environment=%s=member %s=%v NELI_BOOTSTRAP=%s NELI_GROUP=%s NELI_NAME=%s NELI_SENTINEL=%s",
			programVariable, wardVariable, bootedT, c.ListenAddrs()[0], group, name, bootedSocket)}, more...)
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

// watched waits until the member's log says for the n-th time that a sentinel watches the member.
func (s *service) watched(n int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		b, _ := os.ReadFile(s.err)
		return strings.Count(string(b), "a sentinel watches this process") >= n
	}, soon, 5*time.Millisecond, "%s is not watched", s.unit)
}

// led waits until the member, or the one that systemd started in its place, begins to lead for the n-th
// time, and returns that time.
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

// pairOf starts a leader with its only possible successor.
func pairOf(t *testing.T, c *kfake.Cluster, group string, more ...string) (leader, follower *service) {
	t.Helper()
	leader = serviceOf(t, c, group, "leader", more...)
	leader.led(1)
	return leader, serviceOf(t, c, group, "follower")
}

// succeeds checks that a leader that died at a time was succeeded within round trips.
func succeeds(t *testing.T, what string, died, led time.Time) {
	t.Helper()
	t.Logf("%s: led again after %v, T = %v", what, led.Sub(died).Round(time.Millisecond), bootedT)
	require.Less(t, led.Sub(died), bootedT/2, what)
}

// strike kills a service's process, and returns the time.
func (s *service) strike() time.Time {
	s.t.Helper()
	pid, at := mainPID(s.t, s.unit), time.Now()
	require.NoError(s.t, unix.Kill(pid, unix.SIGKILL))
	return at
}

// The sentinel's unit, unchanged, runs beside services that use it. The test kills a process, makes the
// kernel kill a whole cgroup (OOMPolicy=kill is memory.oom.group), lets systemd restart a service, and kills
// the sentinel itself.
func TestUnderSystemd(t *testing.T) {
	booted(t)
	c := broker(t)
	sentinel := installSentinel(t, c)
	killed, next := pairOf(t, c, "killed")
	hungry, heir := pairOf(t, c, "oom", "MemoryMax=96M", "MemorySwapMax=0", "OOMPolicy=kill")
	lone := serviceOf(t, c, "lone", "leader", "Restart=always", "RestartSec=0")
	again, last := pairOf(t, c, "again")
	since := lone.led(1)
	for _, s := range []*service{killed, next, hungry, heir, lone, again, last} {
		s.watched(1)
	}
	tenure := func(since time.Time) { <-time.After(time.Until(since.Add(bootedT + bootedT/5))) }
	tenure(later(since, again.led(1)))

	at := killed.strike()
	succeeds(t, "SIGKILL of a service", at, next.led(1))
	next.strike() // next has done its part

	at = eat(t, hungry)
	succeeds(t, "OOM kill of a cgroup", at, heir.led(1))
	heir.strike()
	require.True(t, alive(sentinel), "it has a slice of its own")

	at = lone.strike()
	succeeds(t, "a lone service, started again by systemd", at, lone.led(2))

	require.NoError(t, unix.Kill(sentinel, unix.SIGKILL))
	require.Eventually(t, func() bool {
		pid := mainPID(t, "neli-sentinel")
		return pid != 0 && pid != sentinel
	}, soon, 50*time.Millisecond, "systemd has started the sentinel again")
	again.watched(2)
	last.watched(2)
	tenure(time.Now()) // the new sentinel has not seen the term begin
	at = again.strike()
	succeeds(t, "SIGKILL of a service whose sentinel was started again", at, last.led(1))
}

// installSentinel installs what the unit needs, starts it, and returns its process.
func installSentinel(t *testing.T, c *kfake.Cluster) int {
	t.Helper()
	for _, user := range []string{"neli", "jobs"} {
		out, err := exec.Command("useradd", "--system", "--user-group", "--no-create-home", user).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	copied := func(to, from string, mode os.FileMode) {
		b, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to, b, mode))
	}
	copied("/usr/local/bin/neli", program, 0o755)
	copied("/usr/local/bin/neli-member", os.Args[0], 0o755)
	copied("/etc/systemd/system/neli-sentinel.service", "../../deploy/systemd/neli-sentinel.service", 0o644)
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

// eat has another process in a service's cgroup take more memory than the cgroup may have. It returns the
// time when the kernel has killed the service's own process.
func eat(t *testing.T, s *service) time.Time {
	t.Helper()
	cgroup := filepath.Join("/sys/fs/cgroup", systemctl(t, "show", "-p", "ControlGroup", "--value", s.unit))
	group, err := os.ReadFile(filepath.Join(cgroup, "memory.oom.group"))
	require.NoError(t, err)
	require.Equal(t, "1\n", string(group))
	pid := mainPID(t, s.unit)
	cmd := exec.Command("tail", "/dev/zero") // it looks for the last lines, and finds no end of the first
	cmd.SysProcAttr = &unix.SysProcAttr{}
	inCgroup(t, cmd, cgroup)
	require.NoError(t, cmd.Start())
	dead(t, soon, pid)
	at := time.Now()
	require.Error(t, cmd.Wait(), "the kernel kills it, too")
	return at
}
