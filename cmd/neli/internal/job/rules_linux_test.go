package job

import (
	"testing"

	"github.com/goneli/neli/internal/mutation"
)

// mutants remove the elector's rules for a command. The rules of its guards are in package guard.
var mutants = []mutation.Mutant{
	{Rule: "orphans are reaped", File: "job_linux.go",
		Old: "	defer guard.Reap(k.has)()\n", New: "",
		Guard: "TestOrphansAreReaped", Want: "the orphan is reaped"},
	{Rule: "a sentinel is told of a command before it starts", File: "term_linux.go",
		Old: "		file, over := c.Guard()\n", New: "		file, over := (*os.File)(nil), func() {}\n",
		Guard: "TestSentinelIsToldOfACommand", Want: "the sentinel knows of the command"},
	{Rule: "a sentinel is told when nothing is left of a command", File: "term_linux.go",
		Old: "		defer over()\n", New: "		over()\n",
		Guard: "TestSentinelIsToldOfACommand", Want: "the command runs yet"},
	{Rule: "after a signal to end, --keep starts no further run", File: "job_linux.go",
		Old: "c.outcome == nil || c.outcome.again && !r.again", New: "c.outcome == nil",
		Guard: "TestSignalToEndAfterTheCommandPreventsAnotherRun", Want: "it does not contend again"},
	{Rule: "a stopped command is continued when it has to end", File: "child_linux.go",
		Old: "	c.signal(unix.SIGCONT)\n", New: "",
		Guard: "TestStoppedCommandIsContinuedToFinish", Want: "it has not finished"},
	{Rule: "the command has no terminal that could stop it", File: "child_linux.go",
		Old: "SysProcAttr{Setsid: true}", New: "SysProcAttr{Setpgid: true}",
		Guard: "TestCommandRunsInASessionWithoutTerminal", Want: "the session of neli"},
	{Rule: "an order is written at once or dropped", File: "child_linux.go",
		Old:   "	_ = pipe.Write(func(fd uintptr) (done bool) {\n		_, _ = unix.Write(int(fd), o) // whole or not at all\n		return true\n",
		New:   "	_ = orders.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))\n	_ = pipe.Write(func(fd uintptr) (done bool) {\n		n, _ := unix.Write(int(fd), o)\n		return n > 0\n",
		Guard: "TestOrderIsWrittenWholeOrNotAtAll", Want: "it waits for room"},
}

func TestRulesAreGuarded(t *testing.T) { mutation.Run(t, mutants) }
