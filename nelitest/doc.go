// Package nelitest is a Kafka in memory: a [Broker] with topics, consumer groups
// and clients behind the seam of package neli ([kafka.Provider]), for tests of code
// that depends on leadership, and of the library itself. It cuts members off,
// stops them, delays and duplicates what they write, takes partitions from them,
// loses records; all that leadership must survive, on command.
//
//	b := nelitest.NewBroker(nelitest.Options{})
//	n, err := neli.New(neli.Config{Provider: b.Provider("alice")})
//	…
//	b.CutOff("alice", nelitest.All)
//
//	 member "alice"                                   Broker
//	┌──────────────────────┐                ┌───────────────────────────────┐
//	│ Producer ── Append ──┼── Appends ────▶│ topic: partition 0  ▭▭▭▭▭▭    │
//	│        report(err) ◀─┼──── Acks ──────│        partition 1  ▭▭▭       │
//	│ LogReader.Poll ◀─────┼──── Reads ─────│                               │
//	│ GroupConsumer ───────┼──── Group ────▶│ coordinator: sessions, rounds │
//	│ Admin ───────────────┼──── Admin ────▶│ topics, offsets               │
//	└──────────────────────┘                └───────────────────────────────┘
//	  Suspend Freeze           CutOff         Stop Start Rebalance Truncate
//	  Resume Kill              Delay …        DeleteTopic Inject …
//	                                          StopBroker …
//
// Routing to the leader is tested in the same way: a Neli with [neli.Config.Observer]
// set, as one more member, tells by [neli.Neli.Holder] and [neli.Neli.Watch] who
// leads, and, cut off, what it last knew.
//
// Faults are addressed to members, by the names given to [Broker.Provider], before
// or after a member has clients. They last until they are taken back.
//
// # A process that wakes
//
// A process may be suspended at any line: by SIGSTOP, a debugger, a laptop's lid, a machine
// that swaps. It wakes when another one leads, and goes on with that line before anything
// tells it. Whether a program bears that is seen with [Broker.Freeze]:
//
//	time.Sleep(time.Minute)      // alice works
//	b.Freeze("alice")            // what she does from now on she would do after she wakes
//	time.Sleep(10 * time.Second) // bob leads
//	journal.expect("bob works")  // and alice has done nothing
//	b.Resume("alice")            // now she is told
//
// A loop that asks the context of Lead, IsLeader or Leadership.Valid after each wait passes.
// One that only waits in a select, or believes a flag that the barrier has set, does not:
// see user_test.go and freeze_test.go in this directory.
//
// # Time
//
// The package uses the runtime's clock only, so it runs in real time and, in a
// bubble of testing/synctest, in simulated time: there a minute of a small cluster
// takes a few milliseconds, and everything that it waits for is a wait in the
// sense of that package. The broker has no goroutine that must be stopped.
//
// In a bubble a run is repeatable: each record, report and return of a Poll
// happens at an instant of its own, in an order that depends on [Options.Seed] and
// on times but not on how the runtime runs goroutines. What the program under test
// does by itself at one and the same instant, such as timers of its own that
// coincide, is not ordered thereby.
//
// # What is like Kafka
//
//   - Logs are totally ordered by partition. A record is readable as soon as all
//     in-sync replicas have it, at once unless [Broker.Lag] says otherwise; whether it was
//     acknowledged is another matter. What they do not have is lost, or is not, when
//     another broker becomes the leader ([Broker.ChangeLeader]).
//   - Offsets increase, and need not be consecutive; a log may end beyond its last
//     record ([Broker.Skip]).
//   - A reader finds by leader epochs that a log has lost what it has read
//     ([Broker.Truncate]), though it may have grown again.
//   - An append that fails may be in the log nevertheless.
//   - Readers and producers go by the name of a topic. They do not notice that it
//     was deleted and created again; [kafka.Admin] shows another TopicID.
//   - A consumer group rebalances by the classic protocol: members learn of it by
//     heartbeat and join again from within Poll, cooperative ones keep what stays
//     with them, and what moves is revoked in a first round and assigned in a
//     second. Those that do not poll are left out after max.poll.interval.ms,
//     those that are not heard after session.timeout.ms.
//   - Static members (group.instance.id) keep their place and fence each other.
//
// Properties that are heeded, with librdkafka's defaults but for the strategy:
// message.timeout.ms, group.id, group.instance.id, session.timeout.ms,
// heartbeat.interval.ms, max.poll.interval.ms, auto.offset.reset (of group
// consumers) and partition.assignment.strategy (cooperative-sticky, the default,
// or range). All others are ignored. Unlike a broker it takes sessions of any
// length.
//
// # What is not
//
// One cluster has one fate, but for the replicas of single partitions and for the
// partitions that one broker alone has ([Broker.StopBroker]). There are no
// transactions, commits, ACLs by resource (see [Broker.Refuse]), quotas but by order
// ([Broker.Throttle]), compaction, limits on the size of
// records, or retention by time ([Broker.DeleteHead]); settings of topics are kept
// but have no effect. A group that is subscribed to several topics is one group
// for each. Idempotence is not modelled: a lost acknowledgement is a report that
// fails, and a record is repeated only by [Broker.Duplicate] and [Broker.ChangeLeader].
package nelitest
