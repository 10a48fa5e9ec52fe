// Package confluent is the Provider over confluent-kafka-go, that is, librdkafka. It is neli's
// default. Without cgo, or with the build tag neli_nolibrdkafka, New returns an error that says
// what to do.
package confluent
