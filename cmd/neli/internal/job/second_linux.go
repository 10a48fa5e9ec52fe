package job

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"

	"github.com/goneli/neli/cmd/neli/internal/guard"
)

// second is the second guard of a command that has a cgroup of its own. It kills the
// cgroup even if the elector and the first guard are killed in the same instant.
type second struct {
	kin    *kin
	cgroup *guard.Cgroup
	guard  *exec.Cmd
	orders *os.File
	ending atomic.Bool   // its end is wanted
	gone   chan struct{} // closed when it has ended
}

// startSecond makes a cgroup and starts its guard. It fails if there can be no cgroup.
func startSecond(k *kin, log *slog.Logger) (*second, error) {
	cgroup, err := guard.NewCgroup()
	if err != nil {
		return nil, err
	}
	in, orders, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, cgroup.Close())
	}
	s := &second{kin: k, cgroup: cgroup, orders: orders, gone: make(chan struct{}), guard: exec.Command(guard.Self, guard.SecondVerb, "--", cgroup.Path)}
	s.guard.Args[0] = "neli"
	s.guard.ExtraFiles = []*os.File{in, cgroup.Dir}
	s.guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = k.start(s.guard)
	_ = in.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start the second guard: %w", err), orders.Close(), cgroup.Close())
	}
	go s.watch(log)
	return s, nil
}

// watch waits for the end of the guard, and logs an unexpected one. The command then continues under
// the first guard alone: if that is killed along with the elector, the command's children survive.
func (s *second) watch(log *slog.Logger) {
	defer close(s.gone)
	_ = s.guard.Wait()
	s.kin.remove(s.guard.Process.Pid)
	if !s.ending.Load() {
		log.Warn("the second guard has ended unexpectedly", "state", s.guard.ProcessState.String())
	}
}

// kill kills everything in the cgroup.
func (s *second) kill() {
	if s != nil {
		_ = s.cgroup.Kill() // end reports errors
	}
}

// end kills what is left in the cgroup, removes it, and kills the second guard, which may be stopped.
func (s *second) end() error {
	if s == nil {
		return nil
	}
	s.ending.Store(true)
	err := s.cgroup.Empty()
	_ = s.cgroup.Close()
	_ = s.orders.Close()
	_ = s.guard.Process.Kill() // fails if it has ended
	<-s.gone
	return err
}
