/*
Package kafkalog is Kafka as the elector sees it: the leader topic as one ordered log for each
partition, or as a majority of small logs, and the consumer group that nominates.

Clients makes the Kafka clients of one Neli. What they share is here, too: which refusals are
final, when a client that stands still is replaced, how often trouble is logged.
*/
package kafkalog
