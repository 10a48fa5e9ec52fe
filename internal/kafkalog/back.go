package kafkalog

import (
	"maps"
	"slices"
	"sync"

	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/kafka"
)

// farther is how many times as far before the end reading begins, each time that nothing was
// found. A topic of a large group that was closed in disorder has many records in which nothing
// helps a newcomer.
const farther = 4

// maxFarther is how often: 128,000 records before the end is the farthest. To read them takes a
// second or two; without a bound a topic that is full of rubbish would be read from its start.
const maxFarther = 3

// lookBack is what is needed to begin reading of partitions again, farther back. Only ask may
// be called concurrently.
type lookBack struct {
	parts []backPart

	mu    sync.Mutex
	asked map[int]func() bool // by partition: whether it is still wanted
}

// backPart is where reading of a partition began.
type backPart struct {
	begun int64             // there
	at    kafka.OffsetRange // when the log had this extent
	times int               // how often it was begun again
}

// begin notes that reading of p begins at an offset near the end.
func (b *lookBack) begin(p int, offset int64, e kafka.OffsetRange) {
	for len(b.parts) <= p {
		b.parts = append(b.parts, backPart{})
	}
	b.parts[p] = backPart{begun: offset, at: e}
}

// ask asks for reading of p to begin again, unless wanted says otherwise when it is time.
func (b *lookBack) ask(p int, wanted func() bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.asked == nil {
		b.asked = map[int]func() bool{}
	}
	b.asked[p] = wanted
}

// take returns the partitions that were asked for since, in order, and are still wanted.
func (b *lookBack) take() (wanted []int) {
	b.mu.Lock()
	asked := b.asked
	b.asked = nil
	b.mu.Unlock()
	for _, p := range slices.Sorted(maps.Keys(asked)) {
		if asked[p]() {
			wanted = append(wanted, p)
		}
	}
	return wanted
}

// next is where reading of p is to begin again. ok is false if there is nothing before, or if
// it has been far enough.
func (b *lookBack) next(p int) (offset int64, ok bool) {
	if p >= len(b.parts) || b.parts[p].times >= maxFarther {
		return 0, false
	}
	part := &b.parts[p]
	part.times++
	reach := int64(history)
	for range part.times {
		reach *= farther
	}
	offset = max(part.at.Start, part.at.End-reach)
	return offset, offset < part.begun
}

func (k *kafkaLog) Back(p int, wanted func() bool) { k.back.ask(p, wanted) }

// goBack begins reading again, farther back, where that was asked for. It reports whether it
// was anywhere.
func (k *kafkaLog) goBack() bool {
	moved := false
	for _, p := range k.back.take() {
		offset, ok := k.back.next(p)
		if !ok {
			continue
		}
		e := k.back.parts[p].at
		e.End = k.position[p] // what was read already is of unknown age
		k.ready = slices.DeleteFunc(k.ready, func(e elector.Entry) bool { return e.Partition == p })
		k.back.parts[p].begun = offset
		k.begin(p, offset, e)
		moved = true
	}
	return moved
}
