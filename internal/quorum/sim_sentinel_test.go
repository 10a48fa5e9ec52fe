package quorum

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/seeded"
)

// Sentinels beside the processes. On each log separately, they release what dead processes hold
// there, under the log's present id and with the largest ballot that they have read. There are one
// or two. They learn of a death late, look again and again, lag behind the log, and are restarted.
// They also write outdated or nonsensical Releases.

// simSentinel is an observer around the lease of each log.
type simSentinel struct {
	w    *simWorld
	i    int
	clk  seeded.Clock
	logs []simDesk
	seen int64
	told seeded.Obituaries
}

// simDesk is a sentinel's position in a log.
type simDesk struct {
	l    *lease.Lease
	in   *incarnation // nil: not begun
	next int64
}

// lie is a way in which a proof of death is wrong.
type lie int

const (
	noLie        lie = iota
	takesPaused      // takes a suspended process for dead
	takesAnother     // takes another process than the registered one for dead
)

// crashProfile has every kind of trouble, with deaths and sentinels.
func crashProfile(r *rand.Rand) simProfile {
	p := plainProfile(r)
	switch r.IntN(4) {
	case 0:
		p = huntProfile(r)
	case 1:
		p = lossyProfile(r)
	}
	p.crash = simT * time.Duration(of(r, 1, 2, 5))
	p.Deaths = seeded.DrawDeaths(r, simT)
	return p
}

func (w *simWorld) startSentinels() {
	for i := range w.pr.Sentinels {
		s := &simSentinel{w: w, i: i}
		w.sentinels = append(w.sentinels, s)
		s.start()
		w.Every(w.pr.Restarts, s.start)
	}
}

// start starts a sentinel without memory: it knows of no death, and nothing of the logs.
func (s *simSentinel) start() {
	w := s.w
	s.told.Restart()
	s.clk = w.newClock(0)
	s.logs, s.seen = nil, 0
	id := fmt.Sprintf("sentinel %d.%d", s.i, s.told.Life)
	for range w.logs {
		s.logs = append(s.logs, simDesk{l: lease.New(lease.Rules{Process: id, Name: "sentinel", T: simT, Rho: w.pr.rho, History: 64, Longest: simT, Dense: true})})
	}
}

// bury tells the sentinels of a death.
func (w *simWorld) bury(process string) {
	for _, s := range w.sentinels {
		w.Bury(process, w.pr.Deaths, &s.told, s.look)
	}
}

// look reads each log, and releases what dead processes hold there.
func (s *simSentinel) look() {
	w := s.w
	if w.Calm || w.Fault != "" {
		return
	}
	for _, g := range w.logs {
		if !g.down {
			s.read(g)
			s.release(g)
		}
	}
}

// read reads a log, without the newest records if the sentinel lags.
func (s *simSentinel) read(g *simLog) {
	w, x, d := s.w, g.now(), &s.logs[g.index]
	if d.in != x || d.next < x.low {
		d.in, d.next = x, max(x.low, x.end()-w.R.Int64N(min(40, x.end()-x.base)+1))
		d.l.Begin(d.next, false, s.clk.Read(w.Now))
		if w.pr.tops {
			for _, e := range x.records {
				s.seen = max(s.seen, e.r.Ballot)
			}
		}
	}
	for end := x.end() - w.R.Int64N(w.pr.Lags+1); d.next < end; d.next++ {
		e, now := x.records[d.next-x.base], s.clk.Read(w.Now)
		var ev lease.Event
		if e.id == x.id {
			s.seen = max(s.seen, e.r.Ballot)
			ev = d.l.Read(d.next, e.r, now)
		} else {
			ev = d.l.Skip(d.next, now)
		}
		if ev.Rewound || ev.Differs {
			w.Note("alarm in a sound log: a sentinel at offset %d of %s", d.next, x.id)
		}
	}
}

