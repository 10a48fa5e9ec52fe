// Package drive makes Kafka clients work in tests: it appends, reads, and takes part in groups. It is for
// the tests of package nelitest, and for the contract of providers in package providertest.
package drive

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/kafka"
)

// patience is the longest wait for anything.
const patience = time.Minute

// AppendAll appends the values to one partition and waits for their reports.
func AppendAll(t *testing.T, p kafka.Producer, topic string, partition int, values ...string) {
	t.Helper()
	reports := make(chan error, len(values))
	for _, v := range values {
		require.NoError(t, p.Append(topic, partition, []byte(v), func(err error) { reports <- err }))
	}
	for range values {
		require.NoError(t, Reported(t, reports))
	}
}

// Reported waits for one report, and returns its error.
func Reported(t *testing.T, reports <-chan error) error {
	t.Helper()
	select {
	case err := <-reports:
		return err
	case <-time.After(patience):
		require.FailNow(t, "a record was never reported")
		return nil
	}
}

// Kinds lists errors with a meaning, as kafka.Provider says; Read takes all others for temporary.
var Kinds = []error{kafka.ErrOutOfRange, kafka.ErrTruncated, kafka.ErrUnreadable, kafka.ErrUnknownTopic, kafka.ErrAuthorization,
	kafka.ErrAuthentication, kafka.ErrInstanceFenced, kafka.ErrClientFatal}

// Read polls until n records have come. Passing errors are allowed.
func Read(t *testing.T, r kafka.LogReader, n int) (rs []kafka.Record) {
	t.Helper()
	for end := time.Now().Add(patience); len(rs) < n; {
		rec, ok, err := r.Poll(time.Until(end))
		for _, kind := range Kinds {
			require.NotErrorIs(t, err, kind)
		}
		if ok {
			rs = append(rs, rec)
		}
		require.True(t, ok || time.Now().Before(end), "no record after %d", len(rs))
	}
	return rs
}

// Values returns the values of records.
func Values(rs []kafka.Record) (vs []string) {
	for _, r := range rs {
		vs = append(vs, string(r.Value))
	}
	return vs
}

// Member is a group member that is polled on a goroutine of its own.
type Member struct {
	Client kafka.GroupConsumer
	began  time.Time
	quit   chan struct{}
	done   chan struct{}

	mu      sync.Mutex // guards the fields below
	have    []int
	events  []kafka.GroupEvent // assignments and losses
	history []string
	records []kafka.Record
	errs    []error
}

// Track lets a member join, and polls it until the test ends or Stop is called.
func Track(t *testing.T, g kafka.GroupConsumer, topic string, read bool) *Member {
	t.Helper()
	m := &Member{Client: g, began: time.Now(), quit: make(chan struct{}), done: make(chan struct{})}
	require.NoError(t, g.Join(topic, read))
	go m.poll()
	t.Cleanup(m.Stop)
	return m
}

func (m *Member) poll() {
	defer close(m.done)
	for {
		select {
		case <-m.quit:
			return
		default:
		}
		ev, err := m.Client.Poll(100 * time.Millisecond)
		m.note(ev, err)
		switch {
		case errors.Is(err, kafka.ErrClientFatal):
			return
		case errors.Is(err, kafka.ErrInstanceFenced):
			<-time.After(100 * time.Millisecond) // Poll may return the error at once, each time
		}
	}
}

func (m *Member) note(ev kafka.GroupEvent, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.errs = append(m.errs, err)
		return
	}
	at := time.Since(m.began).Round(100 * time.Millisecond)
	switch ev.Kind {
	case kafka.GroupAssigned:
		m.have = ev.Partitions
		m.history = append(m.history, fmt.Sprintf("%v assigned %v", at, ev.Partitions))
	case kafka.GroupLost:
		m.have = nil
		m.history = append(m.history, fmt.Sprintf("%v lost", at))
	case kafka.GroupRecord:
		m.records = append(m.records, ev.Record)
		return
	case kafka.GroupIdle:
		return
	}
	m.events = append(m.events, ev)
}

// Stop ends polling.
func (m *Member) Stop() {
	select {
	case <-m.quit:
	default:
		close(m.quit)
	}
	<-m.done
}

// Assigned returns the partitions that the group has assigned.
func (m *Member) Assigned() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.have
}

// History describes assignments and losses, with their times since the member joined.
func (m *Member) History() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.history)
}

// Events returns all assignments and losses.
func (m *Member) Events() []kafka.GroupEvent {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.events)
}

// Records returns the records that were read.
func (m *Member) Records() []kafka.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.records)
}

// Errors returns the errors of Poll.
func (m *Member) Errors() []error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.errs)
}
