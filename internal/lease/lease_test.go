package lease

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
)

// rig is one log and several processes that read every record at once.
type rig struct {
	t     *testing.T
	now   clock.Instant
	codec Codec
	log   []*Record
	procs []*Lease
}

func newRig(t *testing.T, n int) *rig {
	r := &rig{t: t, now: clock.Alike(time.Hour), codec: Codec{"g", "log"}}
	for i := range n {
		r.procs = append(r.procs, r.boot(string(rune('a'+i))))
	}
	return r
}

func (r *rig) boot(name string) *Lease {
	l := New(Rules{Process: name, Name: "process " + name, T: time.Second, Rho: 0.0005, History: 1000})
	l.Begin(int64(len(r.log)), len(r.log) == 0, r.now)
	return l
}

func (r *rig) wait(d time.Duration) { r.now = r.now.Add(d) }

// append encodes records, puts them into the log, and lets all processes read them.
func (r *rig) append(records ...Record) Event {
	r.t.Helper()
	var last Event
	for _, rec := range records {
		value := r.codec.Encode(&rec)
		require.LessOrEqual(r.t, len(value), MaxRecord)
		got, err := r.codec.Decode(value)
		require.NoError(r.t, err, "%s", value)
		o := int64(len(r.log))
		r.log = append(r.log, got)
		for _, p := range r.procs {
			last = p.Read(o, got, r.now)
		}
	}
	return last
}

func (r *rig) claim(p *Lease, roles ...int32) {
	r.t.Helper()
	rec, ok := p.Claim(roles, r.now)
	require.True(r.t, ok)
	r.append(rec)
}

func (r *rig) beat(p *Lease) {
	r.t.Helper()
	rec, ok := p.Beat(r.now)
	require.True(r.t, ok, "a process that holds nothing cannot beat")
	r.append(rec)
}

func TestTheFirstClaimIsFresh(t *testing.T) {
	r := newRig(t, 2)
	a, b := r.procs[0], r.procs[1]
	_, ok := a.Claim([]int32{0}, r.now)
	require.False(t, ok, "claims before it knows the fold")
	r.wait(clock.Wait(time.Second, 0.0005))
	r.claim(a, 0, 1, 5)
	token, ok := a.Leads(5, r.now)
	require.True(t, ok)
	require.EqualValues(t, 0, token)
	require.True(t, b.Known())
	_, ok = b.Leads(0, r.now)
	require.False(t, ok)
	require.False(t, b.MayClaim(0, r.now))
	require.True(t, b.MayClaim(2, r.now))
	r.claim(b, 2, 3)
	require.Equal(t, a.fold.hash, b.fold.hash)
}

func TestASnapshotGivesANewcomerTheFold(t *testing.T) {
	r := newRig(t, 2)
	r.wait(2 * time.Second)
	random := rand.New(rand.NewPCG(1, 2)) // with gaps, so that ranges save nothing
	all := make([]int32, 0, 50_000)
	for role := range int32(100_000) {
		if random.IntN(2) == 0 {
			all = append(all, role)
		}
	}
	r.claim(r.procs[0], all[0])
	claimant := 0
	for part := range slices.Chunk(all[1:], 7000) {
		claimant = 1 - claimant
		r.claim(r.procs[claimant], part...)
	}
	c := r.boot("c")
	r.procs = append(r.procs, c)
	r.beat(r.procs[1])
	parts := r.procs[0].Snapshot(r.now)
	require.Greater(t, len(parts), 1)
	r.append(parts[:1]...)
	r.beat(r.procs[1])
	require.False(t, c.Known(), "one part of a Snapshot made the newcomer know")
	r.append(parts[1:]...)
	require.True(t, c.Known(), "a whole Snapshot was not adopted")
	require.Equal(t, r.procs[0].fold.hash, c.fold.hash)
	require.Equal(t, r.procs[0].fold.tokens[all[77]], c.fold.tokens[all[77]])
}

// A process may hold many roles by few Claims, whose roles alternate: a Snapshot lists each Claim once.
func TestASnapshotHasOneGrantForEachClaim(t *testing.T) {
	r := newRig(t, 1)
	r.wait(2 * time.Second)
	r.claim(r.procs[0], 0, 2, 4, 6, 8)
	r.claim(r.procs[0], 1, 3, 5, 7, 9)
	parts := r.procs[0].Snapshot(r.now)
	require.Len(t, parts, 1)
	require.Equal(t, []Grant{{Token: 0, Roles: []int32{0, 2, 4, 6, 8}}, {Token: 1, Roles: []int32{1, 3, 5, 7, 9}}}, parts[0].State.Grants)
}

func TestReleaseAndLapse(t *testing.T) {
	r := newRig(t, 2)
	a, b := r.procs[0], r.procs[1]
	r.wait(2 * time.Second)
	r.claim(a, 0, 1, 2)
	a.Forget([]int32{1})
	_, ok := a.Leads(1, r.now)
	require.False(t, ok)
	require.False(t, b.MayClaim(1, r.now))
	e := r.append(a.Release([]int32{0, 1}, r.now)...)
	require.Equal(t, []int32{1}, e.Changed)
	r.claim(b, 1)
	r.wait(clock.Hold(time.Second))
	_, ok = a.Leads(0, r.now)
	require.False(t, ok)
	out := a.Lapse(r.now)
	require.Len(t, out, 1)
	require.Empty(t, a.Lapse(r.now))
	require.True(t, a.Owing(), "leaves a former session's roles unreleased")
	r.append(out...)
	require.False(t, a.Owing())
	require.True(t, b.MayClaim(0, r.now))
}
