// Package nelicron runs each job of gocron on one of several instances. Each instance has a scheduler with
// all jobs, and package neli decides which instance runs a job. There is no lock for each run, so nothing is
// written when a job is due.
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
// neli.Slot(name, R). Use many more roles than instances, the same number on all instances, and never change
// it: an instance with another R maps jobs to other roles, and two may run at once. [Jobs.Elector] keeps all
// jobs together on the leader of one role. gocron ignores the Locker of a scheduler that has an Elector, so a
// Jobs provides only one of them.
//
// # Runs do not overlap
//
// No two runs of a job, identified by its name, overlap on any instances if
//
//   - the job ends within Config.DrainTimeout when its role must be handed over: the hand-over waits for it
//     that long, and no longer;
//   - the job checks ctx or the Leadership that [Jobs.Task] passes to it before each thing it does. It must
//     stop when the lease is lost, and a suspended process or one that is cut off learns this only by the
//     check. An action that must be safe even if the process is suspended right after the check needs the
//     Token (package fence).
//
// A task made by gocron.NewTask cannot check, and may run beside its successor after the lease is lost. With
// a Locker a hand-over waits for it nevertheless. With an Elector it does not, since gocron does not tell an
// Elector when a run ends.
//
// Each job needs a name of its own (gocron.WithName). gocron's default is the name of the function, which
// several jobs may share: then only one of them runs at a time, and the others miss their tick.
//
// # Which ticks are missed, and which run twice
//
// Each scheduler decides by its own clock when a job is due. An instance that does not lead the job at that
// time skips the tick. So:
//
//   - A tick is missed, and not made up for, if no instance leads the job when it is due. After a crash
//     nobody leads for up to about Config.HeartbeatTimeout. In a hand-over no run begins from when
//     the former leader is told to finish until its runs on the role have ended and the next instance leads,
//     a round trip later. A tick is also missed if the previous run of its job is still running, or if, during
//     a hand-over, it comes too late by the former leader's clock and too early by the next one's.
//   - A tick runs twice, one run after the other, if the former leader runs it and hands over, and the next
//     leader's clock is so far behind that the tick is still to come. The clocks must differ by more than the
//     duration of the run and the hand-over.
//   - A run that a crash cut off, or that stopped since the lease was lost, is not repeated before the next
//     tick.
//   - gocron.DurationJob counts from each scheduler's start, so across a hand-over the interval is between
//     zero and twice its length. CronJob, DailyJob and so on, and WithStartAt, give all instances the same
//     ticks if all schedulers have the same time zone: gocron takes the instance's, so set it with
//     gocron.WithLocation.
//   - In a time zone with daylight saving time, the ticks of a CronJob in the hour that is left out in spring
//     are missed. Those in the hour that comes twice in autumn may run twice, for example if another instance
//     starts in between. Use time.UTC, or have no ticks in these hours.
//   - gocron waits for a tick with a timer. If meanwhile the instance's clock is set, or its machine is
//     suspended, the tick comes at another time by the clock, as if the clocks of the instances differed by
//     the same amount.
//
// If every tick counts, let the job record, protected by the Token, up to which time it has done its work,
// and continue from there.
package nelicron
