package nelicron

import (
	"testing"

	"github.com/goneli/neli/internal/mutation"
)

// rules are the rules that keep two runs of a job apart, and the tests that notice if one is removed.
var rules = []mutation.Mutant{
	{Rule: "a hand-over waits for the runs", File: "runs.go",
		Old: "	<-t.idle\n", New: "",
		Guard: "TestHandOverWaitsForTheRun/Locker_Close", Want: "the hand-over waits for the run|the run was not cut off"},
	{Rule: "a term that has ended is not used again", File: "runs.go",
		Old: "	delete(j.terms, l.Role)\n", New: "",
		Guard: "TestNoRunBeginsInATermThatIsAboutToEnd", Want: "close of closed channel"},
	{Rule: "a job is locked while it runs", File: "runs.go",
		Old: "	case j.runs[name] != nil:\n", New: "	case false:\n",
		Guard: "TestTickIsMissedWhileARunIsAtWork/Locker", Want: "runs overlap"},
	{Rule: "the Locker checks the clock before it lets a job start", File: "runs.go",
		Old: "	if t.ctx.Err() != nil {\n		r.end()", New: "	if false {\n		r.end()",
		Guard: "TestJobIsNotStartedAfterASuspension", Want: "the lock is given"},
	{Rule: "the Elector checks the clock before it lets a job start", File: "jobs.go",
		Old: "	if t == nil || t.ctx.Err() != nil {\n", New: "	if t == nil {\n",
		Guard: "TestJobIsNotStartedAfterASuspension", Want: "IsLeader is nil"},
	{Rule: "a task checks the clock before it begins", File: "jobs.go",
		Old: "		if t.ctx.Err() != nil {\n			return", New: "		if false {\n			return",
		Guard: "TestSuspensionBetweenTheLockAndTheTask", Want: "the job runs though the lease is over"},
	{Rule: "a task without a lock is not run", File: "runs.go",
		Old: "	if r == nil || r.taken {\n		return nil, nil, ErrNoLock", New: "	if r == nil {\n		return &term{ctx: context.Background()}, func() {}, nil\n	}\n	if r.taken {\n		return nil, nil, ErrNoLock",
		Guard: "TestTaskWithoutALockDoesNotRun/.*", Want: "panic: runs"},
	{Rule: "a job's name decides its role", File: "jobs.go",
		Old: "neli.Slot(key, g.j.roles)", New: "neli.Slot(key+g.j.n.Config().Name, g.j.roles)",
		Guard: "TestSimulation/Locker", Want: "runs of a job overlap", Seeds: 2},
	{Rule: "the Locker and the Elector exclude each other", File: "jobs.go",
		Old: "j.kind != none && (", New: "false && (",
		Guard: "TestInvalidUsesAreRefused", Want: "take one of them"},
}

func TestRulesAreGuarded(t *testing.T) { mutation.Run(t, rules) }
