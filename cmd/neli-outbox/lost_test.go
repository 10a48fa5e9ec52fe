//go:build unix

package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// place is a row's place in the table, as INSERT returned it.
type place struct {
	Name string
	Slot int32
	ID   int64
}

// mostTraces is the number of lost rows to look for. The first and the last ones show enough.
const mostTraces = 40

// tracesOf returns what is left of lost rows. This shows which part has lost a row:
//   - the table still has it: the relay has not read it, or has set it aside;
//   - an uncommitted record has it, and a committed note names it: Kafka has committed a part
//     of a transaction, or a reader takes an aborted record for a committed one;
//   - a committed note names it, and no record has it: another row had its id;
//   - only an uncommitted note names it: the relay took an aborted transaction for committed;
//   - nothing names it: the relay has never read it, so the database has lost it.
func (w *world) tracesOf(lost []place) string {
	if len(lost) == 0 {
		return ""
	}
	w.t.Helper()
	slices.SortFunc(lost, func(a, b place) int { return cmp.Or(cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.ID, b.ID)) })
	read := func(topic string, isolation kgo.IsolationLevel) []*kgo.Record {
		return readTopic(w.t, w.kafka.Bootstrap(), topic, isolation)
	}
	records := map[int64][]string{} // by the id in the header; the name says which row it is
	for _, r := range read(w.topicName, kgo.ReadUncommitted()) {
		var id int64
		_, _ = fmt.Sscan(valueOf(r, idHeader), &id)
		records[id] = append(records[id], fmt.Sprintf("record %s of %q", where(r), r.Value))
	}
	notes := map[int64][]string{}
	if w.topicName != "header" { // notes of relays by headers name no rows
		committed := map[string]bool{}
		for _, r := range read(progressTopic(w.topicName), kgo.ReadCommitted()) {
			committed[where(r)] = true
		}
		for _, r := range read(progressTopic(w.topicName), kgo.ReadUncommitted()) {
			said, _ := readNote(r.Value)
			for _, named := range said.rows {
				id := named.id
				notes[id] = append(notes[id], fmt.Sprintf("note %s, committed: %v", where(r), committed[where(r)]))
			}
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "Kafka left the ends of %d transactions unwritten (KAFKA-20734)\n", w.unwritten())
	for i, p := range lost {
		if i >= mostTraces/2 && i < len(lost)-mostTraces/2 {
			continue
		}
		var rows int
		err := w.store.pool.QueryRow(w.t.Context(), "SELECT count(*) FROM outbox WHERE slot = $1 AND id = $2", p.Slot, p.ID).Scan(&rows)
		fmt.Fprintf(&out, "%q, slot %d, id %d: in the table %d (%v); uncommitted or not: %q; %q\n", p.Name, p.Slot, p.ID, rows, err, records[p.ID], notes[p.ID])
	}
	return out.String()
}

// unwritten is how often the brokers reported that they do not write the end of a transaction. Its
// partitions had no leader at that moment, which a broker takes for their deletion.
func (w *world) unwritten() (times int) {
	w.t.Helper()
	dir := w.t.TempDir()
	require.NoError(w.t, w.kafka.KeepLogs(dir))
	for _, b := range w.kafka.Brokers() {
		log, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("broker-%d.log", b.ID)))
		require.NoError(w.t, err)
		times += strings.Count(string(log), "these partitions are likely deleted already and hence can be skipped")
	}
	return times
}

func testTraces(t *testing.T, w *world) {
	p := w.start(nil)
	w.insert("b", "published") // id 1, of slot 0
	w.awaitEmpty(stepLimit)
	p.stop(t)
	w.noneSetAside()
	w.insert("b", "waits")
	client := w.client(kgo.TransactionalID(w.topicName), kgo.RecordPartitioner(byKey{except: progressTopic(w.topicName)}))
	require.NoError(t, client.BeginTransaction())
	require.NoError(t, client.ProduceSync(t.Context(), (&progress{topic: progressTopic(w.topicName)}).record(0, note{rows: []ref{{3, 3}}})).FirstErr())
	require.NoError(t, client.EndTransaction(t.Context(), kgo.TryAbort))
	traces := strings.Split(w.tracesOf([]place{{"aborted", 0, 3}, {"waits", 0, 2}, {"published", 0, 1}}), "\n")
	require.Contains(t, traces[0], "the ends of 0 transactions")
	require.Contains(t, traces[1], `"published", slot 0, id 1: in the table 0`)
	require.Contains(t, traces[1], `of \"published\"`)
	require.Contains(t, traces[1], "committed: true")
	require.Contains(t, traces[2], "id 2: in the table 1")
	require.NotContains(t, traces[2], "note")
	require.Contains(t, traces[3], "committed: false")
}

// where returns a record's place, and who wrote it.
func where(r *kgo.Record) string {
	return fmt.Sprintf("%d@%d by %d/%d", r.Partition, r.Offset, r.ProducerID, r.ProducerEpoch)
}
