package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() { programs["confine"] = beConfined }

// confinement is what a unit demands, and what the test uses in place of systemd's names.
type confinement struct {
	Directives []directive
	Command    []string
	Runtime    string   // the only directory that can be written to
	ID         int      // of user and group
	Calls      []uint32 // system calls that are allowed
}

// directive is a line of a unit.
type directive struct{ Name, Value string }

// elsewhere are directives that the test itself carries out (the directory, the cgroup, the list of system
// calls), and Restart, which only systemd can carry out.
var elsewhere = []string{"ExecStart", "RuntimeDirectory", "RuntimeDirectoryMode", "Restart", "Slice", "SystemCallFilter"}

// filtered are the directives that filter carries out, with the only values that it knows.
var filtered = map[string]string{"SystemCallErrorNumber": "EPERM", "SystemCallArchitectures": "native",
	"RestrictAddressFamilies": "AF_UNIX AF_INET AF_INET6", "RestrictNamespaces": "yes"}

// confiners carry out a directive in a process that has a mount namespace of its own. They run in this
// order, which is fixed as in systemd, and not in the unit's order.
var confiners = []struct {
	name string
	do   func(c *confinement, value string) error
}{
	{"OOMScoreAdjust", func(_ *confinement, v string) error {
		err := os.WriteFile("/proc/self/oom_score_adj", []byte(v), 0)
		if errors.Is(err, os.ErrPermission) {
			return nil // this root has no CAP_SYS_RESOURCE, as in many containers
		}
		return err
	}},
	{"LimitNOFILE", func(_ *confinement, v string) error {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			return err
		}
		limit := syscall.Rlimit{Cur: n, Max: n}
		if err = syscall.Setrlimit(unix.RLIMIT_NOFILE, &limit); errors.Is(err, os.ErrPermission) {
			return nil // likewise, where less is allowed already
		}
		return err
	}},
	{"PrivateTmp", func(*confinement, string) error { return cover("/tmp", "/var/tmp") }},
	{"ProtectHome", func(*confinement, string) error { return cover("/home", "/root", "/run/user") }},
	{"ProtectSystem", func(c *confinement, v string) error {
		if v != "strict" {
			return fmt.Errorf("not %s", v)
		}
		if err := unix.Mount(c.Runtime, c.Runtime, "", unix.MS_BIND, ""); err != nil {
			return err
		}
		return errors.Join(readOnly("/", true), readOnly(c.Runtime, false))
	}},
	{"ProtectKernelTunables", func(*confinement, string) error { return readOnly("/sys", true) }},
	{"ProtectControlGroups", func(*confinement, string) error { return readOnly("/sys/fs/cgroup", true) }},
	{"ProtectProc", func(_ *confinement, v string) error {
		return unix.Mount("proc", "/proc", "proc", 0, "hidepid="+v)
	}},
	{"ProcSubset", func(_ *confinement, v string) error {
		return unix.Mount("", "/proc", "", unix.MS_REMOUNT, "hidepid=invisible,subset="+v)
	}},
	{"CapabilityBoundingSet", func(_ *confinement, v string) error {
		if v != "" {
			return fmt.Errorf("not %s", v)
		}
		for c := range uintptr(64) {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
				return err
			}
		}
		return nil
	}},
	{"Group", func(c *confinement, _ string) error {
		return errors.Join(syscall.Setgroups(nil), syscall.Setresgid(c.ID, c.ID, c.ID))
	}},
	{"User", func(c *confinement, _ string) error { return syscall.Setresuid(c.ID, c.ID, c.ID) }},
	{"NoNewPrivileges", func(*confinement, string) error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }},
	{"MemoryDenyWriteExecute", func(*confinement, string) error {
		return unix.Prctl(unix.PR_SET_MDWE, unix.PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0)
	}},
}

