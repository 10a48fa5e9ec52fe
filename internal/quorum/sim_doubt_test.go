package quorum

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/seeded"
)

// truth is the true fold of one log, by offset.
type truth struct {
	fold   *lease.Lease
	hashes []uint64
}

// misreading is a world in which one process misreads a record on some logs. It measures the consequences.
type misreading struct {
	*simWorld
	who            *simProc
	truths         []*truth
	since, unknown map[[2]int]time.Duration // by process and log: since when its fold is wrong, or not known
	looked         map[[2]int]looked
	diverged       bool
	wrongFor       time.Duration // the longest of these times
	unknownFor     time.Duration
	double         time.Duration // how long roles had two leaders, summed up
}

func newMisreading(w *simWorld) *misreading {
	m := &misreading{simWorld: w, since: map[[2]int]time.Duration{}, unknown: map[[2]int]time.Duration{}, looked: map[[2]int]looked{}}
	w.pr.misread = true
	for range w.logs {
		l := lease.New(lease.Rules{Process: "truth", T: simT, Longest: simT, Dense: true, History: 64})
		l.Begin(0, false, w.procs[0].now())
		m.truths = append(m.truths, &truth{fold: l})
	}
	return m
}

func (m *misreading) hash(l *lease.Lease) uint64 {
	if !l.Known() {
		return 0
	}
	return l.Snapshot(m.procs[0].now())[0].State.Hash
}

// differs reports whether a fold is not the true one at its offset.
func (m *misreading) differs(at [2]int, l *lease.Lease, x *truth) bool {
	was, seen := m.looked[at]
	if o := l.Offset(); !seen || was.offset != o || was.session != l.Session() {
		was = looked{o, l.Session(), x.hashes[o] != 0 && m.hash(l) != x.hashes[o]}
		m.looked[at] = was
	}
	return was.wrong
}

// looked is a fold that was compared at an offset.
type looked struct {
	offset  int64
	session lease.Session
	wrong   bool
}

func (m *misreading) follow(x *truth, in *incarnation) {
	for o := int64(len(x.hashes)); o < in.end(); o++ {
		x.fold.Read(o, in.records[o].r, m.procs[0].now())
		x.hashes = append(x.hashes, m.hash(x.fold))
	}
}

// pass lets time pass, and compares all folds.
func (m *misreading) pass(d time.Duration) {
	for end := m.Now + d; m.Now < end; {
		next := m.Now + simT/25
		m.Run(next, nil)
		m.Now = max(m.Now, next)
		m.look()
	}
}

// lasting returns for how long something has been true, counted from the call that first found it true.
func (m *misreading) lasting(since map[[2]int]time.Duration, at [2]int, is bool) time.Duration {
	if !is {
		delete(since, at)
		return 0
	}
	if _, was := since[at]; !was {
		since[at] = m.Now
	}
	return m.Now - since[at]
}

func (m *misreading) look() {
	for log, x := range m.truths {
		m.follow(x, m.logs[log].now())
		for i, p := range m.procs {
			l, at := p.q.Log(log), [2]int{i, log}
			known := p.alive && l.Known()
			m.unknownFor = max(m.unknownFor, m.lasting(m.unknown, at, !known))
			wrong := known && l.Offset() < int64(len(x.hashes)) && m.differs(at, l, x)
			m.wrongFor = max(m.wrongFor, m.lasting(m.since, at, wrong))
			m.diverged = m.diverged || wrong
		}
	}
	for role := range int32(m.pr.roles) {
		n := 0
		for _, p := range m.procs {
			if _, leads := p.q.Leads(role, p.now()); leads && p.alive {
				n++
			}
		}
		if n > 1 {
			m.double += simT / 25
		}
	}
}

// churn moves a role to another process.
func (m *misreading) churn() {
	role := int32(m.R.IntN(m.pr.roles))
	p := m.ledBy(role)
	if p == nil {
		return
	}
	next := m.procs[m.R.IntN(len(m.procs))]
	for _, q := range m.procs {
		q.want[role] = q == next
		q.wish()
	}
	p.tick()
	m.pass(simT / 4)
	for _, q := range m.procs { // a process by whose fold the role is free claims it
		q.want[role] = true
		q.wish()
	}
}

