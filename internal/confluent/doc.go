// Package confluent is the Provider on confluent-kafka-go, which is librdkafka: neli's default.
// Without cgo, or with the build tag neli_nolibrdkafka, New returns an error that says what to do.
package confluent
