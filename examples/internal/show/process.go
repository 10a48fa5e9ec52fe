//go:build unix

package show

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// Process is a member as the demo sees it.
type Process struct {
	Name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	done  chan struct{} // closed when the process has ended and all its reports are in
	Err   error         // the process's error, once it has ended
}

// Launch starts this program again with these arguments, as a member. It calls heard for every report.
func Launch(name string, args []string, heard func(member string, r Report)) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, args...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	dieWithParent(cmd.SysProcAttr)
	p := &Process{Name: name, cmd: cmd, done: make(chan struct{})}
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		defer close(p.done)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			var r Report
			// A line that SIGKILL cut short is ignored.
			if json.Unmarshal(lines.Bytes(), &r) == nil {
				heard(name, r)
			}
		}
		p.Err = cmd.Wait()
	}()
	return p, nil
}

// Running reports whether the process has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Tell sends the process an order, which Orders yields there.
func (p *Process) Tell(order string) error {
	_, err := io.WriteString(p.stdin, order+"\n")
	return err
}

// Signal sends it a signal.
func (p *Process) Signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// Kill kills the process, suspended or not, and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // fails if it has ended
	<-p.done
}
