package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/goneli/neli/lab/release/internal/repo"
)

// programs runs the README's first example and examples/basic, as their readers do, against a Kafka in memory, until
// they lead and work.
func (c *check) programs() error {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		return err
	}
	defer broker.Close()
	address := broker.ListenAddrs()[0]

	first, err := c.firstExample(address)
	if err != nil {
		return err
	}
	if err := leads(first, "sending what is due, token"); err != nil {
		return err
	}
	if err := inDir(c.work, "go", "install", repo.Root+"/examples/basic@"+c.version); err != nil {
		return err
	}
	return leads(exec.Command(filepath.Join(c.work, "bin", "basic"), "-bootstrap", address, "-name", "anna"), "sent invoice 1")
}

// firstExample builds the first program of the README, with another broker's address.
func (c *check) firstExample(address string) (*exec.Cmd, error) {
	readme, err := os.ReadFile(filepath.Join(c.clone.Dir, "README.md"))
	if err != nil {
		return nil, err
	}
	_, program, found := strings.Cut(string(readme), "```go\n")
	program, _, ended := strings.Cut(program, "```")
	const usual = "localhost:9092"
	if !found || !ended || !strings.Contains(program, usual) {
		return nil, errors.New("README.md has no program that connects to " + usual)
	}
	dir, err := c.scratch("first", c.modules[0])
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(strings.ReplaceAll(program, usual, address)), 0o644); err != nil {
		return nil, err
	}
	if err := inDir(dir, "go", "build", "-o", "first", "."); err != nil {
		return nil, err
	}
	return exec.Command(filepath.Join(dir, "first")), nil
}

// leads runs a program until it prints says, and then interrupts it. The program must end without an error.
func leads(cmd *exec.Cmd, says string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	pipe, into, err := os.Pipe()
	if err != nil {
		return err
	}
	defer pipe.Close()
	cmd.Stdout, cmd.Stderr = into, into
	if err := cmd.Start(); err != nil {
		into.Close()
		return err
	}
	into.Close()
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()
	said, heard := strings.Builder{}, false
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if !heard && strings.Contains(lines.Text(), says) {
			heard = true
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				return err
			}
		}
	}
	if err := cmd.Wait(); err != nil || !heard {
		return fmt.Errorf("%s did not say %q and end: %v\n%s", cmd.Path, says, err, said.String())
	}
	return nil
}
