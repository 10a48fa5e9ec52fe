//go:build unix && !linux

package nursery

import "syscall"

// dieWithParent has no means outside Linux; the watchdog has to do.
func dieWithParent(*syscall.SysProcAttr) {}
