//go:build unix && !linux

package nursery

import "syscall"

// dieWithParent does nothing outside Linux, where only the watchdog works.
func dieWithParent(*syscall.SysProcAttr) {}
