package lease

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestATrailRemembersTheLastMarks(t *testing.T) {
	tr := trail{}
	for o := range int64(10_000) {
		tr.add(o*2, uint64(o), 100)
	}
	require.LessOrEqual(t, len(tr.marks), 400)
	require.False(t, tr.differs(3, 77), "too long ago to tell")
	require.False(t, tr.differs(19_998, 9999))
	require.False(t, tr.differs(30_000, 9999), "the fold has not changed since")
	require.True(t, tr.differs(30_000, 9998))
	require.False(t, tr.differs(19_601, 9800), "between two marks the older counts")
	require.True(t, tr.differs(19_601, 9801))
}

func TestATrailForgetsOldSessions(t *testing.T) {
	tr := trail{knownAt: 5}
	beat := func(n uint64, read int64) *Record { return &Record{Kind: Beat, Session: Session{"x", n}, Read: read} }
	require.False(t, tr.contradicts(beat(1, 4)), "the Beat was sent before the fold was known")
	require.True(t, tr.contradicts(beat(1, 5)), "its sender holds nothing in this fold")
	for n := range uint64(2 * maxEnded) {
		tr.end([]Session{{"x", n}}, int64(10+n))
	}
	require.LessOrEqual(t, len(tr.ended), maxEnded)
	require.False(t, tr.contradicts(beat(1, 5)), "the end of that session is forgotten")
	last := uint64(2*maxEnded - 1)
	require.False(t, tr.contradicts(beat(last, int64(10+last)-1)), "its sender still held a role then")
	require.True(t, tr.contradicts(beat(last, int64(10+last))), "its sender had read that it lost its last role")
}

// Where offsets have no gaps, any record beyond the next offset shows a loss. Where they may have
// gaps it is an ordinary record.
func TestGapInADenseLogIsALoss(t *testing.T) {
	for name, read := range map[string]func(l *Lease, o int64) Event{
		"a known record": func(l *Lease, o int64) Event {
			return l.Read(o, &Record{Kind: Hello, Session: Session{"y", 1}, Read: -1}, start)
		},
		"a record without effect":     func(l *Lease, o int64) Event { return l.Skip(o, start) },
		"a record of a newer version": func(l *Lease, o int64) Event { return l.ReadNewer(o, start) },
	} {
		t.Run(name, func(t *testing.T) {
			x, _ := filled(100)
			o := x.Offset()
			require.False(t, read(x, o+3).Rewound, "a gap means nothing in a log that may have gaps")
			x.rules.Dense = true
			id := x.Session()
			require.False(t, read(x, o+4).Rewound, "took the next record for a loss")
			require.True(t, x.Known())
			e := read(x, o+7)
			require.True(t, e.Rewound, "missed the loss of two records")
			require.EqualValues(t, 2, e.Missing)
			require.False(t, x.Known())
			require.NotEqual(t, id, x.Session())
			require.Equal(t, o+7, x.Offset())
			require.Zero(t, read(x, o).Missing, "a log that went back lost no records")
		})
	}
}

// Any record at an offset already read, or whose sender has read beyond it, shows that the log went back.
func TestRewoundLogIsNoticed(t *testing.T) {
	for name, read := range map[string]func(l *Lease, o int64) Event{
		"a known record": func(l *Lease, o int64) Event {
			return l.Read(o, &Record{Kind: Hello, Session: Session{"y", 1}, Read: -1}, start)
		},
		"a record without effect":     func(l *Lease, o int64) Event { return l.Skip(o, start) },
		"a record of a newer version": func(l *Lease, o int64) Event { return l.ReadNewer(o, start) },
		"its sender had read further": func(l *Lease, o int64) Event {
			return l.Read(o+1, &Record{Kind: Hello, Session: Session{"y", 1}, Read: o + 1}, start)
		},
	} {
		t.Run(name, func(t *testing.T) {
			x, _ := filled(100)
			id, o := x.Session(), x.Offset()
			e := read(x, o)
			require.True(t, e.Rewound)
			require.False(t, x.Known())
			require.NotEqual(t, id, x.Session())
			require.GreaterOrEqual(t, x.Offset(), o)
		})
	}
}
