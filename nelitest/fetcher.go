package nelitest

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/goneli/neli/kafka"
)

// fetcher brings records from the logs into a client's buffer.
type fetcher struct {
	c      *client
	p      *poller // notified when there is something in the buffer
	topic  *topic  // nil: none
	reset  string  // what to do when out of range: "latest", "earliest", else fail
	parts  []fetchPart
	dirty  []int // partitions to look at, in the order in which notice named them
	buffer queue[item]
	full   bool     // the buffer is full; more is fetched when it is empty
	ev     event    // the next fetch
	polled bool     // the fetch that was pending at the suspension has returned
	missed bool     // it was reported that the topic is unknown
	told   *refusal // the refusal that was reported since the last Assign or Join
}

type fetchPart struct {
	active bool
	dirty  bool
	pos    int64
	epoch  int // leader epoch of the record read last; −1: none was read
}

// item is a result of Poll.
type item struct {
	rec kafka.Record
	err error
}

// bufferSize is the number of records that are fetched ahead.
const bufferSize = 1000

func (f *fetcher) init(c *client, p *poller, reset string) {
	*f = fetcher{c: c, p: p, reset: reset}
	f.ev = c.event(taskFunc(f.fetch))
}

// follow selects a topic. It does not start to read a partition.
func (f *fetcher) follow(t *topic) {
	f.quit()
	f.topic = t
	t.readers = append(t.readers, f)
}

// quit forgets everything.
func (f *fetcher) quit() {
	if f.topic != nil {
		f.topic.readers = slices.DeleteFunc(f.topic.readers, func(x *fetcher) bool { return x == f })
		f.topic = nil
	}
	f.parts, f.dirty, f.missed, f.full, f.told = f.parts[:0], f.dirty[:0], false, false, nil
	f.buffer.clear()
	f.c.b.cancel(&f.ev)
}

// start starts to read partition i at pos.
func (f *fetcher) start(i int, pos int64) {
	for len(f.parts) <= i {
		f.parts = append(f.parts, fetchPart{})
	}
	f.parts[i].active, f.parts[i].pos, f.parts[i].epoch = true, pos, -1
	f.notice(i)
	f.look(f.latency())
}

// stop stops reading the partitions, and drops what was fetched from them.
func (f *fetcher) stop(partitions []int) {
	if len(partitions) == 0 {
		return
	}
	for _, i := range partitions {
		if i < len(f.parts) {
			f.parts[i].active = false
		}
	}
	for n := f.buffer.len(); n > 0; n-- {
		if it := f.buffer.pop(); it.err != nil || f.parts[it.rec.Partition].active {
			f.buffer.push(it)
		}
	}
	f.refill()
}

// refill fetches more once a buffer that was full is empty.
func (f *fetcher) refill() {
	if f.full && f.buffer.len() == 0 {
		f.full = false
		f.look(0)
	}
}

// notice makes the next fetch look at the partition.
func (f *fetcher) notice(i int) {
	if i >= len(f.parts) || !f.parts[i].active || f.parts[i].dirty {
		return
	}
	f.parts[i].dirty = true
	f.dirty = append(f.dirty, i)
	f.look(f.latency())
}

// look schedules the next fetch after in, plus jitter, unless it is due earlier.
func (f *fetcher) look(in time.Duration) { f.c.b.sooner(&f.ev, f.c.b.now()+f.c.lag(in)) }

func (f *fetcher) latency() time.Duration { return f.c.b.opts.ReadLatency + f.c.m.slow }

// recheck is called when an obstacle to fetching may be gone.
func (f *fetcher) recheck() {
	if !f.c.m.suspended {
		f.polled = false
	}
	if f.topic != nil {
		f.look(f.latency())
	}
}

// fetch runs when records may have become readable. If fetching is not possible now, it changes nothing
// and leaves the work to recheck.
func (f *fetcher) fetch() {
	m := f.c.m
	if f.topic == nil || !f.c.reaches(LinkReads) || m.suspended && f.polled {
		return
	}
	before := f.buffer.len()
	switch r := m.refuses(LinkReads); {
	case r != nil && r == f.told:
	case r != nil:
		f.told = r
		f.fail(r.err)
	case f.topic.exists:
		f.missed = false
		f.fetchDirty()
	case !f.missed && len(f.dirty) > 0:
		f.missed = true
		f.fail(fmt.Errorf("%w: %s", kafka.ErrUnknownTopic, f.topic.name))
	}
	// A suspended process sends no requests, but its machine still receives the answer to the pending one.
	f.polled = m.suspended && f.buffer.len() > before
	if f.buffer.len() > 0 {
		f.p.notify()
	}
}

func (f *fetcher) fail(err error) {
	f.buffer.push(item{err: err})
	f.p.notify()
}

func (f *fetcher) fetchDirty() {
	const never = time.Duration(-1)
	next, kept := never, f.dirty[:0]
	for _, i := range f.dirty {
		at, more := f.fetchFrom(i)
		if !more {
			f.parts[i].dirty = false
			continue
		}
		kept = append(kept, i)
		if at > 0 && (next == never || at < next) {
			next = at
		}
	}
	f.dirty = kept
	if next != never {
		f.look(next - f.c.b.now())
	}
}

// fetchFrom fetches the records that are readable. It returns whether the partition must be looked at
// again, and when, if that is known.
func (f *fetcher) fetchFrom(i int) (at time.Duration, more bool) {
	part := &f.parts[i]
	if !part.active {
		return 0, false
	}
	if i >= len(f.topic.logs) {
		part.active = false
		f.fail(unknown(f.topic.name, i))
		return 0, false
	}
	if f.c.b.offline(f.topic, i) {
		return 0, true
	}
	l := f.topic.logs[i]
	if err := part.fault(l); err != nil {
		part.epoch = -1
		switch f.reset {
		case "latest":
			part.pos = l.readable()
		case "earliest":
			part.pos = l.start
		default:
			part.active = false
			f.fail(fmt.Errorf("%w: %d of partition %d, which has %d to %d", err, part.pos, i, l.start, l.readable()))
			return 0, false
		}
	}
	for ; part.pos < l.readable(); part.pos++ {
		e := l.entries[part.pos-l.start]
		if near := e.at + f.latency(); near > f.c.b.now() {
			return near, true
		}
		if f.buffer.len() >= bufferSize {
			f.full = true
			return 0, true
		}
		part.epoch = e.epoch
		if !e.hidden {
			f.buffer.push(item{rec: kafka.Record{Partition: i, Offset: part.pos, Value: e.value, Epoch: e.epoch, Time: f.c.b.line.epoch.Add(e.at)}})
		}
	}
	return 0, false
}

// fault returns what is wrong with the position; nil: nothing. A client asks a new leader where the epoch
// that it read last ends. So it notices that records are gone even if the log has grown again.
func (p *fetchPart) fault(l *partitionLog) error {
	switch {
	case p.epoch >= 0 && p.epoch < l.epoch && p.pos > l.endOf(p.epoch):
		return kafka.ErrTruncated
	case p.pos < l.start || p.pos > l.end():
		return kafka.ErrOutOfRange
	}
	return nil
}

// take removes the next item from the buffer, which is not empty.
func (f *fetcher) take() item {
	it := f.buffer.pop()
	if it.err == nil {
		it.rec.Value = bytes.Clone(it.rec.Value)
	}
	f.refill()
	return it
}
