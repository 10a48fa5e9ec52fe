package neli_test

import (
	"testing"

	"github.com/goneli/neli/internal/mutation"
)

// The rules of drivers and delivery, and of logs in Kafka that may forget.
var driverMutants = []mutation.Mutant{
	{Rule: "sentinels: Close says goodbye last of all", File: "neli.go",
		Old: "	goodbye := n.set.watched.run()\n", New: "	goodbye := n.set.watched.run()\n	go func() { <-n.closing; goodbye() }()\n",
		Guard: "TestCloseSaysGoodbyeLast", Want: "before it says goodbye"},
	{Rule: "contexts of lost roles end while the barrier is at work", File: "lead.go",
		Old:   "			for _, c := range l.n.core.Peek() {\n				l.cancel(c)\n			}\n",
		Guard: "TestContextsEndWhileTheBarrierIsAtWork", Want: "leadership (fenced|revoked)"},
	{Rule: "Err of a function's context checks the clock", File: "leadership.go",
		Old: "	c.look()\n	return c.Context.Err()\n", New: "	return c.Context.Err()\n",
		Guard: "TestLeadContextAsksTheClock/Err", Want: "FAIL: TestLeadContextAsksTheClock/Err"},
	{Rule: "Done of a function's context checks the clock", File: "leadership.go",
		Old: "	c.look()\n	return c.Context.Done()\n", New: "	return c.Context.Done()\n",
		Guard: "TestLeadContextAsksTheClock/Done", Want: "FAIL: TestLeadContextAsksTheClock/Done "},
	{Rule: "context.Cause of a function's context checks the clock", File: "leadership.go",
		Old: "	c.look()\n	return c.Context.Value(key)\n", New: "	return c.Context.Value(key)\n",
		Guard: "TestLeadContextAsksTheClock/Value", Want: "FAIL: TestLeadContextAsksTheClock/Value "},
	{Rule: "the cause of a context whose term is over is ErrFenced", File: "leadership.go",
		Old: "c.cancel(ErrFenced)", New: "c.cancel(nil)",
		Guard: "TestLeadContextAsksTheClock", Want: "leadership fenced"},
	{Rule: "a context that finds its term over wakes the driver", File: "leadership.go",
		Old: "		c.of.n.core.terms.Ring() // the driver may not have noticed yet\n", New: "",
		Guard: "TestLeadContextAsksTheClock", Want: "the driver has looked, too"},
	{Rule: "a function restarts in a term that goes on", File: "lead.go",
		Old: "		l.resume()\n", New: "",
		Guard: "TestFunctionRestartsInATermThatGoesOn", Want: "deadlock"},
	{Rule: "after a panic, Lead keeps its turn until its functions return", File: "lead.go",
		Old: "		<-l.n.driver\n	}()\n", New: "	}()\n	<-l.n.driver\n",
		Guard: "TestLeadWaitsForFunctionsLeftByAPanic", Want: "two functions work on role 1"},
	{Rule: "a frozen program gets no events", File: "deliver.go",
		Old: "	n.set.frozen.Wait()\n", New: "",
		Package: "./nelitest", Guard: "TestFreezeEndsWithTheProcess", Want: "nobody was told"},
	{Rule: "during a freeze every lease is over", File: "arbiter.go",
		Old: "s.frozen.Clock(clocks.Glance)", New: "clocks.Glance",
		Package: "./nelitest", Guard: "TestFreezeFindsStaleLeaders", Want: "Should be false"},
	{Rule: "the changes left by a barrier that panicked are delivered", File: "deliver.go",
		Old: "	n.owed.Store(len(n.pending) > 0)\n	n.call(e, l)\n", New: "	left := n.pending\n	n.pending = nil\n	n.owed.Store(false)\n	n.call(e, l)\n	n.pending = left\n",
		Guard: "TestPanickingBarrier", Want: "should have 1 item"},
	{Rule: "IsLeaderOf and the arbiter use the same R", File: "neli.go",
		Old: "		n.roles.Store(int64(r)) // under the lock, so that d.Roles and n.roles stay equal when two calls overlap\n", New: "		go n.roles.Store(int64(r))\n",
		Guard: "TestConcurrentSetRolesLeaveOneR", Want: "Not equal"},
	{Rule: "functions of roles that SetRoles removes may finish", File: "leadership.go",
		Old: "	id, _, _, ok := l.n.core.terms.Leads(l.n.units().of(l.Role))\n", New: "	id, _, ok := l.n.term(l.Role)\n",
		Guard: "TestFunctionsOfRemovedRolesMayFinish", Want: "the lease is kept for role|leadership fenced"},
	{Rule: "the deadline has a monotonic reading", File: "deliver.go",
		Old: "time.Now().Add(", New: "time.Unix(0, int64(n.now().Wall)).Add(",
		Guard: "TestDeadlineIsMonotonic", Want: "Not equal"},
	{Rule: "an event has the earliest deadline of its terms", File: "deliver.go",
		Old: "return cmp.Compare(a.Deadline.Mono, b.Deadline.Mono)", New: "return cmp.Compare(0, 0)",
		Guard: "TestRevokedDeadlineIsTheEarliest", Want: "10s|10000000000"},
	{Rule: "a Pulse that returns without its turn is no sign of life", File: "pulser.go",
		Old: "ok && len(n.driver) == 0", New: "ok",
		Guard: "TestPulseDoesNotExcuseAHungTask", Want: "b leads"},
	{Rule: "a Pulse that waits for its turn is no sign of life", File: "pulser.go",
		Old: "	if !n.takeTurn(pulsing, timeout, stop, nil) {\n", New: "	n.heard()\n	if !n.takeTurn(pulsing, timeout, stop, nil) {\n",
		Guard: "TestPulseDoesNotExcuseAHungTask", Want: "it claims nothing while the task hangs"},
	{Rule: "a task that ends its goroutine gives up all roles", File: "pulser.go",
		Old: "		n.stepDown(nil)\n	}()\n", New: "	}()\n",
		Guard: "TestTaskThatEndsItsGoroutine", Want: "Not equal"},
	{Rule: "a permanent failure is reported without waiting for Config.Healthy", File: "neli.go",
		Old: "		close(n.done)\n		n.mu.Unlock()\n		n.stepDowns.Wait()\n		health.stop() //", New: "		n.mu.Unlock()\n		health.stop()\n		close(n.done) //",
		Guard: "TestHungCheckDoesNotHideAFatalError", Want: "nobody was told"},
	{Rule: "beats stop when the application hangs", File: "silence.go",
		Old: "return n.waiting.Load() > 0 ||", New: "return true ||",
		Guard: "TestHungApplicationIsReplaced", Want: "b leads"},
	{Rule: "properties that the clients refuse are reported with the other faults", File: "neli.go",
		Old: "		f.properties(set)\n		return nil, set.secrets.Err(f.err())\n", New: "		return nil, set.secrets.Err(f.err())\n",
		Guard: "TestNewReportsACommonRefusalOnce", Want: "elements differ"},
	{Rule: "a fault names the field that was set", File: "settings.go",
		Old: "	if topicField == \"LeaderTopic\" {\n		f.check(named", New: "	if true {\n		f.check(named",
		Guard: "TestConfigFaultsNameFieldsThatWereSet", Want: "Not equal"},
	{Rule: "client.rack is given to members of a group only", File: "kafka_props.go",
		Old: "groupOnly = []string{\"client.rack\", ", New: "groupOnly = []string{",
		Guard: "TestPropertiesReachTheirClients", Want: `Messages:\s+client\.rack`},
	{Rule: "log lines have group and name", File: "settings.go",
		Old: "\"group\", s.LeaderGroupID, \"name\", s.Name) // so", New: ") // so",
		Guard: "TestLogLinesHaveTheirDataInAttributes", Want: "Not equal"},
	{Rule: "the log names each leader only if there are few roles", File: "leaders.go",
		Old: "roles <= namedRoles {", New: "true {",
		Guard: "TestFollowersOfManyRolesLogNumbers", Want: "Should be empty"},
	{Rule: "a small log delivers every record to a reader that stood still", File: "nelitest/smalllogs.go",
		Old: "	for ; at.next < len(l.records); at.next++ {\n", New: "	for ; at.next < len(l.records); at.next++ {\n		if len(s.ready) > 256 {\n			continue\n		}\n",
		Package: "./nelitest", Guard: "TestSmallLogsContract/a_process_that_stood_still.*", Want: "instead of a record at"},
}

