//go:build unix && !linux

package nursery

import "syscall"

// dieWithParent does nothing outside Linux, where only the watchdog works.
func dieWithParent(*syscall.SysProcAttr) {}

// awaitStop does nothing outside Linux: there a child may go on for some milliseconds.
func awaitStop(int) error { return nil }
