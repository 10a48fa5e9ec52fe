package sentinel

import (
	"testing"

	"github.com/goneli/neli/internal/mutation"
)

// kernelRules are the rules of doc.go that need Linux.
var kernelRules = []mutation.Mutant{
	{Rule: "2: nobody else may write to the socket's directory", File: "server_linux.go",
		Old: "|| st.Mode&0o022 != 0 {", New: "{",
		Guard: "TestTheSocketIsTheSentinelsOwn", Want: "others may write"},
	{Rule: "2: the directory is of the user who listens, or root's", File: "server_linux.go",
		Old: "st.Uid != 0 && st.Uid != owner ||", New: "owner == 0 && st.Uid != 0 && false ||",
		Guard: "TestASocketInAnotherUsersDirectoryIsRefused", Want: "could replace the socket"},
	{Rule: "3: a directory of /proc is no pidfd", File: "proof_linux.go",
		Old: "p.Pidfd = inPidfs(fd)", New: "p.Pidfd = true",
		Guard: "TestBadProofsAreRefusedAndSaidOnce", Want: "a directory of /proc"},
	{Rule: "3: a thread's pidfd is told by O_EXCL", File: "proof_linux.go",
		Old: "err != nil || flags&unix.O_EXCL != 0", New: "err != nil && flags == 0",
		Guard: "TestBadProofsAreRefusedAndSaidOnce", Want: "a thread's"},
	{Rule: "3: another process's pidfd is told by its inode", File: "proof_linux.go",
		Old: "p.Inode, p.Peer = inode(fd), peer(c)", New: "p.Inode = inode(fd)",
		Guard: "TestBadProofsAreRefusedAndSaidOnce", Want: "another process's"},
	{Rule: "4: death is POLLIN", File: "server_linux.go",
		Old: "if !s.hub.lost(reg.Process, tell) {", New: "if s.hub.Fired(reg.Process); !s.hub.lost(reg.Process, tell) {",
		Guard: "TestTheEndOfAConnectionIsNoDeath", Want: "the end of a connection is no death"},
	{Rule: "4: and the pidfd's own", File: "proof_linux.go",
		Old: "n > 0 && p[0].Revents&unix.POLLIN != 0", New: "n >= 0",
		Guard: "TestNothingButPOLLINIsADeath", Want: "a process that runs"},
	{Rule: "4: not an error", File: "proof_linux.go",
		Old: "n > 0 && p[0].Revents&unix.POLLIN != 0", New: "n > 0",
		Guard: "TestNothingButPOLLINIsADeath", Want: "POLLHUP"},
	{Rule: "5: a pidfd is kept when its connection ends", File: "server_linux.go",
		Old: "if !s.hub.lost(reg.Process, tell) {", New: "if s.hub.Goodbye(reg.Process); !s.hub.lost(reg.Process, tell) {",
		Guard: "TestAMemberWhoseConnectionHasEndedStillDies", Want: "its pidfd was kept"},
	{Rule: "5: a goodbye on a former connection ends nothing", File: "hub.go",
		Old: "	if h.notify[process] != tell {\n		return false\n	}\n	h.registry", New: "	h.registry",
		Guard: "TestALateGoodbyeEndsNothing", Want: "the member has connected again"},
	{Rule: "13: a restarted sentinel is told again", File: "client.go",
		Old: "		c.drop(false)\n		retry.Reset(c.pause.NextBackOff())\n", New: "		c.drop(false)\n",
		Guard: "TestARefusedMemberTriesAgain", Want: "it will try again"},
	{Rule: "a sentinel that may not know of a command forgets the member", File: "client.go",
		Old: "		c.leave()\n		c.state", New: "		c.drop(false)\n		c.state",
		Guard: "TestGuardWaitsForOneAnswerOnly", Want: "must not release anything while the command runs"},
	{Rule: "the command does not wait for that", File: "client.go",
		Old: "		c.leave()\n		c.state", New: "		c.drop(true)\n		c.state",
		Guard: "TestGuardWaitsForOneAnswerOnly", Want: "it waits for one answer"},
}

func TestKernelRulesAreGuarded(t *testing.T) { mutation.Run(t, kernelRules) }
