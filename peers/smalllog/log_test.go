package smalllog_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/goneli/neli/peers/smalllog"
)

func TestIDsDiffer(t *testing.T) {
	seen := map[smalllog.ID]bool{}
	for range 1000 {
		id := smalllog.NewID()
		require.False(t, seen[id], "an id was drawn twice")
		seen[id] = true
	}
}

func TestRecordOfAnotherIncarnationIsRefused(t *testing.T) {
	id, former := smalllog.NewID(), smalllog.NewID()
	l := smalllog.New(id, smalllog.DefaultLimits, 0)
	_, err := l.Append(former, []byte("late"), 9)
	require.ErrorIs(t, err, smalllog.ErrIncarnation)
	require.ErrorContains(t, err, former.String())
	require.ErrorContains(t, err, id.String())
	assert.Zero(t, l.End(), "a refused record was appended")
	assert.Zero(t, l.Top(), "the ballot of a refused record counts")
	o, err := l.Append(id, []byte("now"), 3)
	require.NoError(t, err)
	assert.Zero(t, o)
}

func TestRecordTooLargeIsRefused(t *testing.T) {
	id := smalllog.NewID()
	l := smalllog.New(id, smalllog.DefaultLimits, 0)
	_, err := l.Append(id, make([]byte, smalllog.MaxValue+1), 0)
	require.ErrorIs(t, err, smalllog.ErrTooLarge)
	_, err = l.Append(id, make([]byte, smalllog.MaxValue), 0)
	require.NoError(t, err)
}

func TestTopIncludesFormerIncarnations(t *testing.T) {
	id := smalllog.NewID()
	l := smalllog.New(id, smalllog.DefaultLimits, 7)
	assert.EqualValues(t, 7, l.Top())
	for _, b := range []int64{3, 9, 8} {
		_, err := l.Append(id, nil, b)
		require.NoError(t, err)
	}
	assert.EqualValues(t, 9, l.Top())
}

func TestSlowReaderIsCutOff(t *testing.T) {
	id := smalllog.NewID()
	l := smalllog.New(id, smalllog.Limits{Records: 4, Bytes: 1 << 10}, 0)
	r := l.Subscribe(0)
	for i := range 5 {
		_, err := l.Append(id, fmt.Append(nil, i), 0)
		require.NoError(t, err)
	}
	_, _, ok, err := r.Read()
	require.ErrorIs(t, err, smalllog.ErrSlow)
	require.False(t, ok)
	_, _, ok, err = r.Read()
	require.ErrorIs(t, err, smalllog.ErrSlow, "for good")
	require.False(t, ok)

	again := l.Subscribe(r.Next())
	assert.EqualValues(t, 1, again.Next(), "a reader that comes back does not see the gap")
}

// TestEveryScheduleOfASmallLog runs all schedules of twelve steps of one writer and two readers,
// on a log that keeps three records. Each step appends, or lets one of the readers read.
func TestEveryScheduleOfASmallLog(t *testing.T) {
	const steps = 12
	schedules := 1
	for range steps {
		schedules *= 3
	}
	id := smalllog.NewID()
	for s := range schedules {
		l := smalllog.New(id, smalllog.Limits{Records: 3, Bytes: 1 << 10}, 0)
		readers := []*smalllog.Reader{l.Subscribe(0), l.Subscribe(1 << 40)}
		var wanted [2]int64
		for n, rest := 0, s; n < steps; n, rest = n+1, rest/3 {
			if rest%3 == 2 {
				o, err := l.Append(id, []byte{byte(l.End())}, 0)
				if err != nil || o != l.End()-1 {
					t.Fatalf("schedule %d: append returned %d, %v", s, o, err)
				}
				continue
			}
			i := rest % 3
			value, o, ok, err := readers[i].Read()
			gone := wanted[i] < l.End()-3
			switch {
			case gone != errors.Is(err, smalllog.ErrSlow), gone && ok:
				t.Fatalf("schedule %d: record %d is gone: %v, and the reader got %v, %v", s, wanted[i], gone, ok, err)
			case !gone && ok != (wanted[i] < l.End()):
				t.Fatalf("schedule %d: record %d of %d: %v", s, wanted[i], l.End(), ok)
			case ok && (o != wanted[i] || !bytes.Equal(value, []byte{byte(o)})):
				t.Fatalf("schedule %d: wanted %d, got %d with value %v", s, wanted[i], o, value)
			case ok:
				wanted[i]++
			}
		}
	}
}

// model is a log that keeps everything.
type model struct {
	records [][]byte
	top     int64
}

// kept returns the offset of the oldest record that a log with these limits keeps.
func (m *model) kept(limits smalllog.Limits) int64 {
	n, size := 0, 0
	for i := len(m.records) - 1; i >= 0; i-- {
		size += len(m.records[i])
		if n == limits.Records || n > 0 && size > limits.Bytes {
			break
		}
		n++
	}
	return int64(len(m.records) - n)
}

type following struct {
	r    *smalllog.Reader
	next int64
}

// schedule runs a random schedule on a log, and compares the log with the model.
func schedule(t *rapid.T) {
	limits := smalllog.Limits{Records: rapid.IntRange(1, 9).Draw(t, "records"), Bytes: rapid.IntRange(0, 60).Draw(t, "bytes")}
	id := smalllog.NewID()
	l := smalllog.New(id, limits, 0)
	m := &model{}
	var readers []*following
	t.Repeat(map[string]func(*rapid.T){
		"append": func(t *rapid.T) {
			value := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "value")
			ballot := rapid.Int64Range(0, 1<<61).Draw(t, "ballot")
			o, err := l.Append(id, value, ballot)
			require.NoError(t, err)
			require.EqualValues(t, len(m.records), o)
			m.records = append(m.records, value)
			m.top = max(m.top, ballot)
		},
		"append for another": func(t *rapid.T) {
			_, err := l.Append(smalllog.NewID(), []byte("x"), 1<<62)
			require.ErrorIs(t, err, smalllog.ErrIncarnation)
		},
		"subscribe": func(t *rapid.T) {
			from := rapid.Int64Range(-3, int64(len(m.records))+3).Draw(t, "from")
			r := l.Subscribe(from)
			require.Equal(t, max(m.kept(limits), min(from, int64(len(m.records)))), r.Next())
			readers = append(readers, &following{r, r.Next()})
		},
		"read": func(t *rapid.T) {
			if len(readers) == 0 {
				return
			}
			f := readers[rapid.IntRange(0, len(readers)-1).Draw(t, "reader")]
			value, o, ok, err := f.r.Read()
			if f.next < m.kept(limits) {
				require.ErrorIs(t, err, smalllog.ErrSlow)
				require.False(t, ok)
				return
			}
			require.NoError(t, err)
			require.Equal(t, f.next < int64(len(m.records)), ok)
			if ok {
				require.Equal(t, f.next, o)
				require.Equal(t, m.records[o], value)
				f.next++
			}
		},
		"": func(t *rapid.T) {
			require.EqualValues(t, len(m.records), l.End())
			require.Equal(t, m.kept(limits), l.First())
			require.Equal(t, m.top, l.Top())
		},
	})
}

func TestLogAgainstAModel(t *testing.T) { rapid.Check(t, schedule) }

func FuzzLog(f *testing.F) { f.Fuzz(rapid.MakeFuzz(schedule)) }
