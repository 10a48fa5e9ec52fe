//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// process is a member as the demo sees it.
type process struct {
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	done  chan struct{} // closed when the process has ended and all its reports are in
	err   error         // of the process, once it is done
}

// launch starts this very program as a member. Every report goes to heard.
func launch(name, bootstrap string, heard func(member string, r report)) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "-member", name, "-bootstrap", bootstrap)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	dieWithParent(cmd.SysProcAttr)
	p := &process{name: name, cmd: cmd, done: make(chan struct{})}
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
			var r report
			// A line that SIGKILL cut short says nothing.
			if json.Unmarshal(lines.Bytes(), &r) == nil {
				heard(name, r)
			}
		}
		p.err = cmd.Wait()
	}()
	return p, nil
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// close asks for an orderly end.
func (p *process) close() error {
	_, err := io.WriteString(p.stdin, "close\n")
	return err
}

func (p *process) signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// kill ends the process, suspended or not, and waits for that.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails if it has ended
	<-p.done
}
