package nelitest

import (
	"bytes"
	"slices"
	"sort"
	"time"
)

// Lag makes the followers of every partition lag behind its leader by d: a record is committed only after
// that time. Until then no client can read it, Admin does not count it, and it is not acknowledged, so it
// may be reported as failed and appear nevertheless. A new leader may not have it: see
// [Broker.ChangeLeader]. Records are committed in order. Records that are in a log already keep their
// time. 0 ends the lag, and the followers catch up at once.
func (b *Broker) Lag(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lag = max(d, 0)
	if b.lag == 0 {
		b.eachLog(func(t *topic, partition int) { b.commitAll(t, partition) })
	}
}

// ChangeLeader makes an in-sync follower the leader of a partition. Of the records that were not committed
// (see [Broker.Lag]), the new leader has only the first ones; kept is their number. The others are lost,
// which no reader notices, and their offsets are used again. Clients that wait for the acknowledgement of
// any of these records, kept or lost, send them again, as librdkafka does. Then the kept ones are in the log
// twice, and even the records of one client may be in another order. Committed records stay, so this does
// not violate acks=all.
func (b *Broker) ChangeLeader(topic string, partition, kept int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.topic(topic)
	if !t.has(partition) {
		return unknown(topic, partition)
	}
	l := t.logs[partition]
	pending := l.entries[l.committed:]
	var again []*message
	for i := range pending {
		again = append(again, pending[i].by)
		pending[i].by = nil
	}
	b.cut(l, l.committed+min(max(kept, 0), len(pending)))
	l.epoch++
	for _, m := range again {
		if m != nil {
			m.resend()
		}
	}
	t.touch(partition)
	return nil
}

// Skip uses n offsets of a partition for entries that no client sees, such as the end of a transaction or
// records that were compacted away. Readers pass over them, and a log's end may lie beyond its last
// record. Skip returns the first of these offsets. When it returns, these and all earlier entries of the
// log are committed.
func (b *Broker) Skip(topic string, partition, n int) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.topic(topic)
	if !t.has(partition) {
		return 0, unknown(topic, partition)
	}
	first := t.logs[partition].end()
	for range n {
		b.append(t, partition, entry{hidden: true})
	}
	b.commitAll(t, partition)
	return first, nil
}

// append adds an entry to the leader's log, and returns its offset.
func (b *Broker) append(t *topic, partition int, e entry) int64 {
	l := t.logs[partition]
	o := l.end()
	e.epoch, e.due = l.epoch, b.now()
	if len(l.brokers) != 1 { // a single replica has no followers
		e.due += b.lag
	}
	if n := len(l.entries); n > l.committed {
		e.due = max(e.due, l.entries[n-1].due)
	}
	e.value = bytes.Clone(e.value)
	l.entries = append(l.entries, e)
	b.commit(t, partition)
	return o
}

// commit commits the entries that the followers have by now.
func (b *Broker) commit(t *topic, partition int) {
	l := t.logs[partition]
	var readable bool
	for ; l.committed < len(l.entries) && !b.down && !b.offline(t, partition); l.committed++ {
		e := &l.entries[l.committed]
		if e.due > b.now() {
			b.schedule(&l.catchUp, e.due)
			break
		}
		b.settle(e)
		readable = true
	}
	if readable {
		t.touch(partition)
	}
}

// commitAll commits all entries, even those that the followers do not have.
func (b *Broker) commitAll(t *topic, partition int) {
	l := t.logs[partition]
	for ; l.committed < len(l.entries); l.committed++ {
		b.settle(&l.entries[l.committed])
	}
	b.cancel(&l.catchUp)
	t.touch(partition)
}

func (b *Broker) settle(e *entry) {
	e.at = b.now()
	if e.by != nil {
		e.by.committed()
		e.by = nil
	}
}

// cut removes all entries but the first n.
func (b *Broker) cut(l *partitionLog, n int) {
	clear(l.entries[n:])
	l.entries = l.entries[:n]
	l.committed = min(l.committed, n)
	if l.committed == n {
		b.cancel(&l.catchUp)
	}
}

// eachLog calls do for every log, always in the same order.
func (b *Broker) eachLog(do func(t *topic, partition int)) {
	names := make([]string, 0, len(b.topics))
	for name := range b.topics {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for partition := range b.topics[name].logs {
			do(b.topics[name], partition)
		}
	}
}

// endOf returns the offset at which the records of a leader epoch and of earlier epochs end.
func (l *partitionLog) endOf(epoch int) int64 {
	return l.start + int64(sort.Search(len(l.entries), func(i int) bool { return l.entries[i].epoch > epoch }))
}
