//go:build !linux

package integration

import "syscall"

// diesWithParent can do nothing here: the end of standard input must do, which a
// suspended member does not notice.
func diesWithParent(*syscall.SysProcAttr) {}
