// Package testkit holds what the tests of several modules stand on: integration,
// chaos, bench and examples. It is a module of its own, knows nothing of NELI, and
// has no code in this directory.
//
//	kafkatest   a real Apache Kafka of one or three brokers, as child processes
//	nursery     child processes that do not outlive the test
//	proxy       cuts one client off from Kafka, and not the others
//	witness     samples of who leads, and what they prove
//
// The command cmd/neli-kafka runs such a Kafka until it is interrupted.
package testkit
