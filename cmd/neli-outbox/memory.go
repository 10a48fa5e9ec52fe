package main

import (
	"context"
	"os"
	"runtime/debug"

	"golang.org/x/sync/semaphore"
)

// memory bounds the rows that all slots of this process have read and not yet published: a process may lead all slots,
// and each of them may have a backlog of large rows. A slot that waits for room holds none, except for a batch that
// Kafka is taking.
type memory struct {
	free    *semaphore.Weighted
	reading int64 // room for a batch whose size is not known yet
}

// batches is how many batches of the largest size there is room for.
const batches = 6

func newMemory(most limits, record int) *memory {
	reading := int64(most.bytes) + int64(record)
	return &memory{semaphore.NewWeighted(batches * reading), reading}
}

// await waits for room for a batch.
func (m *memory) await(ctx context.Context) error { return m.free.Acquire(ctx, m.reading) }

// keep gives back the room that a batch does not need, once the batch was read. forget gives back the rest.
func (m *memory) keep(rows []row)   { m.free.Release(m.reading - m.size(rows)) }
func (m *memory) forget(rows []row) { m.free.Release(m.size(rows)) }

func (m *memory) size(rows []row) int64 {
	n := int64(0)
	for _, r := range rows {
		n += int64(len(r.topic) + r.size())
	}
	return min(n, m.reading)
}

// limit makes the garbage collector work harder before this process takes more than its base and twice the rows: once
// for the rows, and once for the records that the Kafka client makes of them. GOMEMLIMIT has precedence.
func (m *memory) limit() {
	const base = 40 << 20
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(base + 2*batches*m.reading)
	}
}