// newcomer restarts a process that misread nothing and leads nothing, if there is one.
func (m *misreading) newcomer() {
	for _, i := range m.R.Perm(len(m.procs)) {
		p, leads := m.procs[i], false
		for role := range int32(m.pr.roles) {
			_, led := p.q.Leads(role, p.now())
			leads = leads || led
		}
		if p != m.who && !leads {
			want := slices.Clone(p.want)
			p.crash()
			p.boot()
			copy(p.want, want)
			p.wish()
			return
		}
	}
}

// TestMisreadRecordDoesBoundedHarm lets one process take a record for one without effect, on one log or on
// most. Every wrong fold must end, and everything must be led. The unavoidable harm must stay
// within bounds: two leaders only where the process misread a Claim on most of the logs, and the
// other processes, if there are several, seldom begin again.
func TestMisreadRecordDoesBoundedHarm(t *testing.T) {
	if seeded.Race {
		t.Skip("one goroutine, in which there is no race to detect: make sim runs it")
	}
	for _, procs := range []int{2, 3, 4} {
		for _, on := range []int{1, 2} {
			for _, kind := range []lease.Kind{lease.Claim, lease.Release, lease.Beat} {
				t.Run(fmt.Sprintf("a %s on %d of 3 logs, %d processes", kind, on, procs), func(t *testing.T) {
					t.Parallel()
					var sum misreadings
					for seed := range uint64(seeded.Seeds(20)) {
						m := misread(seed, procs, on, kind)
						sum.add(m)
						m.judge(t, seed, on, kind)
					}
					t.Log(sum)
					if procs > 2 { // a newcomer may be the second vote for the wrong fold
						require.LessOrEqual(t, 3*sum.healthy, sum.diverged+6, "processes that misread nothing begin again")
					}
				})
			}
		}
	}
}

// misreadings sums up all seeds.
type misreadings struct {
	worlds, diverged, begun, healthy, taken, twoLeaders int
	wrongFor, unknownFor                                time.Duration
}

func (s misreadings) String() string {
	return fmt.Sprintf("%d of %d diverged; begun again: %d logs, %d of them by others; others lost %d terms; two leaders in %d; longest wrong %v, unknown %v",
		s.diverged, s.worlds, s.begun, s.healthy, s.taken, s.twoLeaders, s.wrongFor, s.unknownFor)
}

func (s *misreadings) add(m *misreading) {
	s.worlds++
	if m.diverged {
		s.diverged++
	}
	for i, p := range m.procs {
		if s.begun += m.count.rewound[i]; p != m.who {
			s.healthy, s.taken = s.healthy+m.count.rewound[i], s.taken+m.count.taken[i]
		}
	}
	s.twoLeaders += min(1, m.count.wrong["two leaders"])
	s.wrongFor, s.unknownFor = max(s.wrongFor, m.wrongFor), max(s.unknownFor, m.unknownFor)
}

func (m *misreading) judge(t *testing.T, seed uint64, on int, kind lease.Kind) {
	require.Empty(t, m.Fault, "seed %d", seed)
	require.Empty(t, m.since, "seed %d: a wrong fold is kept", seed)
	require.True(t, m.allLed(), "seed %d: not everything is led", seed)
	require.Empty(t, m.unknown, "seed %d: a process never learns the fold", seed)
	require.LessOrEqual(t, m.unknownFor, 2*simT, "seed %d: a process was without a fold for long", seed)
	if on < 2 || kind != lease.Claim {
		require.Zero(t, m.count.wrong["two leaders"]+int(m.double), "seed %d: two leaders", seed)
	}
	require.LessOrEqual(t, m.double, simT, "seed %d: two leaders for long", seed)
}

func misread(seed uint64, procs, k int, kind lease.Kind) *misreading {
	w := newSimWorld(seed+1, calmProfile(3, procs))
	w.Calm = true
	w.Forget()
	for _, p := range w.procs {
		p.boot()
	}
	m := newMisreading(w)
	for i := 0; i < 100 && !m.allLed(); i++ {
		m.pass(simT / 10)
	}
	m.pass(2 * simT)
	for range 3 {
		m.churn()
		m.pass(simT)
	}
	m.who = w.procs[w.R.IntN(procs)]
	m.unknownFor, w.count.rewound, w.count.taken = 0, [8]int{}, [8]int{}
	for _, log := range w.R.Perm(3)[:k] {
		m.who.logs[log].misreads = kind
	}
	for range 12 {
		m.churn()
		m.pass(simT + w.Span(simT))
		if w.R.IntN(4) == 0 {
			m.newcomer()
		}
	}
	m.pass(3 * simT)
	return m
}
