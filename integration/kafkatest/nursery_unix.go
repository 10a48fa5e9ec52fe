//go:build unix && !linux

package kafkatest

import "syscall"

// dieWithParent has no means outside Linux; the watchdog has to do.
func dieWithParent(*syscall.SysProcAttr) {}
