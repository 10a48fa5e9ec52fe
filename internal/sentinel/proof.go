package sentinel

import "errors"

// Proof is what the kernel says of the file that a member sends.
type Proof struct {
	Files  int    // that came with the registration
	Pidfd  bool   // it is a pidfd
	Thread bool   // of a thread
	Inode  uint64 // of the pidfd; 0: the kernel gives all pidfds the same
	Peer   uint64 // of a pidfd of the process that has connected; 0: the kernel cannot tell
}

// What is wrong with a proof.
var (
	errFiles    = errors.New("exactly one file must come with a registration: the member's own pidfd")
	errNoPidfd  = errors.New("the file is not a pidfd")
	errThread   = errors.New("the pidfd is of a thread, which may end before its process")
	errNotPeer  = errors.New("the pidfd is not of the process that has connected")
	errAnother  = errors.New("another process has registered this id")
	errFull     = errors.New("too many members are registered")
	errNoMember = errors.New("no such member is registered")
)

// check reports why a file proves nothing.
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