// The rules for application code that blocks, panics or fails.
var applicationMutants = []mutation.Mutant{
	{Rule: "a running barrier proves life", File: "silence.go",
		Old: "n.waiting.Load() > 0 || n.barrierAt.Load() != never64 ||\n", New: "n.waiting.Load() > 0 ||\n",
		Guard: "TestApplicationCodeMayHangPanicOrFail/LeaderAcquired_takes_45_s", Want: "one term, and it lasts"},
	{Rule: "the end of the barrier counts as a pulse", File: "deliver.go",
		Old: "		n.heard() // before the call is marked as over, so that no silence is seen between the two\n", New: "",
		Guard: "TestRunningBarrierCountsAsAlive", Want: "Should be true"},
	{Rule: "a process in a long barrier claims nothing", File: "internal/elector/outside/outside.go",
		Old: " && !set.IsDeaf(now)", New: "",
		Guard: "TestNoRoleIsClaimedWhileTheBarrierRuns", Want: "a claims nothing while it cannot tell"},
	{Rule: "a process in a long barrier gives back unannounced terms", File: "internal/elector/shard.go",
		Old: "		if !s.terms.Told(s.Role(local)) {\n", New: "		if false {\n",
		Guard: "TestNoRoleIsClaimedWhileTheBarrierRuns", Want: "b leads role 1"},
	{Rule: "a member that leads stays in the group while the barrier is at work", File: "internal/elector/others.go",
		Old: "return leads || !n.set.IsDeaf(now)", New: "return !n.set.IsDeaf(now) && (leads || true)",
		Guard: "TestApplicationCodeMayHangPanicOrFail/LeaderAcquired_takes_45_s/assigned.*", Want: "one term, and it lasts"},
	{Rule: "a member that leads nothing leaves the group while the barrier hangs", File: "internal/elector/others.go",
		Old: "return leads || !n.set.IsDeaf(now)", New: "return leads || true",
		Guard: "TestApplicationCodeMayHangPanicOrFail/LeaderFenced_never_returns/assigned.*", Want: "b leads"},
	{Rule: "non-exclusive: a member that leads stays in the group while the barrier is at work", File: "internal/nonexclusive/broadcast.go",
		Old: "(leads || !a.deaf(now))", New: "!a.deaf(now) && (leads || true)",
		Guard: "TestApplicationCodeMayHangPanicOrFail/LeaderAcquired_takes_45_s/non-exclusive.*", Want: "one term, and it lasts"},
	{Rule: "non-exclusive: a member that leads nothing leaves the group while the barrier hangs", File: "internal/nonexclusive/broadcast.go",
		Old: "(leads || !a.deaf(now))", New: "(leads || true)",
		Guard: "TestApplicationCodeMayHangPanicOrFail/LeaderFenced_never_returns/non-exclusive.*", Want: "b leads"},
	{Rule: "a barrier that does not return is reported repeatedly", File: "silence.go",
		Old: "		timer.Reset(after)\n", New: "",
		Guard: "TestApplicationCodeMayHangPanicOrFail/LeaderAcquired_never_returns", Want: `should have 6 item`},
	{Rule: "silence is reported before it costs the roles", File: "silence.go",
		Old: "silent < n.warnAfter() ||", New: "silent < n.set.MaxPulseInterval ||",
		Guard: "TestApplicationCodeMayHangPanicOrFail/the_task_takes_45_s", Want: "Max difference"},
	{Rule: "an error returned after the context has ended does not end Lead", File: "lead.go",
		Old: "err != nil && ctx.Err() != nil {", New: "err != nil && errors.Is(err, ctx.Err()) {",
		Guard: "TestApplicationCodeMayHangPanicOrFail/a_function_of_Lead_reports.*", Want: "a leads again"},
	{Rule: "nothing waits for the log's handler", File: "internal/logqueue/logqueue.go",
		Old: "	h.q.push(line{h, ctx, r})\n	return nil\n", New: "	return h.deliver(ctx, r)\n",
		Package: "./internal/logqueue", Guard: "TestBlockedHandlerDelaysNobody", Want: "deadlock"},
	{Rule: "nothing waits for Enabled of the log's handler", File: "internal/logqueue/logqueue.go",
		Old: "{ return h.q.enabled(level) }", New: "{ return h.resolve().Enabled(context.Background(), level) }",
		Package: "./internal/logqueue", Guard: "TestBlockedEnabledDelaysNobody", Want: "deadlock"},
	{Rule: "a blocked handler's queue is bounded", File: "internal/logqueue/logqueue.go",
		Old: "len(q.lines) >= room", New: "len(q.lines) >= 9*room",
		Package: "./internal/logqueue", Guard: "TestBlockedHandlerDelaysNobody", Want: "Not equal"},
	{Rule: "lost lines are reported", File: "internal/logqueue/logqueue.go",
		Old: "	if len(q.lines) == 0 {\n		q.report()\n	}\n", New: "",
		Package: "./internal/logqueue", Guard: "TestBlockedHandlerDelaysNobody", Want: "should have"},
	{Rule: "no report is tried while the handler fails", File: "internal/logqueue/logqueue.go",
		Old: "q.untold == 0 || q.failing", New: "q.untold == 0 || q.lost > 100",
		Package: "./internal/logqueue", Guard: "TestLinesLostByTheHandlerAreReported/error", Want: "no report is tried"},
	{Rule: "a handler that ends its goroutine ends nothing else", File: "internal/logqueue/logqueue.go",
		Old: "		if !over { // the handler has ended this goroutine\n", New: "		if over {\n",
		Package: "./internal/logqueue", Guard: "TestLinesLostByTheHandlerAreReported/goexit", Want: "deadlock"},
	{Rule: "Close waits for the last lines, within its bound", File: "close.go",
		Old: "!n.set.lines.Flush(timer.C)", New: "false",
		Guard: "TestApplicationCodeMayHangPanicOrFail/the_log's_handler_never_returns/open.*", Want: "An error is expected"},
	{Rule: "beats do not wait for Preference", File: "internal/elector/prefer/prefer.go",
		Old: "time.NewTimer(limit)", New: "time.NewTimer(time.Hour)",
		Guard: "TestApplicationCodeMayHangPanicOrFail/Preference_never_returns", Want: "does not lead role 0"},
	{Rule: "a call that waits long for its turn is reported", File: "pulser.go",
		Old: "	defer n.waitsForTurn(call)()\n", New: "",
		Guard: "TestCallThatWaitsForItsTurnIsReported", Want: "once"},
}

