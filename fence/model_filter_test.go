package fence

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/explore"
	"github.com/goneli/neli/internal/seeded"
)

// The model of Stamp and Filter: two terms with tokens 1 and 2, two partitions, and one reader that
// may crash and restart from what it had stored. Records of term 1 may be in flight for ever.

// Records, by number. a0 and b0 have the same key.
const (
	recA0 = int8(iota + 1)
	recA1
	barrier0
	barrier1
	recB0
	recC0
	recB1
)

var filterRecords = [...]struct {
	name      string
	token     int64
	partition int32
}{
	recA0: {"a0", 1, 0}, recA1: {"a1", 1, 1}, barrier0: {"barrier 0", 2, 0}, barrier1: {"barrier 1", 2, 1},
	recB0: {"b0", 2, 0}, recC0: {"c0", 2, 0}, recB1: {"b1", 2, 1},
}

// filterConfig says which rules are left out.
type filterConfig struct {
	name       string
	noBarrier  bool // the new leader writes no barrier
	oneBarrier bool // or only one, in partition 0
	readEarly  bool // it reads before its barriers are acknowledged
	forget     bool // the state is not stored with the offset
	compacted  bool
	want       string
}

const (
	takesLate  = "a reader takes a former leader's record that the new one has not seen"
	dropsSeen  = "a reader drops a record that the new leader has seen"
	losesRight = "the rightful leader's record is lost"
)

// records is a set of records.
type records uint8

func (s records) has(r int8) bool         { return s&(1<<r) != 0 }
func (s records) with(rs ...int8) records { return set(s, rs) }

func set(s records, rs []int8) records {
	for _, r := range rs {
		s |= 1 << r
	}
	return s
}

type filterWorld struct {
	k         *filterConfig
	logs      [2][]int8 // 0: compaction has removed the record
	underWay  records
	sent      records
	acked     records
	leader    int8 // 0 not begun, 1 its barriers are sent, 2 it has read, 3 it has written
	seen      records
	position  [2]int8
	state     [2]string // of the reader's Filter, by partition
	stored    [2]int8
	kept      [2]string
	got, drop records
	crashes   int8
	gone      records
}

func (w *filterWorld) clone() *filterWorld {
	t := *w
	for p := range t.logs {
		t.logs[p] = bytes8(t.logs[p])
	}
	return &t
}

func bytes8(log []int8) []int8 { return append([]int8(nil), log...) }

// filter returns the reader's Filter, made anew from this state.
func filter(state [2]string) *Filter {
	var f Filter
	for p, s := range state {
		if err := f.Restore("t", int32(p), s); err != nil {
			panic(err)
		}
	}
	return &f
}

// admit asks a filter for one record.
func admit(f *Filter, r int8) bool {
	of := filterRecords[r]
	ok, err := f.Admit("t", of.partition, Stamp(of.token, 0, "g"))
	if err != nil {
		panic(err)
	}
	return ok
}

func (w *filterWorld) Steps(step func(func() string, *filterWorld, string)) {
	give := func(t *filterWorld, what string, args ...any) {
		step(func() string { return fmt.Sprintf(what, args...) }, t, t.wrong())
	}
	for _, r := range []int8{recA0, recA1} { // at any time: the leader may have been suspended after its last check
		if !w.sent.has(r) {
			give(w.send(r), "the former leader sends %s", filterRecords[r].name)
		}
	}
	w.lead(give)
	w.append(give)
	w.compact(give)
	w.read(give)
}

func (w *filterWorld) send(rs ...int8) *filterWorld {
	t := w.clone()
	t.sent, t.underWay = t.sent.with(rs...), t.underWay.with(rs...)
	return t
}

func (w *filterWorld) lead(give func(*filterWorld, string, ...any)) {
	barriers := []int8{barrier0, barrier1}
	if w.k.oneBarrier {
		barriers = barriers[:1]
	}
	if w.k.noBarrier {
		barriers = nil
	}
	switch w.leader {
	case 0:
		t := w.send(barriers...)
		t.leader = 1
		give(t, "the new leader sends its barriers")
	case 1:
		if all := records(0).with(barriers...); w.acked&all != all && !w.k.readEarly {
			return
		}
		t := w.clone()
		t.leader = 2
		var f Filter
		for p := range t.logs {
			for _, r := range w.prefix(p) {
				if admit(&f, r) {
					t.seen = t.seen.with(r)
				}
			}
		}
		give(t, "the new leader has read")
	case 2:
		t := w.send(recB0, recC0, recB1)
		t.leader = 3
		give(t, "the new leader writes")
	}
}

