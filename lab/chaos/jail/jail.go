// Package jail runs everything that a run starts in a jail that vanishes with the run. It has a PID namespace, so that the
// kernel kills every process in it, even suspended ones, when the first one ends, in whatever way. It also has a mount
// namespace with a file system in memory for the data of brokers and database, which is gone with the last process.
package jail

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	env = "NELI_CHAOS_INSIDE"
	// Scratch is a directory in memory that only processes inside see.
	Scratch = "/dev/shm"
)

// Inside reports whether this process is the first one of a jail.
func Inside() bool { return os.Getenv(env) != "" && os.Getpid() == 1 }

// Self is this program's path. If the path is unknown, Self is empty, and an attempt to start it fails.
func Self() string {
	exe, _ := os.Executable()
	return exe
}

// enter executes this program again, with the same arguments, in a jail, passes signals on to it, and returns its exit
// code. If this process dies first, the one inside is killed.
func enter() (code int, err error) {
	cmd := exec.Command(Self(), os.Args[1:]...)
	cmd.Env = append(os.Environ(), env+"=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
		Setsid:     true, // so that only this process gets a terminal's Ctrl-C, and passes it on once
	}
	// The kernel takes this thread for the parent, so the thread must last.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("making namespaces for processes and mounts: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	passed := make(chan struct{})
	go func() {
		defer close(passed)
		for {
			select {
			case s := <-signals:
				_ = cmd.Process.Signal(s) // an error means that it has ended
			case <-ctx.Done():
				return
			}
		}
	}()
	err = cmd.Wait()
	cancel()
	<-passed
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// Run runs work in a jail, and returns its exit code. Outside a jail, it executes this program again inside. Inside, it calls
// work, whose context ends with SIGINT or SIGTERM, or after limit.
func Run(limit time.Duration, work func(context.Context) (code int, err error)) (int, error) {
	if !Inside() {
		return enter()
	}
	if err := furnish(); err != nil {
		return 0, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return work(ctx)
}

// Possible returns what this machine lacks for a jail with hosts of package wire.
func Possible() error {
	var missing []error
	if os.Geteuid() != 0 {
		missing = append(missing, fmt.Errorf("namespaces need root, and this is user %d", os.Geteuid()))
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		missing = append(missing, fmt.Errorf("hosts need TUN devices: %w", err))
	}
	return errors.Join(missing...)
}

// furnish prepares the jail: /proc shows its own processes, and Scratch is empty. It must be called first of all, inside.
func furnish() error {
	// Otherwise mounts made here would appear outside the jail.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	if err := os.MkdirAll(Scratch, 0o777); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", Scratch, "tmpfs", 0, "mode=1777"); err != nil {
		return fmt.Errorf("mounting a file system in memory: %w", err)
	}
	return os.Setenv("TMPDIR", Scratch)
}
