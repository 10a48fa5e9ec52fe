//go:build unix && !linux

package show

import "syscall"

// dieWithParent does nothing here, as the kernel cannot do this: a child ends when its standard input does.
func dieWithParent(*syscall.SysProcAttr) {}
