// Package nelicron gives the jobs of gocron to one of several instances: each instance has
// a scheduler with all jobs, and package neli decides which of them runs a job. There is no
// lock for each run, so nothing is written when a job is due.
//
//	n, err := neli.New(neli.Config{LeaderGroupID: "billing", Roles: 64, DrainTimeout: 5 * time.Minute})
//	jobs, err := nelicron.New(n)
//	locker, err := jobs.Locker()
//	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//	_, err = s.NewJob(gocron.CronJob("0 6 * * *", false), jobs.Task("invoices", send), gocron.WithName("invoices"))
//	s.Start()
//	err = jobs.Run(ctx) // leads until ctx is done and the last job has ended
//	err = errors.Join(err, s.Shutdown(), n.Close())
//
// [Jobs.Locker] spreads the jobs over the instances: a job belongs to the leader of the role
// neli.Slot(name, R). Take many more roles than instances, the same number everywhere and
// for ever: an instance with another R puts jobs elsewhere, and two may run at once.
// [Jobs.Elector] keeps all jobs together on the leader of one role. gocron ignores Lockers
// where there is an Elector, so one Jobs gives out only one of them.
//
// # Runs do not overlap
//
// Of one job, by its name, no two runs are at work at once, on any instances, if
//
//   - it ends within Config.DrainTimeout when the role is to be handed over: the hand-over
//     waits for it that long, no longer;
//   - it asks ctx or the Leadership that [Jobs.Task] gives to it before each thing it does. It
//     must stop when the lease is lost, which a suspended or cut-off process learns
//     by asking. What must be safe between the question and the deed carries the Token
//     (package fence).
//
// A task that is made by gocron.NewTask has neither, and may go on beside its
// successor once the lease is lost. With a Locker a hand-over waits for it all the same;
// with an Elector it does not, as gocron tells an Elector of no end.
//
// A job needs a name of its own (gocron.WithName). gocron's default is the name of the
// function, which several jobs may share: then one of them runs at a time, and the others
// miss their tick.
//
// # Which ticks are missed, which come twice
//
// Each scheduler reckons by its own clock when a job is due, and an instance that does not
// lead the job then skips that tick. So:
//
//   - A tick is missed, and not made up for, if nobody leads the job when it is due: for
//     Config.HeartbeatTimeout and a bit after a crash, and in a hand-over from when the
//     former leader is told to finish until its runs on the role have ended and the
//     next one leads, a round trip later. So is a tick that comes while the
//     previous run of its job is still at work, and one that falls to the former leader's
//     clock too late and to the next one's too early.
//   - A tick comes twice, one run after the other, if the former leader runs it, hands
//     over, and the next one's clock is so far behind that the tick is still to come there.
//     That takes clocks that differ by more than the run and the hand-over last.
//   - A run that is cut off by a crash, or stops because the lease was lost, is not
//     repeated before the next tick.
//   - gocron.DurationJob counts from each scheduler's start, so across a hand-over the
//     interval is anything from nothing to twice its length. CronJob, DailyJob and so on,
//     and WithStartAt, give all instances the same ticks.
//
// A job for which every tick counts writes down, guarded by the Token, up to when it has
// done its work, and begins there.
package nelicron
