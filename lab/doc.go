// Package lab is the module that tests, measures and releases this repository. It is not published, and no go.mod
// requires it: tests of other modules import its packages through go.work.
//
//	integration   the library on a real Kafka
//	chaos         a real cluster, or members without a broker, under faults
//	bench         what the library costs, beside other ways to elect a leader
//	demo          kills and suspends processes, and shows what happens; needs no Kafka
//	demo-peers    the same without a broker, and cuts the network
//	demo-page     the same in a browser: people press the faults, and read what happens
//	release       makes, checks and tags releases
//
// They share these packages, of which the first two know NELI:
//
//	child       both sides of a member process, which its parent commands and watches
//	clients     the Kafka clients on which members run
//	kafkatest   a real Apache Kafka of one or three brokers, as child processes
//	dbtest      PostgreSQL and MariaDB servers
//	nursery     child processes that do not outlive the test
//	pause       waits for a time or a condition
//	proxy       cuts single clients off from Kafka
//	witness     samples who leads, and works out what the samples prove
//
// The command cmd/neli-kafka runs such a Kafka until it is interrupted.
package lab
