// Package nelitest is a Kafka cluster in memory: a [Broker] with topics, consumer groups and clients that
// implement [kafka.Provider]. It is for tests of code that depends on leadership, and of the library
// itself. On command it produces the faults that leadership must survive: it cuts members off, stops
// them, delays and duplicates what they write, takes partitions from them, and loses records.
//
//	b := nelitest.NewBroker(nelitest.Options{})
//	n, err := neli.New(neli.Config{Provider: b.Provider("alice")})
//	…
//	b.CutOff("alice", nelitest.LinkAll)
//
//	 member "alice"                                   Broker
//	┌──────────────────────┐                ┌───────────────────────────────┐
//	│ Producer ── Append ──┼─ LinkAppends ─▶│ topic: partition 0  ▭▭▭▭▭▭    │
//	│        report(err) ◀─┼── LinkAcks ────│        partition 1  ▭▭▭       │
//	│ LogReader.Poll ◀─────┼── LinkReads ───│                               │
//	│ GroupConsumer ───────┼── LinkGroup ──▶│ coordinator: sessions, rounds │
//	│ Admin ───────────────┼── LinkAdmin ──▶│ topics, offsets               │
//	└──────────────────────┘                └───────────────────────────────┘
//	  Suspend Freeze           CutOff         Stop Start Rebalance Truncate
//	  Resume Kill              Delay …        DeleteTopic Inject …
//	                                          StopBroker …
//
// A [Script] is less: one member that leads on command, for tests of a barrier or a pulse loop.
//
// Routing to the leader can be tested in the same way. Add a Neli with [neli.Config.Observer] as one more
// member: its [neli.Neli.Holder] and [neli.Neli.Watch] say who leads, or, if it is cut off, what it last
// knew.
//
// A fault of a member takes the name given to [Broker.Provider], before or after the
// member has clients. It lasts until it is taken back.
//
// # A process that wakes
//
// A process may be suspended at any line: by SIGSTOP, a debugger, a laptop's lid, a machine that swaps.
// Another process leads when it wakes. The woken process continues with that line before anything tells it.
// [Broker.Freeze] shows whether a program tolerates that:
//
//	time.Sleep(time.Minute)      // alice works
//	b.Freeze("alice")            // from now on she acts as a process that has just woken
//	time.Sleep(10 * time.Second) // bob leads
//	journal.expect("bob works")  // and alice has done nothing
//	b.Resume("alice")            // now she is told
//
// A loop passes if it asks the context of Lead, IsLeader or Leadership.Valid after each wait. One that
// only waits in a select, or trusts a flag that the barrier has set, fails: see user_test.go and
// freeze_test.go in this directory.
//
// # Time
//
// The package uses only the runtime's clock. So it runs in real time, and in a bubble of testing/synctest
// in simulated time: there a minute of a small cluster takes a few milliseconds, and all its waits are
// durably blocking in the sense of that package. The broker has no goroutine that must be stopped.
//
// A run of a Broker in a bubble is repeatable. Each record, each report and each return of Poll happens at an instant
// of its own, in an order that depends on [Options.Seed] and on times, but not on how the runtime
// schedules goroutines. This does not order what the program under test itself does at one instant, for
// example when two of its own timers fire together. A run of [SmallLogs] is not repeatable: several members
// read at the same instant.
//
// # What is like Kafka
//
//   - Each partition's log is totally ordered. A record is readable as soon as all in-sync replicas have
//     it, which is at once unless [Broker.Lag] says otherwise. This does not depend on its
//     acknowledgement. A record that some replicas do not have may be lost when another broker becomes the
//     leader ([Broker.ChangeLeader]).
//   - Offsets increase, and need not be consecutive. A log may end beyond its last record ([Broker.Skip]).
//   - By leader epochs a reader notices that a log has lost records that it had read ([Broker.Truncate]),
//     even if the log has grown again.
//   - An append that fails may be in the log nevertheless.
//   - Readers and producers use the name of a topic. They do not notice that it was deleted and created
//     again; [kafka.Admin] then shows another id.
//   - A consumer group rebalances by the classic protocol. Members learn of a rebalance by heartbeat, and
//     join again from within Poll. Cooperative members keep the partitions that do not move; those that
//     move are revoked in a first round and assigned in a second. A member is removed if it does not poll
//     for max.poll.interval.ms or sends no heartbeat for session.timeout.ms.
//   - A member cannot join while others have no partition.assignment.strategy in common with it. Poll reports a passing
//     error at each attempt.
//   - Static members (group.instance.id) keep their place and fence each other.
//
// These properties have an effect, with librdkafka's defaults except for the strategy:
// message.timeout.ms, group.id, group.instance.id, session.timeout.ms, heartbeat.interval.ms,
// max.poll.interval.ms, auto.offset.reset (of group consumers) and partition.assignment.strategy
// (cooperative-sticky, the default, or range, roundrobin or both). All others are ignored. Unlike a real broker it accepts
// session timeouts of any length.
//
// # What is not like Kafka
//
// Faults affect the cluster as a whole, except for the replicas of single partitions and for the
// partitions that only one broker has ([Broker.StopBroker]). There are no transactions, no commits, no
// ACLs by resource (see [Broker.Refuse]), no quotas except on command ([Broker.Throttle]), no compaction,
// no limits on the size of records and no retention by time ([Broker.DeleteHead]). Settings of topics are
// stored but have no effect. A group that subscribes to several topics counts as one group for each.
// Idempotence is not modelled: a lost acknowledgement makes the report fail, and only [Broker.Duplicate]
// and [Broker.ChangeLeader] repeat a record.
package nelitest
