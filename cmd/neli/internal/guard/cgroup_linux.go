package guard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// cgroupNames is the pattern of the names of commands' cgroups. Only these, and those below them, are ever removed.
	cgroupNames = "neli-run-*.job"
	// emptiedWithin is how long the kernel may take to remove killed processes.
	emptiedWithin = 5 * time.Second
)

// Cgroup is a cgroup (version 2) for one command. The elector and its guards share one open file of
// its directory, which stays locked as long as one of them lives. A cgroup that can be locked was
// therefore left behind by processes that were killed.
type Cgroup struct {
	Path string
	Dir  *os.File
}

// NewCgroup makes a cgroup below this process's own. First it sweeps those that were left behind
// there. It fails if this process may not make or use one, or if there is no cgroup2.
func NewCgroup() (*Cgroup, error) {
	own, err := ownCgroup()
	if err != nil {
		return nil, err
	}
	sweep(own)
	for range 3 { // another process's sweep may take it before it is locked
		path, err := os.MkdirTemp(own, cgroupNames)
		if err != nil {
			return nil, err
		}
		c, err := lockCgroup(path)
		if err == nil {
			if err = c.usable(); err == nil {
				return c, nil
			}
			return nil, errors.Join(err, os.Remove(path), c.Close())
		}
	}
	return nil, errors.New("another process keeps removing its cgroup")
}

// usable returns why a process cannot be moved into the cgroup and killed there; nil: it can.
func (c *Cgroup) usable() error {
	for _, path := range []string{filepath.Join(c.Path, "cgroup.procs"), filepath.Join(filepath.Dir(c.Path), "cgroup.procs")} {
		if err := unix.Access(path, unix.W_OK); err != nil {
			return &os.PathError{Op: "write", Path: path, Err: err}
		}
	}
	// Without cgroup.kill only root can kill a process of another user.
	if err := unix.Access(filepath.Join(c.Path, "cgroup.kill"), unix.W_OK); err != nil && os.Geteuid() != 0 {
		return fmt.Errorf("cgroup.kill: %w", err) // Linux has it since 5.14
	}
	return nil
}

// lockCgroup opens and locks a cgroup. It fails if another process has locked it.
func lockCgroup(path string) (*Cgroup, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		_, err = os.Stat(path) // removed before it was locked?
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return &Cgroup{Path: path, Dir: dir}, nil
}

// inherited returns the cgroup that this process was given as an open file; nil: none was given.
func inherited(fd int) *Cgroup {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return nil
	}
	if ok, err := filepath.Match(cgroupNames, filepath.Base(path)); err != nil || !ok {
		return nil
	}
	return &Cgroup{Path: path, Dir: os.NewFile(uintptr(fd), path)}
}

// Close removes the cgroup if it is empty, and unlocks it.
func (c *Cgroup) Close() error {
	if c == nil {
		return nil
	}
	remove(c.Path)
	return c.Dir.Close()
}

// add puts a process into the cgroup.
func (c *Cgroup) add(pid int) error {
	return write(filepath.Join(c.Path, "cgroup.procs"), strconv.Itoa(pid))
}

// Kill kills all processes in the cgroup and below it, whatever their user.
func (c *Cgroup) Kill() error {
	if c == nil {
		return nil
	}
	err := write(filepath.Join(c.Path, "cgroup.kill"), "1")
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV) { // no cgroup.kill, or no cgroup any more
		if _, gone := os.Stat(c.Path); gone != nil {
			return nil // another process removed it, so it was empty
		}
		return killEach(c.Path)
	}
	return err
}

// write writes to an existing file. It leaves out O_CREATE, which os.WriteFile sets: with it the
// kernel's error for a missing file is that creating it is not permitted.
func write(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// Empty kills all processes in the cgroup until none is left. Its error says why some are left.
func (c *Cgroup) Empty() error {
	if c == nil {
		return nil
	}
	for end := time.Now().Add(emptiedWithin); ; time.Sleep(5 * time.Millisecond) {
		if err := c.Kill(); err != nil {
			return err
		}
		left := members(c.Path)
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("processes %v of cgroup %s do not end", left, c.Path)
		}
	}
}

// killEach kills the processes one by one, for kernels without cgroup.kill. It freezes the cgroup
// first: a frozen process cannot fork, and can still be killed.
func killEach(path string) error {
	freeze := filepath.Join(path, "cgroup.freeze")
	_ = write(freeze, "1") // Linux has it since 5.2; without it the caller's retries must suffice
	var errs []error
	for _, pid := range members(path) {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("kill %d: %w", pid, err))
		}
	}
	_ = write(freeze, "0")
	return errors.Join(errs...)
}

// members returns the processes in a cgroup and below it, without zombies.
func members(path string) (pids []int) {
	_ = filepath.WalkDir(path, func(dir string, e os.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return nil // removed meanwhile, or a file
		}
		text, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		for _, f := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(f); err == nil && runs(pid) {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	return pids
}

// runs reports whether a process exists and is not a zombie.
func runs(pid int) bool {
	s, ok := readStat(pid)
	return ok && s.runs()
}

// remove removes an empty cgroup, and the cgroups that the command made below it.
func remove(path string) {
	entries, _ := os.ReadDir(path)
	for _, e := range entries {
		if e.IsDir() {
			remove(filepath.Join(path, e.Name()))
		}
	}
	_ = unix.Rmdir(path) // another process may have done it
}

// sweep kills the processes in cgroups that were left behind, and removes the cgroups. It does not
// wait, since it runs within the lease: the next sweep removes a cgroup that is not empty yet.
func sweep(own string) {
	left, _ := filepath.Glob(filepath.Join(own, cgroupNames))
	for _, path := range left {
		c, err := lockCgroup(path)
		if err != nil {
			continue // it is in use
		}
		_ = c.Kill()
		_ = c.Close()
	}
}

// ownCgroup returns the directory of this process's own cgroup (version 2).
func ownCgroup() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	of, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	return cgroupIn(string(mounts), string(of))
}

// cgroupIn returns the directory of a process's cgroup, from its mountinfo and its cgroups in /proc.
func cgroupIn(mounts, of string) (string, error) {
	own := ""
	for line := range strings.Lines(of) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			own = strings.TrimSuffix(path, "\n")
		}
	}
	if strings.HasPrefix(own, "/..") {
		return "", errors.New("the cgroup of this process is outside its cgroup namespace")
	}
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		f := strings.Fields(before) // id, parent, device, root, mount point, options …
		if own == "" || len(f) < 5 || !strings.HasPrefix(after, "cgroup2 ") {
			continue
		}
		below, err := filepath.Rel(escapes.Replace(f[3]), own)
		if err == nil && below != ".." && !strings.HasPrefix(below, "../") {
			return filepath.Join(escapes.Replace(f[4]), below), nil
		}
	}
	return "", errors.New("no mounted cgroup2 contains this process")
}

// escapes decodes what the kernel writes into mountinfo for characters that would end a field, and for the
// backslash, which systemd has in the names of units. In /proc/self/cgroup the kernel escapes nothing.
var escapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\043`, "#", `\134`, `\`)
