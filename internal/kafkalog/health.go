package kafkalog

import "sync/atomic"

// Health is what the Kafka clients of one Neli have met so far. The zero value is ready, and its fields
// may be used concurrently.
type Health struct {
	Pace       Pace
	Throttling Throttling
	Contact    Contact
	Refusals   Refusals
	Replaced   atomic.Uint64 // clients that stood still
}