// release releases what dead processes hold on a log.
func (s *simSentinel) release(g *simLog) {
	w, l := s.w, s.logs[g.index].l
	now := s.clk.Read(w.Now)
	if !l.Known() {
		r := l.Word(lease.Hello, now)
		r.Hello = &lease.Announcement{Wants: []int{}, Leaving: true}
		s.send(g, r)
		return
	}
	var ids []lease.Session
	for h := range l.Holders() {
		if s.told.Has(h.Session.Process) {
			ids = append(ids, h.Session)
		}
	}
	slices.SortFunc(ids, func(a, b lease.Session) int { return cmp.Or(cmp.Compare(a.Process, b.Process), cmp.Compare(a.N, b.N)) })
	for _, id := range ids {
		s.send(g, l.Farewell(id.Process, "dead", now))
		s.send(g, l.ReleaseOf(id, l.RolesOf(id), now)...)
	}
	if len(s.told.Dead) > 0 && w.Maybe(w.pr.Nonsense) && l.Offset() >= 0 {
		s.babble(g, l)
	}
	if w.R.IntN(20) == 0 {
		for _, r := range l.Snapshot(now) {
			w.oracle.snapshot(w, s.logs[g.index].in.id, &r)
			s.send(g, r)
		}
	}
}

// babble writes Releases in the name of the dead, with old tokens and with other sessions' tokens.
func (s *simSentinel) babble(g *simLog, l *lease.Lease) {
	w, dead := s.w, s.told.Dead
	r := l.Word(lease.Release, s.clk.Read(w.Now))
	r.Session, r.Seq = lease.Session{Process: dead[w.R.IntN(len(dead))], N: 1 + w.R.Uint64N(3)}, r.Seq+foreign
	role, token := int32(w.R.IntN(w.pr.roles)), w.R.Int64N(l.Offset()+1)
	if g, ok := l.Holder(role); ok && w.R.IntN(2) == 0 {
		token = g.Token
	}
	r.Ended = []lease.Grant{{Token: token, Roles: []int32{role}}}
	s.send(g, r)
}

// foreign is added to the sequence numbers of records written in another process's name.
const foreign = 1 << 52

// send appends records late, twice, or never.
func (s *simSentinel) send(g *simLog, records ...lease.Record) {
	w := s.w
	for _, r := range records {
		r.Ballot = s.seen
		e := &simEntry{s.logs[g.index].in.id, &r}
		w.Trace("a sentinel sends %s", simText(e))
		w.Post(w.pr.Network, func() { w.append(g, e) })
	}
}

// mourn tells the sentinels that a process has died. Its last records may be in flight.
func (p *simProc) mourn() {
	w := p.w
	if w.pr.Sentinels == 0 {
		return
	}
	process := p.String()
	w.dead[process] = true
	w.count.deaths++
	if other := w.procs[(p.i+1)%len(w.procs)]; w.lie == takesAnother && other.q != nil {
		process = other.String()
	}
	w.bury(process)
}

// buried counts the records appended in the names of the dead, and those by the dead.
func (w *simWorld) buried(e *simEntry) {
	switch r := e.r; {
	case r.Kind == lease.Release && r.Seq >= foreign:
		w.count.buried++
	case r.Kind == lease.Claim && w.dead[r.Session.Process]:
		w.count.late++
	}
}

// A wrong proof of death leads to two leaders, and this simulation notices.
func TestAWrongProofOfDeathIsNoticed(t *testing.T) {
	if seeded.Race {
		t.Skip("one goroutine, in which there is no race to detect: make sim runs it")
	}
	for name, l := range map[string]lie{"suspended": takesPaused, "another's": takesAnother} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed < 3000; seed++ {
				w := newSimWorld(seed, crashProfile)
				w.lie = l
				w.Run(w.pr.horizon, nil)
				if w.Fault != "" {
					t.Logf("seed %d: %s", seed, w.Complaint())
					return
				}
			}
			t.Fatal("no seed shows two leaders")
		})
	}
}

// Deaths, late Claims of the dead, and Releases in their names on each log do no harm: others
// lead, and never two at once.
func TestSentinels(t *testing.T) {
	var total simCount
	seeded.Run(t, seeded.Seeds(600), func(seed uint64) *simWorld {
		w := newSimWorld(seed, crashProfile)
		w.Run(w.pr.horizon, nil)
		return w
	}, func(w *simWorld) { total.add(w.count) })
	t.Logf("%s; %d deaths, %d Releases by sentinels, %d late Claims of the dead", total, total.deaths, total.buried, total.late)
	if total.buried == 0 || total.late == 0 {
		t.Fatal("no sentinel released anything, or no dead process's Claim came late")
	}
}
