//go:build unix && !linux

package show

import "syscall"

// dieWithParent has no help from the kernel here: a child notices the end of its
// standard input.
func dieWithParent(*syscall.SysProcAttr) {}
