// Command chaos disturbs a real cluster, and checks that the library keeps its promises meanwhile.
//
//	sudo go run . -for 3m -seed 1 -nomination open
//
// It starts three Kafka brokers (replication factor 3, min.insync.replicas 2), five member processes and a PostgreSQL, each on a
// host of its own (a network namespace). Then, for a given time, it draws faults from a seed: SIGKILL and SIGSTOP of members and
// brokers, symmetric and one-way cut-offs between members and brokers and among brokers, latency, loss, restarts in turn, and
// some of these together. Between two steps chaos waits until every role is led, and, three times out of four, until the groups
// are whole again, so that the effects of two steps can be told apart. At any time at most one broker is disturbed, or one pair
// of brokers separated: three replicas, two of them in sync, are not built to survive more.
//
// Every member has two Nelis. One is exclusive, and the leader of a role writes to that role's register. There are three
// kinds of registers (-stores). The first is guarded by the token, as an application would do it:
//
//	UPDATE … SET token = $t, value = $v WHERE role = $r AND token <= $t
//
// The second is a row of the same PostgreSQL. Its terms begin with fence.Postgres, and its transactions begin with
// fence.PostgresHold. The third is a partition of a Kafka topic, written by fence.Transactions: by hosts with an odd number
// with confluent-kafka-go, and by the others with franz-go. With -unfenced, the last two are written without their fences,
// and the checks must find that out. Each writer's first write is then delayed until a later term has written.
//
// Some writes are delayed between the check of leadership and the write, as by a garbage collection. The store is never
// cut off, so such a write arrives, with an old token. All members read. The other Neli is non-exclusive, with the library's
// defaults. A sampler checks both Nelis each millisecond, for every role.
//
// # What is checked
//
// All times are by the machine's monotonic clock. Any of these is a violation, and makes the exit code 1:
//
//   - exclusive: two members that certainly led a role at one instant; a token that two members had; a token that does not
//     increase;
//   - in each store's own log (for Kafka, the committed records): an accepted token lower than an earlier one, an
//     acknowledged write that is missing or has another verdict, or a write that no member made;
//   - the history of a register that is not linearizable (porcupine), with the claims of terms, and the writes of unknown
//     outcome that are in the log; a check that does not finish counts as a violation;
//   - non-exclusive: a role that was certainly without a leader at any instant, if all was well when the fault began (groups
//     whole, leaders with fresh evidence), its leader lived, and the brokers were well; or for longer than S + J + B if its
//     leader was killed. While brokers are disturbed nothing is promised, and gaps are only reported;
//   - exclusive: a term without its valid claim in the election's topic, which another client reads at the end, and any
//     rule that neli history --prove finds broken there;
//   - exclusive: a role without a leader for longer than the fault behind it allows, whether or not it is repaired by then:
//     2 T + 2 s if nothing more comes from its leader; T + 2 s if its leader closes; the session of a broker (9 s) and 10 s
//     for the clients more if one of the brokers is lost; 1.5 replica.lag.time.max.ms (45 s) and 10 s if two are separated;
//     with Assigned nomination at least T + 2 s, a rebalance and, in a crash, a session. After a repair, and for
//     non-exclusive mode, see Recovery in package oracle;
//   - a broker that Kafka does not fence although it is suspended for longer than its session: the fault is meant to
//     cause that;
//   - a life of which more than a tenth was not sampled, in either mode and for any role;
//   - a member that ends by itself, or a Close that fails or takes longer than 30 s.
//
// Only reported are the times without a leader, by kind of fault, for the roles that the affected members led (roles of others
// that moved meanwhile have a row of their own), and the number of writes that would have overwritten a successor's work
// without the guard. A gap is attributed to the fault that had begun last when the gap began. If a leader of non-exclusive mode
// lapsed, the time at which its evidence stopped, T earlier, counts instead.
//
// # Further settings
//
//	sudo go run . -for 65m -seed 3 -t 5s -with 'sentinels; prepare; far; slow followers; full disks; clocks; new topics'
//
// Each setting adds something to a run:
//
//   - sentinels: a sentinel on each member's host. With Open nomination, the role of a killed process is led again within T + 2 s
//     if its term was older than T;
//   - prepare: Prepare takes up to 1.5 s and sometimes fails, and every member is a Standby;
//   - far: two members are so far from all brokers that T is 40 and 20 round trips;
//   - logs: exclusive mode has Logs: 3. The loss of a broker ends no term there, so roles move only by handovers. The topic is not
//     checked, since a majority of logs has no history;
//   - slow followers: packets between one broker and the others take up to half a second each way, plus jitter of half the delay;
//   - full disks: a broker's disk fills up. Kafka halts, and is started again once there is room;
//   - clocks: a broker's wall clock is stepped by up to 20 s, or slewed by 10 %, and later set right. Brokers read it by a
//     library that gcc builds. Timestamps then prove nothing, and are left out of the proof. The members' own clocks cannot
//     be set without the machine's;
//   - new topics: all members close, and start again with a new topic and a higher TokenBase. The group begins at the origin of its
//     log, so roles must be led again without the wait for an unknown past: 2 T + 2 s after the processes have started.
//
// With -former PROGRAM, every second member that starts is that program: package member, built with a former version of the
// library. So members of two versions lead and follow each other, and each host switches between them.
//
// Nothing is promised while a broker is slow, full or has a wrong clock, only afterwards.
//
// # Without a broker
//
//	sudo go run . -peers -for 3m -seed 1 -with 'sentinels; prepare'
//
// There are five members, each with a log host inside (package peers), no brokers, and only exclusive mode. Members are
// killed, suspended, cut off and slowed together with their logs, up to two at a time; two are separated; the network is
// split three to two. The checks of exclusive mode above apply, except those that read a topic.
//
// # Fail-over
//
//	sudo go run . -each 20 -t 5s
//
// measures how long a role has no leader after each kind of fault of a closed list, 20 times each, in an hour and a half. Each
// fault strikes the leader of a role, or the broker that leads the role's log, and begins when all is well again and every
// replica in sync. The list also has machines that are switched off: their links go dark as the process is killed, so nobody
// receives the end of a connection. And it has disks that stall: each broker's data is on a file system that a process
// serves, and that process is suspended (package disk). The report has the median and the worst time of each kind beside the
// bound that the documents promise. If they promise nothing while the fault lasts, the bound includes the fault. As in any
// run, a longer time is a violation.
//
// # What is left behind
//
// A directory (-out) with report.txt, and the logs of members and brokers, and nothing else. All processes live
// in a PID namespace, and the kernel kills them when its first process ends, in whatever way. Network namespaces have no
// names, and end with their processes. Data is in a file system in memory that only these processes see.
//
// # The network
//
// Package wire, a switch in user space between TUN devices, makes latency, loss and cut-offs. It says why not tc netem.
//
// One seed gives one plan, but not one run: who leads when a fault aims at the leader, and everything after that, depends
// on the cluster.
package main
