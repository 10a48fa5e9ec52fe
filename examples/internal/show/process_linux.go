package show

import "syscall"

// dieWithParent makes the kernel kill the child when the thread that started it ends, even if the child is
// suspended.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
