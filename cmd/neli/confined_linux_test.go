package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goneli/neli/cmd/neli/internal/needs"
)

// The sentinel's unit confines the sentinel. Confined by this test as systemd would do it, the sentinel
// watches members of other users, and releases what they held when their cgroup is killed.
func TestConfinedSentinelWorks(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		needs.Missing(t, "root")
	}
	const user, other = 65534, 65533
	text, err := os.ReadFile("../../deploy/systemd/neli-sentinel.service")
	require.NoError(t, err)
	asked := unit(string(text))
	for _, d := range asked {
		known := slices.Contains(elsewhere, d.Name) || filtered[d.Name] != ""
		for _, f := range confiners {
			known = known || f.name == d.Name
		}
		require.True(t, known, "%s: this test does not know the directive", d.Name)
	}

	// In /run, since the unit hides other directories.
	base, err := os.MkdirTemp("/run", "neli-test-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	require.NoError(t, os.Chmod(base, 0o755)) //nolint:gosec // others may look
	for name, from := range map[string]string{"neli": program, "member": os.Args[0]} {
		b, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(base, name), b, 0o755)) //nolint:gosec // others run it
	}
	runtimeDirectory := filepath.Join(base, "own")
	require.NoError(t, os.Mkdir(runtimeDirectory, 0o750))
	require.NoError(t, os.Chown(runtimeDirectory, user, user))
	c := broker(t)
	config := filepath.Join(base, "kafka.properties")
	require.NoError(t, os.WriteFile(config, []byte("bootstrap.servers="+c.ListenAddrs()[0]+"\n"), 0o644)) //nolint:gosec // the sentinel reads it

	plan := confinement{Directives: asked, Runtime: runtimeDirectory, ID: user, Calls: allowed(t, asked)}
	for _, d := range asked {
		if d.Name == "ExecStart" {
			replaced := strings.NewReplacer("/usr/local/bin/neli", filepath.Join(base, "neli"), "/run/neli/", runtimeDirectory+"/", "/etc/neli/kafka.properties", config)
			plan.Command = strings.Fields(replaced.Replace(d.Value))
		}
	}
	require.Equal(t, []string{"begun"}, attempts(t, plan), "what a confined process must not be able to do")
	members, slice := cgroupWith(t, "cgroup.kill"), cgroupWith(t, "cgroup.kill")
	if members == "" || slice == "" {
		needs.Missing(t, "a cgroup2 that can be written to")
	}
	sentinel := startConfined(t, plan, func(cmd *exec.Cmd) { inCgroup(t, cmd, slice) })
	sentinel.logs("the sentinel listens")
	confined(t, sentinel.cmd.Process.Pid, user)

	start := func(name, cgroup string) *member {
		m := startMember(t, c, "confined", name, filepath.Join(runtimeDirectory, "sentinel.sock"), func(cmd *exec.Cmd) {
			cmd.Path = filepath.Join(base, "member")
			cmd.Dir = "/"
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: other, Gid: other, Groups: []uint32{user}}
			inCgroup(t, cmd, cgroup)
		})
		return m
	}
	leader := start("leader", members)
	since := leader.led()
	leader.logs("a sentinel watches this process")
	follower := start("follower", slice) // which outlives the other's cgroup, too
	follower.logs("a sentinel watches this process")
	<-time.After(time.Until(since.Add(wardT + wardT/10)))
	killed := time.Now()
	require.NoError(t, os.WriteFile(filepath.Join(members, "cgroup.kill"), []byte("1"), 0o600))
	require.Less(t, follower.led().Sub(killed), wardT/2, "round trips, on a busy machine")
	sentinel.notes("leader")

	written, err := os.ReadDir(runtimeDirectory)
	require.NoError(t, err)
	require.Len(t, written, 2, "the socket, its lock, and nothing else")
	require.Equal(t, "sentinel.sock", written[0].Name())
	require.Equal(t, "sentinel.sock.lock", written[1].Name())
	lock, err := written[1].Info()
	require.NoError(t, err)
	require.Zero(t, lock.Size())
}

// startConfined starts a plan's command, confined as the plan says.
func startConfined(t *testing.T, plan confinement, change func(*exec.Cmd)) *process {
	t.Helper()
	orders, err := json.Marshal(plan)
	require.NoError(t, err)
	env := slices.DeleteFunc(environment(nil), func(v string) bool { return strings.HasPrefix(v, "NELI_BOOTSTRAP=") })
	return neliBy(t, func(cmd *exec.Cmd) {
		self, err := os.Executable()
		require.NoError(t, err)
		cmd.Path = self
		cmd.Stdin = bytes.NewReader(orders)
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWNS
		change(cmd)
	}, append(env, programVariable+"=confine"))
}