func TestApplicationRulesAreGuarded(t *testing.T) { mutation.Run(t, applicationMutants) }

func TestDriverRulesAreGuarded(t *testing.T) { mutation.Run(t, driverMutants) }

const (
	twoLeaders = `is led by|after token|is not a valid claim of its own`
	leadsOn    = `has been told of its end|was told that it is fenced|while it had token|was told of the end|` +
		`was never told of the end|has stepped down and leads|the witness knows of nobody`
)

// simulatorRules are the rules of whole processes. If any one is removed, the simulation finds the
// fault that it prevents.
var simulatorRules = []mutation.Mutant{
	// Rules of the lease, as the whole library shows them.
	{Rule: "a claimant waits for silence", File: "internal/lease/lease.go",
		Old: "at = h.freeAt(l.rules.Rho)", New: "at = h.heard.Raw", Want: twoLeaders},
	{Rule: "the wait follows the T in the holder's Claim", File: "internal/lease/fold.go",
		Old: "T: r.T, Last: o}", New: "T: r.T / 2, Last: o}", Want: twoLeaders + `|Watch says|the witness knows of nobody`},
	{Rule: "Beats restart the wait", File: "internal/lease/fold.go",
		Old: "s.Last, s.heard = o, now", New: "s.Last = o", Want: twoLeaders + `|has read of the holder|Watch says`},
	{Rule: "the wait includes ρ", File: "internal/clock/clock.go",
		Old: "time.Duration(math.Ceil(float64(t)*(1+rho)/(1-rho))) + margin", New: "t + margin", Want: twoLeaders},
	{Rule: "a holder stops at T(1−σ)", File: "internal/clock/clock.go",
		Old: "return t - t/10", New: "return t", Want: twoLeaders},
	{Rule: "a holder uses the longer of both clocks' ages", File: "internal/clock/clock.go",
		Old: "age := max(t.Mono.Sub(s.Mono), t.Wall.Sub(s.Wall))", New: "age := t.Mono.Sub(s.Mono)", Want: twoLeaders},
	{Rule: "a claim must have read the holder's newest evidence", File: "internal/lease/fold.go",
		Old: "if h := f.holderOf(role); h == nil || r.Read >= h.Last {", New: "if true {", Want: twoLeaders + `|folds differ`},
	{Rule: "records of another log are skipped", File: "internal/lease/codec.go",
		Old: "case w.Log != c.Log:", New: "case false:", Want: twoLeaders + `|folds differ|has read of the holder`},
	{Rule: "the stamp is taken before the send, not at the receipt", File: "internal/lease/consume.go",
		Old: "e.Stamp = l.own.back(r.Seq, now, l.rules.T)", New: "l.own.back(r.Seq, now, l.rules.T)\n\t\te.Stamp = now",
		Want: twoLeaders + `|the witness knows of nobody`}, // else it leads on after its lease has ended for readers

	// What the application is told, and what it may ask.
	{Rule: "IsLeader looks at the clock", File: "internal/term/published.go",
		Old: "young := v != nil && t.young(at, *v)", New: "young := v != nil",
		Want: twoLeaders + `|` + leadsOn + `|its application has hung`},
	{Rule: "terms that end are removed from the term table", File: "internal/elector/leases/own.go",
		Old: "	hs.table.End(hs.numbering.Units(roles), why, false)\n", New: "",
		Want: twoLeaders + `|` + leadsOn},
	{Rule: "the application finishes before the Release is sent", File: "internal/elector/release.go",
		Old:  "	if now.Mono >= h.ReleaseAt(takes) {\n		untold = append(untold, h.Sorted(false)...)\n",
		New:  "	if h.IsAsked() {\n		untold = append(untold, h.Sorted(true)...)\n",
		Want: `while its work goes on`},
	{Rule: "the clock is read after the record has arrived", File: "internal/elector/loop.go",
		Old:  "	now := e.now()\n	input(e.node, now)\n",
		New:  "	now := e.now()\n	if at := now.Mono; e.scheduled != 0 && e.scheduled < at {\n		now = now.Add(e.scheduled.Sub(at))\n	}\n	input(e.node, now)\n",
		Want: twoLeaders + `|has read of the holder`},
	{Rule: "Beats stop when the application hangs", File: "internal/elector/shard.go",
		Old: "c.Link.Beating(now, s.set.T) || !s.set.Alive(now) {", New: "c.Link.Beating(now, s.set.T) {", Want: `its application has hung`},
	{Rule: "a Config.Healthy that hangs counts as an error", File: "health.go",
		Old: "		judge(errHealthHangs)\n", New: "", Want: `unwell for`},

	// What the application and other processes may want.
	{Rule: "an unhealthy process claims nothing and gives up its roles", File: "internal/elector/outside/outside.go",
		Old: "!d.Closing && !d.Unhealthy && now", New: "!d.Closing && now", Want: `unwell for`},
	{Rule: "a process that has stepped down claims nothing for a while", File: "internal/elector/outside/outside.go",
		Old: "!d.Unhealthy && now.Mono >= d.Away", New: "!d.Unhealthy", Want: `stepped down`},
	{Rule: "Transfer succeeds only if the chosen member holds the role", File: "internal/elector/balance/mover.go",
		Old: "case f.Held && !f.Ours && f.By == to:", New: "case f.Held && !f.Ours:", Want: `and it does not`},

	{Rule: "a process that refuses a request keeps its roles", File: "request.go",
		Old: "if err := n.decide(r); err != nil {", New: "if err := n.decide(r); err != nil && r.RequesterID == \"\" {",
		Want: `gives something up though nobody let it`},

	// Observers, and what they report of holders.
	{Rule: "an observer writes nothing", File: "internal/elector/others.go",
		Old: "if n.set.Observer || a.Over() {", New: "if a.Over() {", Want: `the witness writes`},
	{Rule: "an observer does not wake up for announcements", File: "internal/elector/node.go",
		Old: "	if !n.set.Observer && !n.announcer.Over() {\n		next", New: "	{\n		next", Want: `has looked at its clock`},
	{Rule: "Holder reports the age of the record", File: "discovery.go",
		Old: "Age: now.Age(g.Heard)}", New: "Age: now.Age(g.Since)}", Want: `has read of the holder`},
	{Rule: "Watch yields a silent holder that is heard again", File: "internal/elector/vacancy/claims.go",
		Old: "		delete(c.silent, id)\n		c.turns++\n", New: "		delete(c.silent, id)\n", Want: `Watch says that`},
}

