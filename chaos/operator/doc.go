// Command operator shows what somebody sees who operates neli run: three machines run the same
// command beside a Prometheus and the page, on three real brokers, and one thing after the
// other is killed: the job, the elector, the machine's network, the machine, a broker.
//
//	┌ a ────────────┐  ┌ b ────────────┐  ┌ c ────────────┐   ┌ kafka1 2 3 ┐   ┌ monitor ───┐
//	│ supervisor    │  │ supervisor    │  │ supervisor    │   │ a broker   │   │ Prometheus │
//	│ └ neli run    │  │ └ neli run    │  │ └ neli run    │   │ each       │   └────────────┘
//	│   └ guard     │  └───────────────┘  └───────────────┘   └────────────┘   ┌ desk ──────┐
//	│     └ job     │        all hosts are joined by package wire              │ the pages  │
//	└───────────────┘                                                          └────────────┘
//
// Each box is a network namespace, and each of a, b, c a PID namespace, too: what ends its first
// process ends all of the machine at once, as a power cut does. The supervisor does what an init system does
// with Restart=always.
//
// The job appends its token to a file each ten milliseconds, under a lock that it never waits
// for; so the file tells for how long no job ran, and whether two ever did. Meanwhile the
// three pages are read ten times a second, Prometheus scrapes each second, with the rules of
// metrics/rules.yaml, and Chromium takes pictures of a page and of Prometheus' own graphs.
//
// What was seen goes to docs/operations.md, between two marks, and docs/operator-*.png: make
// demo-operator. It needs root and Linux, as chaos does, Debian's prometheus and chromium. The
// exit code is 1 if two jobs ever ran at once, or nobody led again.
package main
