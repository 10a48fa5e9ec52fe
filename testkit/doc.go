// Package testkit has tools that the tests of several modules share: integration, chaos, bench and examples. It
// is a module of its own, does not know NELI, and has no code in this directory.
//
//	kafkatest   a real Apache Kafka of one or three brokers, as child processes
//	dbtest      PostgreSQL and MariaDB servers
//	nursery     child processes that do not outlive the test
//	pause       waits for a time or a condition
//	proxy       cuts single clients off from Kafka
//	witness     samples who leads, and works out what the samples prove
//
// The command cmd/neli-kafka runs such a Kafka until it is interrupted.
package testkit