// prefix returns the records that the new leader reads of a partition: up to its barrier, or to the end.
func (w *filterWorld) prefix(p int) []int8 {
	for i, r := range w.logs[p] {
		if r == barrier0 || r == barrier1 {
			return w.logs[p][:i+1]
		}
	}
	return w.logs[p]
}

func (w *filterWorld) append(give func(*filterWorld, string, ...any)) {
	for r := recA0; r <= recB1; r++ {
		if !w.underWay.has(r) || r == recC0 && !w.acked.has(recB0) { // one producer's records stay in order
			continue
		}
		t := w.clone()
		t.underWay &^= records(0).with(r)
		p := filterRecords[r].partition
		t.logs[p] = append(t.logs[p], r)
		t.acked = t.acked.with(r)
		give(t, "%s is appended", filterRecords[r].name)
	}
}

// compact removes the earlier one of a0 and b0 from the log.
func (w *filterWorld) compact(give func(*filterWorld, string, ...any)) {
	if !w.k.compacted {
		return
	}
	first := -1
	for i, r := range w.logs[0] {
		if r != recA0 && r != recB0 {
			continue
		}
		if first < 0 {
			first = i
			continue
		}
		t := w.clone()
		t.gone = t.gone.with(t.logs[0][first])
		t.logs[0][first] = 0
		give(t, "compaction removes %s", filterRecords[w.logs[0][first]].name)
	}
}

func (w *filterWorld) read(give func(*filterWorld, string, ...any)) {
	for p := range w.logs {
		if int(w.position[p]) == len(w.logs[p]) {
			continue
		}
		t := w.clone()
		r := w.logs[p][w.position[p]]
		t.position[p]++
		if r != 0 {
			f := filter(w.state)
			if admit(f, r) {
				t.got = t.got.with(r)
			} else {
				t.drop = t.drop.with(r)
			}
			for p := range t.state {
				t.state[p] = f.State("t", int32(p))
			}
		}
		give(t, "the reader reads %s", filterRecords[r].name)
	}
	if w.stored != w.position || w.kept != w.state {
		t := w.clone()
		if t.stored = w.position; !w.k.forget {
			t.kept = w.state
		}
		give(t, "the reader stores its position")
	}
	if w.crashes > 0 {
		t := w.clone()
		t.crashes--
		t.position, t.state = w.stored, w.kept
		give(t, "the reader crashes, and starts anew")
	}
}

// wrong returns what is wrong, if anything. Once the new leader has read, the reader must take those of
// the former leader's records that the new leader has seen, and no others.
func (w *filterWorld) wrong() string {
	former := records(0).with(recA0, recA1)
	switch {
	case w.leader >= 2 && w.got&former&^w.seen != 0:
		return takesLate
	case w.leader >= 2 && w.drop&former&w.seen&^w.got != 0:
		return dropsSeen
	case w.drop&records(0).with(recB0, recC0, recB1) != 0, w.gone.has(recB0):
		return losesRight
	}
	return ""
}

func (*filterWorld) Look() string { return "" }
func (w *filterWorld) Views() string {
	return fmt.Sprintf("    logs %v, read up to %v\n", w.logs, w.position)
}

func (w *filterWorld) encode() []byte {
	var b bytes.Buffer
	fmt.Fprint(&b, w.logs, w.underWay, w.sent, w.acked, w.leader, w.seen, w.position, w.state, w.stored, w.kept, w.got, w.drop, w.crashes, w.gone)
	return b.Bytes()
}

func TestFilterModel(t *testing.T) {
	if seeded.Race {
		t.Skip("one goroutine, of which the race detector has nothing to see: make sim runs it")
	}
	for _, k := range []filterConfig{
		{name: "barriers, and the state beside the offset"},
		{name: "no barrier", noBarrier: true, want: takesLate},
		{name: "a barrier in one partition", oneBarrier: true, want: takesLate},
		{name: "read before the barriers are acknowledged", readEarly: true, want: takesLate},
		{name: "the state is not stored", forget: true, want: takesLate},
		{name: "a compacted topic", compacted: true, want: losesRight},
	} {
		t.Run(k.name, func(t *testing.T) {
			s := explore.All(func() *filterWorld { return &filterWorld{k: &k, crashes: 2} }, (*filterWorld).encode)
			t.Logf("%d states, %d steps", s.States(), s.Moves)
			require.Equal(t, k.want, s.Fault, "%s", s)
		})
	}
}
