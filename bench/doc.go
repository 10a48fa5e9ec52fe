// Command bench compares this library with other ways to elect a leader: etcd's
// concurrency.Election, hashicorp/raft, and a lock on Redis; on a Kafka, and without one
// (package peers of this library). Each candidate and each
// server is a process of its own: this program executed again, a real Kafka, a
// redis-server. Linux only.
//
//	go run . run -n 20                          the comparison; writes results, docs/benchmarks.md and .svg
//	go run . run -n 2 -idle 3s -settle 1s -only 'raft|1 broker, Open' -results r.json -docs .
//	go run . quiet -for 30m                     terms lost while nothing happens
//	go run . rolling -rounds 2                  terms lost while brokers are restarted in turn
//	go run . logs -n 3                          one replicated log and Config.Logs, while brokers fail
//	go run . logs -n 1 -away 10s -results r.json -docs .
//	go run . scale                              100 members, 100,000 roles; 20 and 1,000; one that leads 1,000
//	go run . scale -processes 2 -each 5 -roles 1000 -quiet 10s -results r.json -docs .
//	go run . scale -processes 10 -each 10 -roles 100000 -client franz    one size, with both clients
//	go run . report                             writes all pages and the picture from results/results.json
//
// results/README.md says how it is measured, and what is not comparable. Package peers has
// the systems, package member a candidate, trial what is done to groups of them,
// clients what is seen of the library's own Kafka clients, probe round trips through
// the like, measure the arithmetic, idle the accounts of CPU and sockets, steady the
// long runs, crowd the many, report the page.
//
// Every figure is kept with the run that it is of: its commit, date and command. What
// a run has not measured keeps its own.
//
// Everything runs in a temporary directory and is killed by the kernel when the
// program ends, in whatever way. An interrupted comparison writes nothing, an
// interrupted quiet run what it has seen.
package main
