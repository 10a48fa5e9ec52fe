package sentinel

import (
	"errors"
	"fmt"
)

// Proof is what the kernel says about the file that came with a registration.
type Proof struct {
	Files  int    // the number of files that came
	Pidfd  bool   // the file is a pidfd
	Thread bool   // it is a thread's pidfd, not a process's
	Inode  uint64 // of the pidfd; 0: this kernel gives all pidfds the same inode
	Peer   uint64 // the inode of the connected process's pidfd; 0: this kernel cannot tell
	PID    int    // of the connected process, in the sentinel's namespace; 0: it is in none that the sentinel sees
}

// owner identifies the process that registers, to count what it has. It proves nothing: without an inode it
// is a process id, which may be used again.
type owner struct {
	inode uint64
	pid   int
}

// owner returns the owner. ok is false if it cannot be told.
func (p Proof) owner() (o owner, ok bool) {
	if p.Inode != 0 {
		return owner{inode: p.Inode}, true
	}
	return owner{pid: p.PID}, p.PID != 0
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
	errOwned    = fmt.Errorf("the process has registered %d members, and may not register more", MaxOwned)
	errGroups   = fmt.Errorf("the process has registered members of %d groups, and may not register those of others", maxOwnedPlaces)
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
