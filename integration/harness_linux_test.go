package integration

import "syscall"

// diesWithParent has the kernel kill the child when the thread that starts it
// ends; that thread must live on.
func diesWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
