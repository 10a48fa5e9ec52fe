// Command operator shows what an operator of neli run sees. Three machines run the same command, with Prometheus and the page, on
// three real brokers. One thing after the other is killed: the job, the elector, the machine's network, the machine, a broker.
//
//	┌ a ────────────┐  ┌ b ────────────┐  ┌ c ────────────┐   ┌ kafka1 2 3 ┐   ┌ monitor ───┐
//	│ supervisor    │  │ supervisor    │  │ supervisor    │   │ a broker   │   │ Prometheus │
//	│ └ neli run    │  │ └ neli run    │  │ └ neli run    │   │ each       │   └────────────┘
//	│   └ guard     │  └───────────────┘  └───────────────┘   └────────────┘   ┌ desk ──────┐
//	│     └ job     │        all hosts are joined by package wire              │ the pages  │
//	└───────────────┘                                                          └────────────┘
//
// Each box is a network namespace, and each of a, b and c is also a PID namespace: killing its first process ends the whole machine
// at once, like a power cut. The supervisor acts like an init system with Restart=always.
//
// The job appends its token to a file every ten milliseconds, under a lock for which it never waits. So the file shows how long no
// job ran, and whether two ever ran at once. Meanwhile the three pages are read ten times a second, Prometheus scrapes every
// second, with the rules of metrics/rules.yaml, and Chromium takes pictures of a page and of Prometheus' own graphs.
//
// make demo-operator writes the results to docs/operations.md, between two marks, and to docs/operator-*.png. It needs root and
// Linux, as chaos does, and Debian's prometheus and chromium. The exit code is 1 if two jobs ever ran at once, or no process led
// again.
package main
