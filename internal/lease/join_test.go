package lease

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/seeded"
)

var start = clock.Instant{Mono: 1e15, Wall: 1e15, Raw: 1e15, Boot: 1e15}

func unknown(from int64) *Lease {
	l := New(Rules{Process: "me", T: time.Second, History: 1000})
	l.Begin(from, false, start)
	return l
}

// The number of records kept before the fold is known is bounded. A Snapshot that needs dropped
// records is refused, and a newer one is adopted.
func TestRecordsKeptBeforeTheFoldIsKnownAreBounded(t *testing.T) {
	l := unknown(1)
	o := int64(1)
	for ; o <= maxKept+500; o++ {
		l.Read(o, &Record{Kind: Beat, Session: Session{"x", 1}, Read: o - 1, T: time.Second, Longest: time.Second}, start)
	}
	require.LessOrEqual(t, len(l.join.kept), maxKept)
	f := newFold()
	f.apply(&Record{Kind: Claim, Session: Session{"x", 1}, Read: -1, T: time.Second, Fresh: true, Roles: []int32{0}}, 0, start, nil)
	snapshot := func(read int64) *Record {
		s := *(&Lease{fold: f}).states()[0]
		s.Hash, s.Newer, s.Parts = f.hash, none, 1
		return &Record{Kind: Snapshot, Session: Session{"x", 1}, Read: read, Longest: time.Second, State: &s}
	}
	l.Read(o, snapshot(400), start)
	require.False(t, l.Known(), "adopts a Snapshot, though records after its read were dropped")
	l.Read(o+1, snapshot(600), start)
	require.True(t, l.Known())
}

func TestRecordsWithManyRolesCountMoreOfTheBound(t *testing.T) {
	l := unknown(0)
	roles := make([]int32, MaxClaim)
	for i := range roles {
		roles[i] = int32(i)
	}
	for o := range int64(1000) {
		l.Read(o, &Record{Kind: Claim, Session: Session{"x", 1}, Read: o - 1, T: time.Second, Roles: roles}, start)
	}
	require.Less(t, len(l.join.kept), 2*maxKept*100/MaxClaim)
}

// A Snapshot that names more roles than a log may have is dropped while it is read.
func TestPartsOfASnapshotAreBounded(t *testing.T) {
	l := unknown(1)
	roles := make([]int32, MaxClaim)
	s := func(part int) *State {
		return &State{Part: part, Parts: maxParts, Newer: none, Holders: []Holder{{Session{"x", 1}, "", time.Second, 0}},
			Grants: []Grant{{Roles: roles}}}
	}
	for part := range 200 {
		l.Read(int64(part)+1, &Record{Kind: Snapshot, Session: Session{"x", 1}, Read: 0, Longest: 0, State: s(part)}, start)
		if p := l.join.parts; p != nil {
			require.LessOrEqual(t, p.roles, MaxRoles)
		}
	}
}

// Parts of several Snapshots may be interleaved, repeated, and in any order.
func TestPartsOfSeveralSnapshots(t *testing.T) {
	x, now := filled(1000)
	a := x.Snapshot(now)[0]
	parts := split(a, 3)
	other := split(a, 3)
	for i := range other {
		other[i].Session.Process = "another"
	}
	l := unknown(x.Offset() + 1)
	o := x.Offset()
	read := func(r Record) bool {
		o++
		l.Read(o, &r, now)
		return l.Known()
	}
	require.False(t, read(parts[1]))
	require.False(t, read(other[2]), "adopts a Snapshot whose first part it missed")
	require.False(t, read(parts[0]))
	require.False(t, read(parts[0]))
	require.True(t, read(parts[2]))
	require.Equal(t, x.fold.hash, l.fold.hash)
}

// A Snapshot that contradicts itself is not adopted.
func TestContradictorySnapshotIsNotAdopted(t *testing.T) {
	for name, spoil := range map[string]func(*State){
		"another hash":      func(s *State) { s.Hash++ },
		"another T":         func(s *State) { s.Holders[0].T++ },
		"another holder":    func(s *State) { s.Grants[0].Holder = 1 },
		"another token":     func(s *State) { s.Grants[0].Token++ },
		"another last":      func(s *State) { s.Holders[1].Last++ },
		"a role twice":      func(s *State) { s.Grants[1].Roles = s.Grants[0].Roles },
		"a role missing":    func(s *State) { s.Grants = s.Grants[1:] },
		"a newer version":   func(s *State) { s.Newer = 3 },
		"a holder too many": func(s *State) { s.Grants[0].Holder = 1000 },
	} {
		t.Run(name, func(t *testing.T) {
			x, now := filled(500)
			r := x.Snapshot(now)[0]
			spoil(r.State)
			l := unknown(x.Offset() + 1)
			l.Read(x.Offset()+1, &r, now)
			require.False(t, l.Known())
		})
	}
}

// A flood of meaningless records costs no memory, whether the fold is known or not.
func TestAFloodCostsNoMemory(t *testing.T) {
	if testing.Short() || seeded.Race {
		t.Skip("millions of records: make sim runs it")
	}
	session := func(i int64) Session { return Session{fmt.Sprint("s", i%100_000), 1} }
	for name, read := range map[string]func(l *Lease, o int64){
		"hello":   func(l *Lease, o int64) { l.Read(o, &Record{Kind: Hello, Session: session(o), Read: o - 1}, start) },
		"foreign": func(l *Lease, o int64) { l.Skip(o, start) },
		"newer":   func(l *Lease, o int64) { l.ReadNewer(o, start) },
		"beat":    func(l *Lease, o int64) { l.Read(o, &Record{Kind: Beat, Session: session(o), Read: -1, T: 1}, start) },
		"lost claim": func(l *Lease, o int64) {
			l.Read(o, &Record{Kind: Claim, Session: session(o), Read: -1, T: 1, Roles: []int32{1}}, start)
		},
		"half a fold": func(l *Lease, o int64) {
			l.Read(o, &Record{Kind: Snapshot, Session: session(o), Read: o - 1, State: &State{Part: 0, Parts: 2, Hash: l.fold.hash, Newer: none}}, start)
		},
		"won and lost": func(l *Lease, o int64) {
			l.Read(o, &Record{Kind: Claim, Session: session(o), Read: o - 1, T: 1, Roles: []int32{1}}, start)
		},
	} {
		t.Run(name, func(t *testing.T) {
			known, _ := filled(1000)
			for _, l := range []*Lease{unknown(1), known} {
				o := l.Offset()
				flood := func(n int) uint64 {
					for range n {
						o++
						read(l, o)
					}
					runtime.GC()
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					return m.HeapAlloc
				}
				before := flood(100_000) // until all bounds are reached
				after := flood(1_000_000)
				require.Less(t, int64(after)-int64(before), int64(2<<20), "known: %v", l == known)
				runtime.KeepAlive(l)
			}
		})
	}
}
