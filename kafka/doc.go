/*
Package kafka is the seam between neli and a Kafka client: interfaces and types of its own,
so that elections run on a real broker, on one in memory (package nelitest) or without a
broker at all.

To use neli you need only its ConfigMap, which neli calls KafkaConfigMap. Config.Provider accepts
a Provider: module franz has one without cgo, module peers one without a broker. Without a Provider
neli uses librdkafka.

To write a Provider, implement Provider and the clients that it returns: Producer, LogReader,
GroupConsumer and Admin; or SmallLogs, for elections on logs that are not Kafka's. Package
nelitest/providertest tests what is said here, except what Provider lists, Checker, Identified
and Joint.
*/
package kafka