// smallRules are the additional rules of whole processes on small logs.
var smallRules = []mutation.Mutant{
	{Rule: "small logs: a term needs a majority, not any log", File: "internal/quorum/quorum.go",
		Old: "list{majority: len(all)/2 + 1}", New: "list{majority: 1 + 0*len(all)}", Want: twoLeaders},
	{Rule: "small logs: a majority is more than half", File: "internal/quorum/quorum.go",
		Old: "list{majority: len(all)/2 + 1}", New: "list{majority: max(1, len(all)/2)}", Want: twoLeaders},
	{Rule: "small logs: a claimant waits after a log's id changes", File: "internal/quorum/quorum.go",
		Old: "	v.lease.Begin(s, false, now)\n", New: "	v.lease.Begin(s, false, now.Add(-2*q.rules.T))\n", Want: twoLeaders},
	{Rule: "small logs: a gap in the records counts as a loss", File: "internal/quorum/quorum.go",
		Old: "Longest: rules.T, Dense: true})})", New: "Longest: rules.T, Dense: false})})", Want: twoLeaders},
	{Rule: "small logs: a session that has ended sustains nothing", File: "internal/quorum/quorum.go",
		Old: "	q.dropAll(log)\n", New: "", Want: twoLeaders + `|not all roles are led`},
	{Rule: "small logs: the ballot rises above the token of a term that has ended", File: "internal/quorum/units.go",
		Old: "	q.lift(u.token + 1)\n", New: "", Want: twoLeaders + `|and was`},
	{Rule: "small logs: the wait includes ρ", File: "internal/clock/clock.go",
		Old: "time.Duration(math.Ceil(float64(t)*(1+rho)/(1-rho))) + margin", New: "t + margin", Want: twoLeaders},
	{Rule: "small logs: a claimant waits no longer than W(T)", File: "internal/clock/clock.go",
		Old: "return time.Duration(math.Ceil(float64(t)*(1+rho)/(1-rho))) + margin", New: "return 12*time.Duration(math.Ceil(float64(t)*(1+rho)/(1-rho))) + margin", Want: `not all roles are led`},
	{Rule: "small logs: a claim must have read the holder's newest evidence", File: "internal/lease/fold.go",
		Old: "if h := f.holderOf(role); h == nil || r.Read >= h.Last {", New: "if true {", Want: twoLeaders},
	{Rule: "small logs: a term follows the line of the logs that sustain it", File: "internal/elector/leases/own.go",
		Old: "		hs.table.Shift(units, line)\n", New: "		_, _ = units, line\n", Want: `not all roles are led`},
}

