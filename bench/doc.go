// Command bench compares this library with other ways to elect a leader: etcd's
// concurrency.Election, hashicorp/raft, and a lock on Redis. Each candidate and each
// server is a process of its own: this program executed again, a real Kafka, a
// redis-server. Linux only.
//
//	go run . run -n 20                          the comparison; writes docs/benchmarks.md and .svg
//	go run . run -n 2 -idle 3s -only 'raft|1 broker, Open' -results /tmp/r.json -docs /tmp
//	go run . quiet -for 30m                     terms lost while nothing happens
//	go run . rolling -rounds 2                  terms lost while brokers are restarted in turn
//	go run . scale                              100 members, 1,000 partitions, 100,000 roles
//	go run . report                             writes the page and the picture from results.json
//
// The page says how it is measured, and what is not comparable. Package peers has
// the systems, package member a candidate, trial what is done to groups of them,
// measure the arithmetic, idle the accounts of CPU and sockets, steady the long
// runs, crowd the many, report the page.
//
// Everything runs in a temporary directory and is killed by the kernel when the
// program ends, in whatever way. An interrupted comparison writes nothing, an
// interrupted quiet run what it has seen.
package main
