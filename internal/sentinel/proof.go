package sentinel

import "errors"

// Proof is what the kernel says about the file that came with a registration.
type Proof struct {
	Files  int    // the number of files that came
	Pidfd  bool   // the file is a pidfd
	Thread bool   // it is a thread's pidfd, not a process's
	Inode  uint64 // of the pidfd; 0: this kernel gives all pidfds the same inode
	Peer   uint64 // the inode of the connected process's pidfd; 0: this kernel cannot tell
}

// Reasons to refuse a registration.
var (
	errFiles    = errors.New("exactly one file must come with a registration: the member's own pidfd")
	errNoPidfd  = errors.New("the file is not a pidfd")
	errThread   = errors.New("the pidfd is of a thread, which may end before its process")
	errNotPeer  = errors.New("the pidfd is not of the process that has connected")
	errAnother  = errors.New("another process has registered this id")
	errFormer   = errors.New("the process has registered again since it sent this registration")
	errFull     = errors.New("too many members are registered")
	errNoMember = errors.New("no such member is registered")
)

// check returns the reason why p proves nothing, or nil.
func (p Proof) check() error {
	switch {
	case p.Files != 1:
		return errFiles
	case !p.Pidfd:
		return errNoPidfd
	case p.Thread:
		return errThread
	case p.Inode != 0 && p.Peer != 0 && p.Inode != p.Peer:
		return errNotPeer
	}
	return nil
}
