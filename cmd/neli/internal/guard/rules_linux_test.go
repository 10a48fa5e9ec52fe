package guard

import (
	"testing"

	"github.com/goneli/neli/internal/mutation"
)

// mutants break the rules by which a command never outlives the lease.
var mutants = []mutation.Mutant{
	{Rule: "the command is killed when the deadline has passed", File: "guard_linux.go",
		Old: "		case Now() >= deadline:\n", New: "		case Now() >= deadline+time.Hour:\n",
		Guard: "TestRenewedDeadline", Want: "the guard tells how it ended"},
	{Rule: "an older deadline does not shorten the lease", File: "orders_linux.go",
		Old: "max(o.deadline, time.Duration(order.value))", New: "time.Duration(order.value)",
		Guard: "TestLatestDeadlineCounts", Want: "an older deadline"},
	{Rule: "a newer deadline is heeded", File: "guard_linux.go",
		Old: "case t.deadline != deadline:", New: "case t.deadline < 0:",
		Guard: "TestRenewedDeadline", Want: "it is renewed"},
	{Rule: "the command is killed when the elector has gone", File: "guard_linux.go",
		Old: "			late, news = true, nil\n			g.kill()\n", New: "			news = nil\n",
		Guard: "TestCommandDiesWithoutItsElector", Want: "the guard tells how it ended"},
	{Rule: "nothing is started when the lease is over", File: "guard_linux.go",
		Old: "return t, t.deadline > Now() && !t.gone", New: "return t, !t.gone",
		Guard: "TestNothingStartsAfterTheLeaseIsOver", Want: "nothing was started"},
	{Rule: "processes that the command leaves behind are killed", File: "guard_linux.go",
		Old: "		case <-ended:\n			g.kill()\n", New: "		case <-ended:\n",
		Guard: "TestCommandsGroupIsDeadWhenTheEndIsReported", Want: "the guard tells how it ended"},
	{Rule: "the command does not start if its guard ends before releasing it", File: "guard_linux.go",
		Old: "		return codeOwn // the guard has gone\n", New: "",
		Guard: "TestGuardReportsTheGroupBeforeItStartsTheCommand", Want: "nothing was started"},
	{Rule: "the command gets none of the elector's files", File: "guard_linux.go",
		Old: "err := closeOnExec(firstFile); err != nil", New: "err := error(nil); err != nil",
		Guard: "TestCommandGetsOnlyStandardFiles", Want: "Should be zero"},
	{Rule: "the command gets none of the elector's files where close_range is refused", File: "files_linux.go",
		Old: "each := closeEachOnExec(\"/proc/self/fd\", first); each != nil", New: "each := error(nil); each != nil",
		Guard: "TestFilesAreMarkedOneByOneWithoutCloseRange", Want: "Should be zero"},
	{Rule: "a command that would get the elector's files is not started", File: "guard_linux.go",
		Old: "err := closeOnExec(firstFile); err != nil", New: "err := closeOnExec(firstFile); err != nil && reports == nil",
		Guard: "TestNothingStartsIfFilesCannotBeMarked", Want: "it says why nothing was started"},
	{Rule: "the kernel kills the command when the guard dies", File: "guard_linux.go",
		Old: "		stillDieWithParent()\n", New: "",
		Guard: "TestCommandDiesWithItsGuardWhicheverThreadExecutedIt", Want: "the command is dead"},
	{Rule: "the kernel kills the command when the guard dies before the command runs", File: "files_linux.go",
		Old: "	attr.Pdeathsig = syscall.SIGKILL\n", New: "",
		Guard: "TestGuardKilledBeforeTheCommandRuns", Want: "what would become the command is dead"},
	{Rule: "a signal to all processes of a service does not end the guard", File: "guard_linux.go",
		Old: "NotIgnored(unix.SIGTERM, ", New: "NotIgnored(",
		Guard: "TestCommandDiesWithItsGuard", Want: "what a supervisor sends"},
	{Rule: "a broken standard error does not end the guard", File: "guard_linux.go",
		Old: "unix.SIGPIPE, unix.SIGXFSZ)", New: "unix.SIGXFSZ)",
		Guard: "TestGuardGoesOnIfTroubleCannotBeReported", Want: "Condition never satisfied"},
	{Rule: "deadlines use the clock that counts suspensions", File: "files_linux.go",
		Old: "unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)", New: "unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)",
		Guard: "TestClockCountsSuspensions", Want: "time is told by CLOCK_BOOTTIME"},
	{Rule: "the alarm uses the clock that counts suspensions", File: "files_linux.go",
		Old: "unix.TimerfdCreate(unix.CLOCK_BOOTTIME, ", New: "unix.TimerfdCreate(unix.CLOCK_MONOTONIC, ",
		Guard: "TestClockCountsSuspensions", Want: "the alarm goes by CLOCK_BOOTTIME"},
	{Rule: "the group is reported before the command is released", File: "guard_linux.go",
		Old: "	_ = Report{Group: g.group}.write(reports)\n	release()\n", New: "	release()\n	_ = Report{Group: g.group}.write(reports)\n",
		Guard: "TestCommandWaitsForTheReport", Want: "the command runs before its group was told of"},
	{Rule: "after a stop, the guard reads newer orders first", File: "orders_linux.go",
		Old: "	o.read(0)\n", New: "",
		Guard: "TestAStoppedGuardHeedsNewerOrdersFirst", Want: "the lease was renewed"},
	{Rule: "the guard reports to the sentinel only when nothing is left", File: "guard_linux.go",
		Old: "	code := g.watch(first)\n	g.clear(told)\n", New: "	g.clear(told)\n	code := g.watch(first)\n",
		Guard: "TestGuardReportsToTheSentinelWhenNothingIsLeft", Want: "the command runs yet"},
	{Rule: "the guard reports to the sentinel", File: "guard_linux.go",
		Old: "	_ = told.Say() // without it", New: "	// without it",
		Guard: "TestGuardReportsToTheSentinelWhenNothingIsLeft", Want: "clear"},
	{Rule: "the guard does not report to the sentinel while the cgroup may not be empty", File: "guard_linux.go",
		Old: "if told == nil || g.cgroup.Empty() != nil {", New: "if told == nil {",
		Guard: "TestGuardReportsNothingWhileProcessesMayBeLeft", Want: "something may be left in the cgroup"},
	{Rule: "the guard reports to the sentinel if nothing was started", File: "guard_linux.go",
		Old: "		_ = told.Say() // nothing was started\n", New: "",
		Guard: "TestGuardThatStartsNothingReportsToTheSentinel", Want: "nothing was started"},
	{Rule: "orphans are reaped", File: "reap_linux.go",
		Old: "			reapZombies(spare)\n", New: "",
		Guard: "TestOrphansAreReaped", Want: "the orphan is reaped"},
}

