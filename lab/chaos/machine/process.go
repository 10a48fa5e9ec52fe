package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goneli/neli/lab/chaos/member"
	"github.com/goneli/neli/lab/chaos/plan"
	"github.com/goneli/neli/lab/pause"
)

// Faults of a member's process. Some of them the sentinel must not mistake for a death. In the
// others it must notice the death although the connection has ended before.

// doing bounds how long a member takes to do what it is told to do to its own process.
const doing = 5 * time.Second

// checkNamespaces complains of processes that should be the first ones of their PID namespaces and are not,
// since the faults would then not test what they are for.
func (m *machine) checkNamespaces() {
	for host, is := range apart {
		if is.member && !first(m.guest(host).Pid()) {
			m.complain("the member of %s has no PID namespace of its own", host)
		}
		if is.sentinel && !first(m.keeper(host).Pid()) {
			m.complain("the sentinel of %s has no PID namespace of its own", host)
		}
	}
}

// first reports whether a process is the first one of a PID namespace below this one's.
func first(pid int) bool {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), "\nNSpid:")
	line, _, _ := strings.Cut(rest, "\n")
	pids := strings.Fields(line)
	return len(pids) > 1 && pids[len(pids)-1] == "1"
}

// inflictProcess carries out the faults of a member's process that are not signals.
func (m *machine) inflictProcess(ctx context.Context, p plan.Part, host string) error {
	g := m.guest(host)
	switch p.Action {
	case plan.FreezeMember:
		return m.freeze(ctx, g, p.Hold)
	case plan.CloseFiles:
		if err := g.Say(member.Command{Do: member.DoReplace}); err != nil {
			return nil // it has ended, which is a finding
		}
		if !pause.Until(ctx, doing, func() bool { return g.lost() > 0 || !g.Running() }) && ctx.Err() == nil {
			m.complain("%s has not lost the file of its connection to the sentinel", g.Name)
		}
		return pause.For(ctx, p.Hold)
	default:
		return m.replaceProgram(ctx, g, p.Hold)
	}
}

// replaceProgram has a member execute another program for a while. Then it kills the process and
// starts a new member.
func (m *machine) replaceProgram(ctx context.Context, g *guest, hold time.Duration) error {
	if err := g.Say(member.Command{Do: member.DoExec}); err != nil {
		return nil // it has ended, which is a finding
	}
	g.Silence()
	comm := fmt.Sprintf("/proc/%d/comm", g.Pid())
	another := func() bool { name, _ := os.ReadFile(comm); return string(name) == "sleep\n" }
	if !pause.Until(ctx, doing, another) && ctx.Err() == nil {
		m.complain("%s has not executed another program", g.Name)
	}
	held := pause.For(ctx, hold)
	if held == nil && !another() {
		m.complain("%s, which had executed another program, has ended by itself", g.Name)
	}
	g.Kill()
	if held != nil {
		return held
	}
	return m.enlist(g.host)
}

// lost is how many files the member has lost.
func (g *guest) lost() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.replaced == nil {
		return 0
	}
	return g.replaced.ID
}

// freezers are the hierarchies that can freeze a cgroup, with the file and what to write to it.
var freezers = []struct{ file, on, off string }{
	{"cgroup.freeze", "1", "0"},           // version 2
	{"freezer.state", "FROZEN", "THAWED"}, // version 1
}

// freeze freezes a member for a while, in a cgroup that is gone afterwards.
func (m *machine) freeze(ctx context.Context, g *guest, hold time.Duration) (err error) {
	for _, f := range freezers {
		dir, errDir := newCgroup(f.file)
		if errDir != nil {
			err = errDir
			continue
		}
		write := func(dir, file, text string) error { return os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600) }
		pid := fmt.Sprint(g.Pid())
		if err := write(dir, "cgroup.procs", pid); err != nil {
			return errors.Join(err, os.Remove(dir))
		}
		g.Silence()
		err := write(dir, f.file, f.on)
		if err == nil {
			err = pause.For(ctx, hold)
		}
		err = errors.Join(err, write(dir, f.file, f.off))
		g.Thaw()
		return errors.Join(err, write(filepath.Dir(dir), "cgroup.procs", pid), os.Remove(dir))
	}
	return fmt.Errorf("no cgroup can be frozen here: %w", err)
}

// newCgroup makes a cgroup of a hierarchy whose cgroups have a file.
func newCgroup(file string) (string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		if len(f) < 3 || !strings.HasPrefix(f[2], "cgroup") {
			continue
		}
		dir, err := os.MkdirTemp(f[1], "neli-chaos-")
		if err != nil {
			continue // read-only
		}
		if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
			return dir, nil
		}
		if err := os.Remove(dir); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("no hierarchy has %s", file)
}

// describeProcess is describe for the faults of a member's process. It returns nothing for the
// others.
func describeProcess(p plan.Part, host string) string {
	switch p.Action {
	case plan.FreezeMember:
		return "freeze the cgroup of " + host
	case plan.ExecMember:
		return host + " executes another program"
	case plan.CloseFiles:
		return host + " loses the files of its sentinel"
	}
	return ""
}