// attempts returns what a confined shell was able to do, as the shell says.
func attempts(t *testing.T, plan confinement) []string {
	t.Helper()
	plan.Command = []string{"/bin/sh", "-c", `echo begun
		for f in /run/x /etc/x "$HOME"/x /sys/fs/cgroup/x; do touch $f && echo writes $f; done
		test -e ` + filepath.Dir(program) + ` && echo sees /tmp
		unshare --user true && echo makes namespaces
		test -e /proc/1 && echo sees other processes
		test -e /proc/sys && echo sees the tunables`}
	p := startConfined(t, plan, func(*exec.Cmd) {})
	p.code()
	return p.output()
}

// inCgroup starts a command in a cgroup.
func inCgroup(t *testing.T, cmd *exec.Cmd, dir string) {
	t.Helper()
	f, err := os.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(f.Fd())
}

// confined checks that a process is confined, by what the kernel says of it.
func confined(t *testing.T, pid, user int) {
	t.Helper()
	read := func(file string) string {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		require.NoError(t, err)
		return string(b)
	}
	status := strings.Join(strings.Fields(read("status")), " ")
	for _, want := range []string{fmt.Sprintf("Uid: %d %d %d %d", user, user, user, user), "NoNewPrivs: 1", "Seccomp: 2",
		"CapEff: 0000000000000000", "CapPrm: 0000000000000000", "CapBnd: 0000000000000000"} {
		require.Contains(t, status, want)
	}
	if got := read("oom_score_adj"); got != "-900\n" {
		t.Logf("OOMScoreAdjust is not covered on this machine, which does not allow it: %s", got)
	}
	if limits := read("limits"); !regexp.MustCompile(`Max open files +65536 +65536`).MatchString(limits) {
		t.Logf("LimitNOFILE is not covered on this machine, which does not allow it")
	}
	mounts := read("mountinfo")
	require.Regexp(t, `(?m)^\d+ \d+ \S+ \S+ / ro[, ]`, mounts, "the root is read-only")
	require.Regexp(t, `(?m) /proc rw\S* .*subset=pid`, mounts)
	require.Regexp(t, `(?m) /tmp ro\S* .*tmpfs`, mounts, "its own /tmp")
}

// allowed are the numbers of the system calls that a unit allows, as systemd-analyze and the C compiler know them.
func allowed(t *testing.T, unit []directive) []uint32 {
	t.Helper()
	for _, tool := range []string{"systemd-analyze", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			needs.Missing(t, "the command "+tool)
		}
	}
	var sets func(name string) []string
	sets = func(name string) (calls []string) {
		out, err := exec.Command("systemd-analyze", "syscall-filter", name).Output()
		require.NoError(t, err)
		for _, word := range strings.Fields(strings.Join(slices.DeleteFunc(strings.Split(string(out), "\n"), func(line string) bool {
			return strings.HasPrefix(strings.TrimSpace(line), "#") || strings.TrimSpace(line) == name
		}), "\n")) {
			if strings.HasPrefix(word, "@") {
				calls = append(calls, sets(word)...)
			} else {
				calls = append(calls, word)
			}
		}
		return calls
	}
	allowed := map[string]bool{}
	set := func(name string, yes bool) {
		for _, call := range sets(name) {
			allowed[call] = yes
		}
	}
	set("@default", true)
	for _, d := range unit {
		if d.Name != "SystemCallFilter" {
			continue
		}
		rest, no := strings.CutPrefix(d.Value, "~")
		for _, name := range strings.Fields(rest) {
			set(name, !no)
		}
	}
	header := exec.Command("gcc", "-dM", "-E", "-")
	header.Stdin = strings.NewReader("#include <sys/syscall.h>\n")
	out, err := header.Output()
	require.NoError(t, err)
	var numbers []uint32
	for line := range strings.Lines(string(out)) {
		var name string
		var n uint32
		if _, err := fmt.Sscanf(line, "#define __NR_%s %d", &name, &n); err == nil && allowed[name] {
			numbers = append(numbers, n)
		}
	}
	require.Greater(t, len(numbers), 200, "the test's own: system calls are known by number")
	return numbers
}