func TestRulesAreGuarded(t *testing.T) { mutation.Run(t, mutants) }

// cgroupMutants break the rules by which a command cannot escape through its cgroup.
var cgroupMutants = []mutation.Mutant{
	{Rule: "the second guard kills the cgroup when the elector has gone", File: "second_linux.go",
		Old: "			if c.Empty() != nil {\n", New: "			if c == nil {\n",
		Guard: "TestSecondGuardKillsTheCgroup/elector_gone", Want: "the second guard kills"},
	{Rule: "the command is moved into its cgroup before it is released", File: "guard_linux.go",
		Old:   "	g.enclose()\n	_ = Report{Group: g.group}.write(reports)\n	release()\n",
		New:   "	_ = Report{Group: g.group}.write(reports)\n	release()\n	g.enclose()\n",
		Guard: "TestCommandIsInItsCgroupBeforeItIsReleased", Want: "the command is in its cgroup before it is released"},
	{Rule: "a process without its main thread counts as running", File: "reap_linux.go",
		Old: "return s.threads != 1 || s.state", New: "return s.state",
		Guard: "TestProcessWithoutItsMainThreadCountsAsRunning", Want: "it runs in its cgroup"},
	// This mutant is safe to run: its shared lock fails on cgroups that other programs have locked, so it
	// can only harm the test's own.
	{Rule: "the cgroup of a running neli is not touched", File: "cgroup_linux.go",
		Old: "unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)", New: "unix.Flock(int(dir.Fd()), unix.LOCK_SH|unix.LOCK_NB)",
		Guard: "TestLeftoversAreRemoved", Want: "a cgroup that is in use is left alone"},
}

func TestCgroupRulesAreGuarded(t *testing.T) {
	newCgroup(t) // without one the guards of these rules are skipped
	mutation.Run(t, cgroupMutants)
}