// sentinelRules are the rules of whole processes beside sentinels. smallSentinelRules are those on small logs.
var (
	sentinelRules = []mutation.Mutant{
		{Rule: "sentinels: only the kernel's report proves a death, and a suspended process is alive", File: "internal/sim/sentinels.go",
			Old: "if s == nil || !ended {", New: "if s == nil {", Want: twoLeaders + `|which lives`},
		{Rule: "sentinels: only roles of dead members are released", File: "internal/sentinel/watch.go",
			Old: buriedOnly, New: buriedAll, Want: twoLeaders + `|which lives`},
	}
	smallSentinelRules = []mutation.Mutant{
		{Rule: "sentinels on small logs: only roles of dead members are released", File: "internal/sentinel/watch.go",
			Old: buriedOnly, New: buriedAll, Want: twoLeaders},
	}
)

const (
	buriedOnly = "		if d == nil {\n			continue\n		}\n		var due"
	buriedAll  = "		if d == nil {\n			d = &death{Death: Death{T: w.rules.T}}\n		}\n		var due"
)

// needed runs the mutants with one guard on a number of seeds, the same for each mutant.
func needed(t *testing.T, rules []mutation.Mutant, guard string, seeds int) {
	t.Helper()
	for i := range rules {
		rules[i].Guard, rules[i].Seeds = guard, seeds
	}
	mutation.Run(t, rules)
}

func TestSentinelSimulatorNeedsEveryRule(t *testing.T) {
	needed(t, sentinelRules, "TestSentinelSimulation", 40)
}

func TestSmallSentinelSimulatorNeedsEveryRule(t *testing.T) {
	needed(t, smallSentinelRules, "TestSmallSentinelSimulation", 40)
}

func TestSmallSimulatorNeedsEveryRule(t *testing.T) {
	needed(t, smallRules, "TestSmallSimulation", 250)
}

func TestSimulatorNeedsEveryRule(t *testing.T) {
	needed(t, simulatorRules, "TestSimulation", 400)
}
