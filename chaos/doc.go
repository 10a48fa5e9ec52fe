// Command chaos disturbs a real cluster and checks that the library keeps its
// promises meanwhile.
//
//	sudo go run . -for 3m -seed 1 -nomination open
//
// It builds three Kafka brokers (replication 3, two of them in sync), five member
// processes and a PostgreSQL, each on a host of its own (a network namespace), and
// then, for a given time, draws faults from a seed: SIGKILL and SIGSTOP of members
// and brokers, symmetric and one-way cut-offs between members and brokers and
// among brokers, latency, loss, restarts in turn, and some of these at once. Members
// are told to hand a role to another one, who lives, is killed, or is cut off
// meanwhile, to step down, and that they are unhealthy: for a while, on and off, or
// with a check that hangs. With Open nomination, members have preferences, by seed:
// none, priorities, one function for all, or a function each, which contradict each
// other. Between two steps it waits until every role is led and, three times out of four,
// until the groups are whole again, so that what follows can be told from what was.
// Never is more than one broker disturbed, or one pair of brokers parted, at a time:
// more than that three replicas, two of them in sync, are not built to survive.
//
// Every member has two Nelis. One is exclusive, and whoever leads a role writes to
// that role's register, whose kind is another one for each role (-stores). One is guarded
// by the token, as an application does by itself:
//
//	UPDATE … SET token = $t, value = $v WHERE role = $r AND token <= $t
//
// The second is a row of the same PostgreSQL that is written in transactions which begin with
// fence.PostgresHold, in terms which begin with fence.Postgres; the third is a partition of a
// Kafka topic, written by fence.Transactions, by hosts with an odd number on
// confluent-kafka-go and by the others on franz-go. With -unfenced these two are written without
// their fences, which must be found out: the first write of each term is then held up until a
// later term has written.
//
// Some writes are held up between the check of leadership and the deed, as by a
// garbage collection; the store is never cut off, so such a write arrives, with an
// old token. Everybody reads. The other Neli is non-exclusive, with the library's
// defaults. A sampler asks both, each millisecond, for every role.
//
// # What is checked
//
// All by the machine's one monotonic clock; brokers' clocks play no part, and the wall
// clock none but to say when a claim was sent.
// Any of these is a violation, and the exit code is 1:
//
//   - exclusive: two members that led a role at one instant for certain; a token of
//     two members; a token that does not grow;
//   - each store's own log (of Kafka: what is committed): accepted tokens never fall, every acknowledged write is
//     there with the same verdict, and nothing that nobody wrote;
//   - the history of each register, the claims of terms and the writes of unknown outcome that
//     are in the log included, is linearizable (porcupine); a check that does not finish counts as a violation;
//   - non-exclusive: a role certainly without a leader at any instant, if all was
//     well when the fault began (groups whole, leaders by fresh evidence), its leader
//     lived, and the brokers were well; or for longer than S + J + B if its leader
//     was killed. While brokers are disturbed nothing is promised, and gaps are only
//     reported;
//   - exclusive: a term without its claim in the election's topic, read at the end by
//     another client;
//   - a Transfer that returned nil, and the member that was named did not claim after
//     it (by the topic), or did not lead though nothing was done to it; one that takes
//     longer than a drain and 2 T though nothing was done to its caller, nor to
//     brokers; an error that it does not document. The same of StepDown; and that the
//     member, for 10 s or 3 T from the call, led or claimed anything;
//   - a member that claims though its check has failed for 1 s, or hung for 6, or
//     leads for longer than a drain, a successor's wait and T after that; 2 s are for
//     the machine, and a suspension begins the time anew;
//   - exclusive: a role without a leader for longer than the kind of fault that
//     answers for it allows, whether or not it is repaired by then: 2 T + 2 s where
//     nothing comes from its leader any more, T + 2 s where it is handed over, the
//     session of a broker (9 s) and 10 s for the clients more where one of the brokers
//     is lost, replica.lag.time.max.ms (30 s) and the same where two are parted; with
//     Assigned nomination the members' session and a rebalance on top. After the
//     repair of anything, and in non-exclusive mode, likewise: package oracle, Recovery;
//   - a broker that is suspended for longer than its session and that Kafka does not
//     fence, since that is what this fault is for;
//   - a tenth of a life, of either mode and any role, that was not sampled;
//   - with Open nomination, at the end of all: shares that are not within one of each
//     other, among those that are wanted most, 135 s after the last fault, if
//     preferences do not contradict and no role is kept by whom it was transferred to;
//   - a member that ends by itself, or a Close that fails or takes longer than 30 s.
//
// Only reported: time without a leader by kind of fault, of the roles that the struck
// members led (those of others that were moved meanwhile have a row of their own),
// and how many writes would have overwritten a successor's work had there been no
// guard. A gap is put down to
// the fault that had begun last when it began, or, where a leader of non-exclusive
// mode lapsed, when its evidence stopped to come, T before.
//
// # Without a broker
//
//	sudo go run . -peers -for 3m -seed 1
//
// Five members with a log host each inside (package peers of this library), no brokers and
// exclusive mode only. Members are killed, suspended, cut off and slowed together with their
// logs, up to two at a time; two are parted; the network is split three to two. All that is
// said above of exclusive mode is checked, but for what needs a topic to be read, and for
// orders and health, which are not given.
//
// # Sentinels
//
// With -sentinels each member has a sentinel on its host. Every other step concerns it: it
// is killed or suspended, alone or with the member; processes that die register in the name of a
// member that lives, with secrets that are not its own; a proxy takes its socket, and loses the pidfd, garbles what is
// said, is late, or ends connections. All that is said above is checked. How long roles were
// without a leader, by kind, is reported beside the rest.
//
// # What is left behind
//
// A directory (-out) with report.txt, timeline.svg, and the logs of members and
// brokers. Nothing else: all processes live in a PID namespace and are killed by
// the kernel when its first process ends, in whatever way; network namespaces have
// no names, and end with their processes; data is in a file system in memory that
// only they see.
//
// # The network
//
// Latency, loss and cut-offs are made by package wire, a switch in user space
// between TUN devices, and not by tc netem, which many kernels of virtual machines
// lack. It needs no more of the kernel than namespaces and TUN.
//
// Orders, and health, go to members by a pipe, as parameters do; what Transfer and
// StepDown said comes back by one. Both Nelis ask for the same health.
//
// One seed gives one plan. It does not give one run: who leads when a fault aims at
// the leader, and everything after, is up to the cluster.
package main
