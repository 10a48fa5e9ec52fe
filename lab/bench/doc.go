// Command bench compares this library, with Kafka and without (package peers), with other ways to elect a leader:
// etcd's concurrency.Election and hashicorp/raft. Each candidate and each server is a process of its own: this program
// executed again, or a real Kafka. Linux only. The rows of redsync in the results are older: nothing here measures them anew.
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
// results/README.md says how it measures, and what is not comparable. The packages: peers has the systems, member a
// candidate, trial the trials of groups, clients observes the library's own Kafka clients, probe measures round trips
// through clients like these, measure has the arithmetic, idle the CPU and traffic of idle groups, steady the long
// runs, crowd the runs with many members, report the pages.
//
// Every figure is stored with its run: commit, date and command. Figures that a run has not measured keep their own.
//
// Everything runs in a temporary directory, and the kernel kills it when the program ends, in whatever way. An
// interrupted comparison writes nothing. An interrupted quiet run writes what it has measured so far.
package main
