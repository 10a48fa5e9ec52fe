package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/chaos/member"
	"github.com/goneli/neli/lab/chaos/plan"
	"github.com/goneli/neli/lab/chaos/sentinel"
	"github.com/goneli/neli/lab/pause"
)

// apart has the hosts on which a process is the first one of a PID namespace of its own, in runs with
// sentinels. There, pids mean nothing between a sentinel and a member, and the pidfd has to suffice.
var apart = map[string]struct{ member, sentinel bool }{
	"m2": {member: true}, "m3": {sentinel: true}, "m4": {member: true, sentinel: true},
}

// A keeper is a sentinel on a member's host.
type keeper struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	done  chan struct{}
}

// socket returns where the sentinel of a host listens; "" without sentinels.
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
	log, err := os.OpenFile(filepath.Join(m.Dir, MembersDir, params.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	k := &keeper{cmd: exec.Command(exe), done: make(chan struct{})}
	k.cmd.Env = append(os.Environ(), sentinel.Env+"=1")
	k.cmd.Stderr = log
	if k.stdin, err = k.cmd.StdinPipe(); err != nil {
		return err
	}
	if apart[host].sentinel {
		k.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	}
	if err := m.net.Host(host).Start(k.cmd); err != nil {
		return fmt.Errorf("starting the sentinel of %s: %w", host, err)
	}
	go func() {
		_ = k.cmd.Wait() // the status adds nothing: the runner killed it, or inflictSentinel complains
		close(k.done)
	}()
	m.mu.Lock()
	m.keepers[host] = k
	m.mu.Unlock()
	return json.NewEncoder(k.stdin).Encode(params)
}

func (m *machine) keeper(host string) *keeper {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.keepers[host]
}

func (k *keeper) running() bool {
	select {
	case <-k.done:
		return false
	default:
		return true
	}
}

func (k *keeper) kill() {
	_ = k.cmd.Process.Kill() // it may have ended
	<-k.done
}

// inflictSentinel carries out a fault of a host's sentinel.
func (m *machine) inflictSentinel(ctx context.Context, p plan.Part, host string) error {
	k := m.keeper(host)
	if !k.running() {
		m.complain("the sentinel of %s has ended by itself: %s", host, k.cmd.ProcessState)
		return m.post(host)
	}
	held, cancel := context.WithTimeout(ctx, p.Hold)
	defer cancel()
	switch p.Action {
	case plan.KillSentinel:
		k.kill()
		if err := pause.For(ctx, p.Hold); err != nil {
			return err
		}
		return m.post(host)
	case plan.StopSentinel:
		if err := k.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		err := pause.For(ctx, p.Hold)
		if woken := k.cmd.Process.Signal(syscall.SIGCONT); woken != nil {
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
	v := sentinel.Victim{Group: member.Group(history.Exclusive), Process: m.guest(host).process(), Name: m.guest(host).name, T: m.Timeout}
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
