package kafkalog

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/kafka"
)

// reaches are the numbers of records before a log's end at which reading begins: the first one after
// a start, the next one whenever the records read so far do not show the holders. Most groups have a
// Snapshot among the newest 200 records, and a member that is up writes one for a newcomer, so 2K
// records are rarely needed, and a hundred members that start at once would read 200,000 of them before
// the first one leads. The end of a topic can have many records that do not help a newcomer, for
// example after a large group has ended without saying goodbye. 128K records take a second or two.
// Without a limit a topic full of rubbish would be read from its start.
var reaches = [...]int64{200, history, 8 * history, 64 * history}

// history is 2K: enough to find a Snapshot and the records written while that was on its way.
const history = 2 * elector.History

// lookBack lets reading of a partition begin again, farther back. Only ask may be called concurrently.
type lookBack struct {
	parts []backPart

	mu    sync.Mutex
	asked map[int]func() bool // by partition: whether it is still wanted
}

// backPart is where reading of a partition began.
type backPart struct {
	begun int64             // the offset
	at    kafka.OffsetRange // the extent of the log then
	times int               // how often reading has gone back: reaches[times] was reached
}

// begin notes that reading of p begins at an offset near the end.
func (b *lookBack) begin(p int, offset int64, e kafka.OffsetRange) {
	for len(b.parts) <= p {
		b.parts = append(b.parts, backPart{})
	}
	b.parts[p] = backPart{begun: offset, at: e}
}

// ask requests that reading of p begin again, farther back, unless wanted returns false when the reader gets to it.
func (b *lookBack) ask(p int, wanted func() bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.asked == nil {
		b.asked = map[int]func() bool{}
	}
	b.asked[p] = wanted
}

// take returns the requested partitions that are still wanted, ascending.
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

// next returns where reading of p begins again. ok is false if nothing lies before, or reaches has no more.
func (b *lookBack) next(p int) (offset int64, ok bool) {
	if p >= len(b.parts) || b.parts[p].times+1 >= len(reaches) {
		return 0, false
	}
	part := &b.parts[p]
	part.times++
	offset = max(part.at.Start, part.at.End-reaches[part.times])
	return offset, offset < part.begun
}

func (k *kafkaLog) Back(p int, wanted func() bool) { k.back.ask(p, wanted) }

// goBack goes back on the requested partitions, and reports whether any did.
func (k *kafkaLog) goBack(ctx context.Context) bool {
	moved := false
	for _, p := range k.back.take() {
		offset, ok := k.back.next(p)
		if !ok {
			continue
		}
		e := k.back.parts[p].at
		e.End = k.position[p] // the records read so far are of unknown age
		k.ready = slices.DeleteFunc(k.ready, func(e elector.Entry) bool { return e.Partition == p })
		k.back.parts[p].begun = offset
		if offset == 0 && e.Start == 0 {
			k.askEpochs(ctx)
		}
		k.begin(p, offset, e)
		moved = true
	}
	return moved
}
