// Command bench compares this library, with Kafka and without (package peers), with other ways to elect a leader:
// etcd's concurrency.Election and hashicorp/raft. Each candidate and each server is a process of its own: this program
// executed again, or a real Kafka. Linux only. results/README.md names older figures that
// nothing here measures anew.
//
//	go run . run -n 20                          the comparison; writes results and docs/benchmarks.md
//	go run . run -n 2 -idle 3s -settle 1s -only 'raft|3 brokers' -results r.json -docs .
//	go run . report                             writes all pages from results/results.json
//
// results/README.md says how it measures, and what is not comparable. The packages: peers has the systems, member a
// candidate, trial the trials of groups, measure the arithmetic, idle the CPU and traffic of idle groups, report the pages.
//
// Every figure is stored with its run: commit, date and command. Figures that a run has not measured keep their own.
//
// Everything runs in a temporary directory, and the kernel kills all processes when the program ends, in whatever way.
// An interrupted comparison writes nothing.
package main
