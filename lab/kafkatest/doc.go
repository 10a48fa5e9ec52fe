// Package kafkatest runs a real Apache Kafka for tests and demonstrations.
//
// It needs Java 17 or newer and, the first time, Maven, which downloads Kafka's
// jars (44 MiB) into the user's cache directory. No container is involved: a
// broker is a child process, so it can be killed, suspended, resumed and
// restarted like one.
//
//	cluster, err := kafkatest.Start(ctx, kafkatest.Options{Brokers: 3})
//	if err != nil { … }
//	defer cluster.Stop()
//	use(cluster.Bootstrap())
//
// Tests call [Run], which also skips the test where Kafka cannot run, stops the
// cluster and keeps the brokers' logs of a failed test.
//
// # What it promises
//
//   - Start returns when every broker lists all brokers in its metadata, that
//     is: they are registered and not fenced.
//   - All timing is Kafka's own unless [Options].BrokerProps changes it; in
//     particular group.initial.rebalance.delay.ms is 3 s,
//     group.min.session.timeout.ms 6 s and broker.session.timeout.ms 9 s.
//     Topics are never created automatically.
//   - No broker outlives the process that started it, however that ends. On
//     Linux the kernel kills the brokers when the thread that started them dies
//     (that thread is kept for the cluster's life); independently, and on every
//     Unix, a watchdog shell waits for the end of a pipe from the process and
//     kills them then.
//   - Each broker has a session of its own, so that a terminal's Ctrl-C does not
//     reach it and that busy clients do not starve it under Linux's autogroup
//     scheduling.
//
// Unix only: suspending a process takes signals.
package kafkatest
