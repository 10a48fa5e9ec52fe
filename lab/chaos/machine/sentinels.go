package machine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/chaos/member"
	"github.com/goneli/neli/lab/chaos/plan"
	"github.com/goneli/neli/lab/chaos/sentinel"
	"github.com/goneli/neli/lab/child"
	"github.com/goneli/neli/lab/pause"
)

// apart has the hosts on which a process is the first one of a PID namespace of its own, in runs with
// sentinels. There, pids mean nothing between a sentinel and a member, and the pidfd has to suffice.
var apart = map[string]struct{ member, sentinel bool }{
	"m2": {member: true}, "m3": {sentinel: true}, "m4": {member: true, sentinel: true},
}

// socket is where the sentinel of a host listens; "" without sentinels.
func (m *machine) socket(host string) string {
	if !m.Sentinels {
		return ""
	}
	return filepath.Join(m.Scratch, "sentinel-"+host, "socket")
}

// post starts a sentinel on a host that has none.
func (m *machine) post(host string) error {
	params := sentinel.Params{Name: "sentinel-" + host, Socket: m.socket(host)}
	if m.Peers {
		params.Peers = m.peers()
	} else {
		params.Bootstrap = m.cluster.Bootstrap()
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), sentinel.Env+"=1")
	if apart[host].sentinel {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	}
	k, err := child.New(cmd, params, child.Options{Nursery: m.nursery, Dir: filepath.Join(m.Dir, MembersDir), Name: params.Name, By: m.net.Host(host).Start})
	if k != nil {
		m.mu.Lock()
		m.keepers[host] = k
		m.mu.Unlock()
	}
	return err
}

func (m *machine) keeper(host string) *child.Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.keepers[host]
}

// inflictSentinel carries out a fault of a host's sentinel.
func (m *machine) inflictSentinel(ctx context.Context, p plan.Part, host string) error {
	k := m.keeper(host)
	if !k.Running() {
		m.complain("the sentinel of %s has ended by itself: %s", host, k.State())
		return m.post(host)
	}
	held, cancel := context.WithTimeout(ctx, p.Hold)
	defer cancel()
	switch p.Action {
	case plan.KillSentinel:
		k.Kill()
		if err := pause.For(ctx, p.Hold); err != nil {
			return err
		}
		return m.post(host)
	case plan.StopSentinel:
		if _, err := k.Suspend(); err != nil {
			return err
		}
		err := pause.For(ctx, p.Hold)
		if _, woken := k.Wake(); woken != nil {
			return woken
		}
		return err
	case plan.ForgeMembers:
		return sentinel.Forge(held, m.socket(host), m.victim(host))
	case plan.StrangeSocket:
		told, err := sentinel.Replace(held, m.socket(host))
		if told > 0 {
			m.complain("members have told %d bytes to a socket in another user's directory on %s", told, host)
		}
		return err
	default:
		return sentinel.Proxy(held, m.socket(host), sentinel.Way(p.Count))
	}
}

// victim describes a host's member by what every reader of the topic knows.
func (m *machine) victim(host string) sentinel.Victim {
	v := sentinel.Victim{Group: member.Group(history.Exclusive), Process: m.guest(host).process(), Name: m.guest(host).Name, T: m.Timeout}
	if !m.Peers {
		v.Topic = v.Group + ".neli"
	}
	return v
}

// describeSentinel is describe for faults of a sentinel. It returns "" for the others.
func describeSentinel(p plan.Part, host string) string {
	switch p.Action {
	case plan.KillSentinel:
		return "SIGKILL sentinel of " + host
	case plan.StopSentinel:
		return "SIGSTOP sentinel of " + host
	case plan.ForgeMembers:
		return "false members at the sentinel of " + host
	case plan.StrangeSocket:
		return "a stranger's socket in place of the sentinel's on " + host
	case plan.ProxySentinel:
		return fmt.Sprintf("proxy before the sentinel of %s: %v", host, sentinel.Way(p.Count))
	}
	return ""
}
