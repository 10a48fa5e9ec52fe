package show

import "syscall"

// dieWithParent has the kernel kill the child when the thread that starts it ends,
// even if the child is suspended then.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