// beConfined reads a confinement from its standard input, and becomes the command in it.
func beConfined() int {
	var c confinement
	err := json.NewDecoder(os.Stdin).Decode(&c)
	if err == nil {
		err = c.become()
	}
	fmt.Fprintln(os.Stderr, "confining:", err)
	return 1
}

func (c *confinement) become() error {
	runtime.LockOSThread() // prctl's settings belong to a thread
	wanted := map[string]string{}
	for _, d := range c.Directives {
		wanted[d.Name] = d.Value
	}
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return err
	}
	for _, f := range confiners {
		if v, ok := wanted[f.name]; ok {
			if err := f.do(c, v); err != nil {
				return fmt.Errorf("%s=%s: %w", f.name, v, err)
			}
		}
	}
	for name, value := range filtered {
		if wanted[name] != value {
			return fmt.Errorf("the filter is for %s=%s, and the unit asks for %q", name, value, wanted[name])
		}
	}
	env := append(os.Environ(), programVariable+"=")
	if err := c.filter(); err != nil {
		return fmt.Errorf("SystemCallFilter: %w", err)
	}
	return syscall.Exec(c.Command[0], c.Command, env)
}

// cover puts an empty directory over each of dirs.
func cover(dirs ...string) error {
	for _, dir := range dirs {
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		if err := unix.Mount("none", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=1m"); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return nil
}

// readOnly makes a mount point, and those below it, read-only or no longer so.
func readOnly(dir string, yes bool) error {
	attr := &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
	if yes {
		attr = &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	}
	err := unix.MountSetattr(unix.AT_FDCWD, filepath.Clean(dir), unix.AT_RECURSIVE, attr)
	if errors.Is(err, unix.EINVAL) && dir != "/" {
		return nil // not a mount point here: it is part of /
	}
	return err
}

// Offsets into the data that the kernel passes to a filter (struct seccomp_data, see seccomp(2)).
const (
	callNumber   = 0
	callPlatform = 4
	callArgument = 16

	allow = 0x7fff0000
	deny  = 0x00050000 // with an errno
)

// filter denies system calls of other platforms, system calls that are not allowed, sockets of other
// families than the unit's, and namespaces.
func (c *confinement) filter() error {
	const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	end := func(with uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: with} }
	unless := func(op uint16, k uint32, skip uint8) unix.SockFilter { // skips that many instructions unless the condition holds
		return unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, K: k, Jf: skip}
	}
	eperm, enosys := end(deny|uint32(unix.EPERM)), end(deny|uint32(unix.ENOSYS))
	native := unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: platform, Jt: 1}
	p := []unix.SockFilter{load(callPlatform), native, eperm, load(callNumber)}
	for _, n := range []uint32{unix.SYS_UNSHARE, unix.SYS_SETNS} {
		p = append(p, unless(unix.BPF_JEQ, n, 1), eperm)
	}
	p = append(p, unless(unix.BPF_JEQ, unix.SYS_CLONE3, 1), enosys) // a filter cannot see its flags: systemd does the same
	p = append(p, unless(unix.BPF_JEQ, unix.SYS_CLONE, 4), load(callArgument), unless(unix.BPF_JSET, namespaces, 1), eperm, load(callNumber))
	p = append(p, unless(unix.BPF_JEQ, unix.SYS_SOCKET, 8), load(callArgument))
	for _, family := range []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6} {
		p = append(p, unless(unix.BPF_JEQ, family, 1), end(allow))
	}
	p = append(p, end(deny|uint32(unix.EAFNOSUPPORT)))
	for _, n := range c.Calls {
		p = append(p, unless(unix.BPF_JEQ, n, 1), end(allow))
	}
	p = append(p, eperm)
	program := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}

var platform = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]

// unit reads the directives of the service that a unit describes.
func unit(text string) (all []directive) {
	in := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			in = line == "[Service]"
		}
		if name, value, ok := strings.Cut(line, "="); ok && in && !strings.HasPrefix(line, "#") {
			all = append(all, directive{name, value})
		}
	}
	return all
}
