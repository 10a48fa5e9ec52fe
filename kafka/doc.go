/*
Package kafka is the seam between neli and a Kafka client: interfaces and types of its own,
so that elections run on a real broker, on one in memory (package nelitest) or without a
broker at all.

Who only uses neli needs none of it but ConfigMap, which neli calls KafkaConfigMap. Config.Provider
takes what implements Provider: module franz has the client without cgo, module peers the one
without a broker, and without any neli uses librdkafka.

Who writes a Provider implements Provider and what it returns: Producer, LogReader,
GroupConsumer and Admin; or SmallLogs, for elections on logs that are not Kafka's. Package
nelitest/providertest has all that is said here as tests.
*/
package kafka
