package lease

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/goneli/neli/internal/seeded"
)

// Sentinels beside the processes release what dead processes hold. There are one or two. They learn of
// a death late, look again and again, lag behind the log, and are restarted. They also write
// outdated or nonsensical Releases in the names of the dead. A process that dies may have records
// in flight.

// simSentinel is an observer around the Lease that ships.
type simSentinel struct {
	w    *simWorld
	i    int
	l    *Lease
	next int64
	clk  seeded.Clock
	told seeded.Obituaries
}

// lie is a way in which a proof of death is wrong.
type lie int

const (
	noLie        lie = iota
	takesPaused      // takes a suspended process for dead
	takesHost        // takes all processes of a host for dead, even those that start later
	takesAnother     // takes another process for dead than the one registered
)

// crashProfile has every kind of trouble, with deaths and sentinels.
func crashProfile(r *rand.Rand) simProfile {
	p := plainProfile(r)
	if r.IntN(3) == 0 {
		p = huntProfile(r)
	}
	u := p.unit
	p.crash = u * time.Duration(of(r, 1, 2, 5))
	p.Deaths = seeded.DrawDeaths(r, u)
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

// start starts a sentinel without memory: it knows of no death, and nothing of the log.
func (s *simSentinel) start() {
	w := s.w
	s.told.Restart()
	s.clk = w.newClock()
	s.l = New(Rules{Process: fmt.Sprintf("sentinel %d.%d", s.i, s.told.Life), Name: "sentinel", T: time.Second, Rho: w.pr.rho, History: 64})
	end := int64(len(w.log))
	s.next = max(w.low, end-w.R.Int64N(min(40, end)+1))
	s.l.Begin(s.next, false, s.clk.Read(w.Now))
}

// bury tells the sentinels of a death.
func (w *simWorld) bury(process string) {
	for _, s := range w.sentinels {
		w.Bury(process, w.pr.Deaths, &s.told, s.look)
	}
}

// read reads the log, without the newest records if the sentinel lags.
func (s *simSentinel) read() {
	w := s.w
	if s.next < w.low {
		s.next = w.low
		s.l.Begin(s.next, false, s.clk.Read(w.Now))
	}
	for end := int64(len(w.log)) - w.R.Int64N(w.pr.Lags+1); s.next < end; s.next++ {
		e, now := w.log[s.next], s.clk.Read(w.Now)
		var ev Event
		switch {
		case e.gap:
			continue
		case e.newer:
			ev = s.l.ReadNewer(s.next, now)
		case e.r == nil:
			ev = s.l.Skip(s.next, now)
		default:
			ev = s.l.Read(s.next, e.r, now)
		}
		if ev.Rewound || ev.Differs {
			w.Note("alarm in a sound log: a sentinel at offset %d (%s)", s.next, simText(e))
		}
		if s.l.Known() && s.l.fold.hash != w.hist[s.next].old {
			w.Note("folds differ at offset %d: a sentinel has %s, the truth is %s", s.next, foldText(&s.l.fold), foldText(&w.truth.old))
		}
	}
}

// look releases what dead processes hold.
func (s *simSentinel) look() {
	w := s.w
	if w.Calm || w.Fault != "" {
		return
	}
	s.read()
	now := s.clk.Read(w.Now)
	if !s.l.Known() {
		r := s.l.Word(Hello, now)
		r.Hello = &Announcement{Wants: []int{}, Leaving: true}
		s.send(r)
		return
	}
	var ids []Session
	for h := range s.l.Holders() {
		if s.told.Has(h.Session.Process) {
			ids = append(ids, h.Session)
		}
	}
	sortSessions(ids)
	for _, id := range ids {
		s.send(s.l.Farewell(id.Process, "dead", now))
		for _, r := range s.l.ReleaseOf(id, s.l.RolesOf(id), now) {
			s.send(r)
		}
	}
	if dead := s.told.Dead; len(dead) > 0 && w.Maybe(w.pr.Nonsense) {
		s.babble(Session{dead[w.R.IntN(len(dead))], 1 + w.R.Uint64N(3)})
	}
	if w.R.IntN(20) == 0 {
		for _, r := range s.l.Snapshot(now) {
			s.send(r)
		}
	}
}

// babble writes Releases in the name of the dead, with old tokens and with other sessions' tokens.
func (s *simSentinel) babble(id Session) {
	w := s.w
	if s.l.Offset() < 0 {
		return
	}
	r := s.l.record(Release, s.clk.Read(w.Now))
	r.Session, r.Seq = id, r.Seq+foreign
	role := int32(w.R.IntN(w.pr.roles))
	token := w.R.Int64N(s.l.Offset() + 1)
	if g, ok := s.l.Holder(role); ok && w.R.IntN(2) == 0 {
		token = g.Token
	}
	r.Ended = []Grant{{Token: token, Roles: []int32{role}}}
	s.send(r)
}

// send appends a record late, twice, or never.
func (s *simSentinel) send(r Record) {
	w := s.w
	e := w.encode(&r, false)
	w.Trace("sentinel %d.%d sends %s", s.i, s.told.Life, simText(e))
	w.Post(w.pr.Network, func() { w.append(e) })
}

// die ends a process. Its last records may be in flight.
func (p *simProc) die() {
	w := p.w
	if w.pr.Sentinels == 0 {
		p.alive = false
		w.oracle.look(p)
		return
	}
	if w.Maybe(w.pr.Gasp) {
		p.tick()
	}
	p.alive = false
	w.oracle.look(p)
	w.count.deaths++
	process := p.l.rules.Process
	w.dead[process] = true
	if other := w.procs[(p.i+1)%len(w.procs)]; w.lie == takesAnother && other.l != nil {
		process = other.l.rules.Process
	}
	w.bury(process)
	if w.lie == takesHost { // the next process has the same name
		w.bury(fmt.Sprintf("%c.%d", 'a'+p.i, p.inc+1))
	}
}

// buried checks and counts the effects of a sentinel's Release and of a dead process's Claim.
func (w *simWorld) buried(e *simEntry, holders map[int32]Session) {
	if w.pr.Sentinels == 0 || e.r == nil {
		return
	}
	switch r := e.r; {
	case r.Kind == Release && r.Seq >= foreign:
		freed := false
		for role, was := range holders {
			if h := w.truth.old.holderOf(role); h == nil && was == r.Session {
				freed = true
			}
		}
		if !freed {
			return
		}
		w.count.buried++
		if w.lie == noLie && !w.dead[r.Session.Process] {
			w.Note("a sentinel's Release freed a role of %v, which is alive", r.Session)
		}
	case r.Kind == Claim && w.dead[r.Session.Process] && len(e.wonOld) > 0:
		w.count.late++
	}
}

// holding returns the holders of the watched roles.
func (w *simWorld) holding() map[int32]Session {
	if w.pr.Sentinels == 0 {
		return nil
	}
	held := map[int32]Session{}
	for _, role := range w.oracle.roles {
		if h := w.truth.old.holderOf(role); h != nil {
			held[role] = h.Session
		}
	}
	return held
}

// A wrong proof of death leads to two leaders, and this simulation notices.
func TestAWrongProofOfDeathIsNoticed(t *testing.T) {
	if seeded.Race {
		t.Skip("one goroutine, in which there is no race to detect: make sim runs it")
	}
	for name, l := range map[string]lie{"suspended": takesPaused, "by its host": takesHost, "another's": takesAnother} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed < 2000; seed++ {
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

// Deaths, late Claims of the dead, and Releases in their names do no harm: others lead, and never two at once.
func TestSentinels(t *testing.T) {
	var total simCount
	seeded.Run(t, seeded.Seeds(1500), func(seed uint64) *simWorld {
		w := newSimWorld(seed, crashProfile)
		w.Run(w.pr.horizon, nil)
		return w
	}, func(w *simWorld) {
		w.count.records = len(w.log)
		total.add(w.count)
	})
	t.Logf("%s; %d deaths, %d Releases of sentinels that freed something, %d Claims of the dead that became valid later", total, total.deaths, total.buried, total.late)
	if total.buried == 0 || total.late == 0 {
		t.Fatal("no sentinel's Release freed a role, or no dead process's Claim came late")
	}
}

func sortSessions(ids []Session) {
	slices.SortFunc(ids, func(a, b Session) int {
		return cmp.Or(cmp.Compare(a.Process, b.Process), cmp.Compare(a.N, b.N))
	})
}
