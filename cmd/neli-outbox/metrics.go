package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// meters are this program's own metrics. Module metrics has those of the election.
type meters struct {
	rows, bytes      prometheus.Counter
	batches          prometheus.Histogram
	delays           prometheus.Histogram
	looks            prometheus.Histogram
	batchFailures    prometheus.Counter
	databaseFailures prometheus.Counter
	setAside         prometheus.Counter
	uselessTerms     prometheus.Counter
}

func newMeters(to prometheus.Registerer) *meters {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: "outbox", Name: name, Help: help})
		to.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "outbox", Name: name, Help: help, Buckets: buckets})
		to.MustRegister(h)
		return h
	}
	return &meters{
		rows:             counter("rows_published_total", "Rows that this process has published."),
		bytes:            counter("bytes_published_total", "Keys, payloads and headers of rows that this process has published."),
		batches:          histogram("batch_duration_seconds", "How long Kafka took for a batch.", prometheus.ExponentialBuckets(0.001, 2, 14)),
		delays:           histogram("delay_seconds", "From the beginning of the transaction that inserted the oldest row of a batch until it was published; by the clocks of both.", prometheus.ExponentialBuckets(0.005, 2, 16)),
		looks:            histogram("look_seconds", "How long the database took for a look at a slot: to delete what was published, and to read the next rows.", prometheus.ExponentialBuckets(0.001, 2, 16)),
		batchFailures:    counter("batch_failures_total", "Batches that were refused, or whose outcome is unknown. They are tried again."),
		databaseFailures: counter("database_failures_total", "Times that the database did not answer. It is asked again."),
		setAside:         counter("rows_set_aside_total", "Rows that Kafka does not take. Their keys wait."),
		uselessTerms:     counter("useless_terms_total", "Terms that this process lost before it had published a batch, or had seen that there is none."),
	}
}

// published notes a batch.
func (m *meters) published(rows []row, began time.Time) {
	m.batches.Observe(time.Since(began).Seconds())
	size, oldest := 0, rows[0].created
	for _, r := range rows {
		size += r.size()
		if r.created.Before(oldest) {
			oldest = r.created
		}
	}
	m.rows.Add(float64(len(rows)))
	m.bytes.Add(float64(size))
	m.delays.Observe(time.Since(oldest).Seconds())
}
