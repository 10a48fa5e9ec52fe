package neli

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The lease under an adversary: a few processes with clocks of different rates
// and one log, all driven by one seeded random source. What may happen: appends
// that take up to ten times T, are lost, doubled, or reported as failed although
// they arrive; processes that pause, restart, are cut off from reading or
// writing; machines that are suspended; wall clocks that are set; readers that
// start anywhere; nominations that change at random and may be held by many.
//
// The oracle knows the true time. It asserts after every event: at most one
// process leads; a token is led once, by one incarnation; tokens only grow. And
// when the faults are over: somebody leads within a bound.
//
// A failure prints the seed and the run's transcript;
// NELI_SEED=n go test -run TestLeaseSimulation replays it.

const (
	simT     = 100 * time.Millisecond
	simDrift = 0.05
)

type simProc struct {
	i       int
	lease   lease
	rate    float64       // of its clock
	offset  time.Duration // of its monotonic clock
	asleep  time.Duration // how far the monotonic clock stood still
	set     time.Duration // how far the wall clock was set
	pos     int           // next index of the log to be read
	paused  bool
	deaf    bool          // reads nothing
	lag     time.Duration // until a record reaches it
	mute    bool          // its appends wait
	want    bool
	keep    bool
	alive   bool
	waiting []record // written while mute
	held    int64
}

// simEntry is a record in the log, or noise: a record that plays no part.
type simEntry struct {
	record
	noise bool
	at    time.Duration
}

type simEvent struct {
	at  time.Duration // true time
	seq int
	do  func()
}

type simQueue []simEvent

func (q simQueue) Len() int { return len(q) }
func (q simQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q simQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *simQueue) Push(x any)   { *q = append(*q, x.(simEvent)) }
func (q *simQueue) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

type sim struct {
	rnd    *rand.Rand
	now    time.Duration
	seq    int
	queue  simQueue
	procs  []*simProc
	log    []simEntry
	ids    int
	calm   bool
	terms  map[int64]string // token → incarnation that led by it
	newest int64
	lines  []string
	fault  string
	seen   map[string]int
	trace  bool
	menu   []int // what the adversary of this seed does: a few things often find more than everything seldom
}

func newSim(seed uint64, trace bool) *sim {
	s := &sim{rnd: rand.New(rand.NewPCG(seed, 17)), terms: map[int64]string{}, newest: -1, seen: map[string]int{}, trace: trace}
	for i := range 2 + s.rnd.IntN(3) {
		p := &simProc{i: i, rate: 1 + simDrift*(2*s.rnd.Float64()-1), offset: time.Duration(s.rnd.IntN(1e12)),
			want: true, keep: true, alive: true, held: noToken}
		if s.rnd.IntN(3) == 0 {
			p.rate = 1 + simDrift*float64(2*s.rnd.IntN(2)-1) // the extremes
		}
		p.lease.leaseRules = leaseRules{group: "g", name: fmt.Sprint("p", i), term: threshold{simT, true},
			wait: silence(simT, simDrift), every: simT / 5,
			newID: func() string { s.ids++; return fmt.Sprintf("p%d.%d", i, s.ids) }}
		s.procs = append(s.procs, p)
		s.boot(p)
		s.tick(p)
	}
	for range 1 + s.rnd.IntN(4) {
		s.menu = append(s.menu, s.rnd.IntN(adversities))
	}
	s.after(0, s.adversary)
	return s
}

func (s *sim) say(format string, args ...any) {
	if s.trace {
		s.lines = append(s.lines, fmt.Sprintf("%10v  ", s.now)+fmt.Sprintf(format, args...))
	}
}

func (s *sim) after(d time.Duration, do func()) {
	s.seq++
	heap.Push(&s.queue, simEvent{s.now + d, s.seq, do})
}

func (s *sim) upTo(d time.Duration) time.Duration { return time.Duration(s.rnd.Int64N(int64(d) + 1)) }

// clock reads p's clock at the present true time.
func (s *sim) clock(p *simProc) instant {
	local := time.Duration(float64(s.now) * p.rate)
	return instant{mono: p.offset + local - p.asleep, wall: local + p.set}
}

func (s *sim) boot(p *simProc) {
	start := 0
	if n := len(s.log); n > 0 && s.rnd.IntN(2) == 0 {
		start = s.rnd.IntN(n + 1)
	}
	p.pos = start
	p.lease.start(int64(start), s.clock(p))
	s.say("p%d starts at %d as %s", p.i, start, p.lease.me)
}

// tick is p's timer: read something, step.
func (s *sim) tick(p *simProc) {
	s.turn(p)
	s.after(s.upTo(simT/10), func() { s.tick(p) })
}

func (s *sim) turn(p *simProc) {
	if p.paused {
		return
	}
	for n := s.rnd.IntN(4); n > 0 && !p.deaf && p.pos < len(s.log) && s.log[p.pos].at+p.lag <= s.now; n-- {
		o, e := int64(p.pos), s.log[p.pos]
		p.pos++
		if e.noise {
			p.lease.skip(o, s.clock(p))
			continue
		}
		was := p.lease.mine
		s.arrived(p, e.record)
		if c := p.lease.consume(e.record, o, s.clock(p)); c.alarm {
			s.fail("alarm in a log that never went back")
		}
		s.say("p%d reads %d %s; token %d mine %d", p.i, o, s.show(e.record), p.lease.token, p.lease.mine)
		if was != noToken && p.lease.mine == noToken {
			s.seen["fenced"]++
		}
		s.check()
		s.step(p)
	}
	s.step(p)
}

func (s *sim) arrived(p *simProc, r record) {
	if r.kind == kindClaim && r.member == p.lease.me && r.seq != p.lease.claiming {
		s.seen["claim after its failure was reported"]++
	}
}

func (s *sim) step(p *simProc) {
	now := s.clock(p)
	in := intent{want: p.want && p.alive, keep: p.keep || p.want, alive: p.alive, delay: s.upTo(simT / 50)}
	was, lapsed := p.lease.mine, !p.lease.holds(now)
	free := p.lease.token == tokenNone
	r, ok := p.lease.step(now, in)
	if !ok {
		return
	}
	s.say("p%d sends %s", p.i, s.show(r))
	switch {
	case r.kind == kindRelease && lapsed:
		s.seen["lapsed"]++
	case r.kind == kindRelease:
		s.seen["released"]++
	case r.kind == kindClaim && free:
		s.seen["claim after release"]++
	case r.kind == kindClaim:
		s.seen["claim after silence"]++
	}
	if was != noToken && r.kind == kindRelease {
		p.held = noToken
	}
	if p.mute {
		p.waiting = append(p.waiting, r)
		return
	}
	s.send(p, r)
}

// send delivers r to the log, or not, or twice, now or much later.
func (s *sim) send(p *simProc, r record) {
	d := s.upTo(simT / 50)
	me := p.lease.me
	fail := func() { p.lease.failed(me, r.seq, s.clock(p)) }
	if !s.calm {
		switch s.rnd.IntN(20) {
		case 0:
			s.seen["lost"]++
			s.after(s.upTo(2*simT), fail)
			return
		case 1:
			s.seen["doubled"]++
			s.after(d+s.upTo(3*simT), func() { s.append(r) })
		case 2:
			s.seen["failed but written"]++
			s.after(s.upTo(simT), fail)
			d = s.upTo(3 * simT)
		case 3:
			s.seen["delayed"]++
			d = s.upTo(10 * simT)
		case 4:
			d = s.upTo(simT)
		}
	}
	s.after(d, func() { s.append(r) })
}

func (s *sim) append(r record) {
	s.log = append(s.log, simEntry{record: r, at: s.now})
	s.say("      log %d = %s", len(s.log)-1, s.show(r))
}

func (s *sim) show(r record) string {
	return fmt.Sprintf("%s by %s token %d read %d seq %d", r.kind, r.member, r.token, r.read, r.seq)
}

const adversities = 12

// adversary does something mean, then waits.
func (s *sim) adversary() {
	if s.calm {
		return
	}
	p := s.procs[s.rnd.IntN(len(s.procs))]
	d := s.upTo(4 * simT)
	switch s.menu[s.rnd.IntN(len(s.menu))] {
	case 0:
		s.say("p%d pauses for %v", p.i, d)
		p.paused = true
		s.after(d, func() { p.paused = false })
	case 1:
		s.say("p%d restarts", p.i)
		s.seen["restart"]++
		p.waiting = nil
		s.boot(p)
	case 2:
		s.say("p%d reads nothing for %v", p.i, d)
		p.deaf = true
		s.after(d, func() { p.deaf = false })
	case 3:
		s.say("p%d writes nothing for %v", p.i, d)
		p.mute = true
		s.after(d, func() { s.unmute(p) })
	case 4:
		p.want = !p.want
		p.keep = s.rnd.IntN(2) == 0
		s.say("p%d wants %v, keeps %v", p.i, p.want, p.keep)
	case 5:
		s.say("p%d is suspended for %v with its monotonic clock", p.i, d)
		s.seen["suspended"]++
		p.paused = true
		s.after(d, func() {
			p.paused = false
			p.asleep += time.Duration(float64(d) * p.rate)
		})
	case 6: // forward only: set back, it never makes a lease look younger than the monotonic clock does
		p.set += s.upTo(2 * simT)
		s.say("p%d's wall clock is set forward", p.i)
	case 7:
		p.alive = !p.alive
	case 8:
		p.lag = s.upTo(simT)
		s.say("records reach p%d after %v", p.i, p.lag)
	case 9:
		for range s.rnd.IntN(5) {
			s.log = append(s.log, simEntry{noise: true, at: s.now})
		}
	case 10:
		s.say("p%d gives up and wants again", p.i)
		p.want, p.keep = false, false
		s.after(s.upTo(simT/5), func() { p.want, p.keep = true, true })
	case 11:
		s.seen["rewound"]++
		p.pos = max(0, p.pos-s.rnd.IntN(8))
		p.lease.start(int64(p.pos), s.clock(p))
		s.say("p%d is rewound to %d and is %s", p.i, p.pos, p.lease.me)
	}
	s.after(s.upTo(2*simT), s.adversary)
}

func (s *sim) unmute(p *simProc) {
	p.mute = false
	for _, r := range p.waiting {
		s.send(p, r)
	}
	p.waiting = nil
}

// check is the oracle.
func (s *sim) check() {
	leaders := 0
	for _, p := range s.procs {
		l := &p.lease
		if l.mine == noToken || !l.term.young(s.clock(p), l.v) {
			continue
		}
		leaders++
		if by, ok := s.terms[l.mine]; ok && by != l.me {
			s.fail("token %d led by %s and by %s", l.mine, by, l.me)
		}
		if p.held != l.mine {
			if l.mine < s.newest {
				s.fail("token went back from %d to %d", s.newest, l.mine)
			}
			p.held, s.newest, s.terms[l.mine] = l.mine, l.mine, l.me
			s.seen["term"]++
		}
	}
	if leaders > 1 {
		s.fail("%d leaders", leaders)
	}
}

func (s *sim) fail(format string, args ...any) {
	if s.fault == "" {
		s.fault = fmt.Sprintf(format, args...)
		s.say("VIOLATION: %s", s.fault)
	}
}

func (s *sim) run(until time.Duration) {
	for s.fault == "" && len(s.queue) > 0 && s.queue[0].at <= until {
		e := heap.Pop(&s.queue).(simEvent)
		s.now = e.at
		s.check()
		e.do()
		s.check()
	}
	s.now = until
}

// settle ends all faults but some that a group has to live with: members that
// can write and read nothing, and members that can read and write nothing.
func (s *sim) settle() {
	s.calm = true
	healthy := s.rnd.IntN(len(s.procs))
	for i, p := range s.procs {
		p.paused, p.deaf, p.mute, p.want, p.keep, p.alive, p.lag = false, false, false, true, false, true, 0
		if i != healthy {
			switch s.rnd.IntN(4) {
			case 0:
				p.deaf = true
				s.seen["deaf for ever"]++
			case 1:
				p.mute = true
				s.seen["mute for ever"]++
			}
		}
		if !p.mute {
			s.unmute(p)
		}
		if !p.deaf && s.rnd.IntN(2) == 0 {
			s.boot(p) // knowing nothing of those who are deaf
		}
	}
	s.say("calm from here; p%d is healthy", healthy)
}

// simulate runs one seed and returns what went wrong, if anything.
func simulate(seed uint64, trace bool) *sim {
	s := newSim(seed, trace)
	s.run(time.Duration(20+s.rnd.IntN(40)) * simT)
	if s.fault == "" {
		s.settle()
		// Appends under way take up to 10 T and each may void a claim; then one
		// silence, one lapse of a term held by someone deaf, and another silence.
		s.run(s.now + 20*simT)
		if s.fault == "" {
			led := false
			for range 40 {
				s.run(s.now + simT/20)
				for _, p := range s.procs {
					led = led || p.lease.holds(s.clock(p))
				}
			}
			if !led && s.fault == "" {
				s.fail("no leader")
			}
		}
	}
	return s
}

// simSeeds is how many seeds a test runs: enough for every mutation of the rules
// to be found many times over.
func simSeeds() (from, n uint64) {
	if v, err := strconv.ParseUint(os.Getenv("NELI_SEED"), 10, 64); err == nil {
		return v, 1
	}
	if v, err := strconv.ParseUint(os.Getenv("NELI_SEEDS"), 10, 64); err == nil {
		return 1, v
	}
	return 1, 500
}

func TestLeaseSimulation(t *testing.T) {
	seen := map[string]int{}
	from, n := simSeeds()
	for seed := from; seed < from+n; seed++ {
		s := simulate(seed, false)
		if s.fault != "" {
			lines := simulate(seed, true).lines
			t.Fatalf("%s\nseed %d; replay: NELI_SEED=%d go test -run TestLeaseSimulation\n%s",
				s.fault, seed, seed, strings.Join(lines[max(0, len(lines)-60):], "\n"))
		}
		for k, v := range s.seen {
			seen[k] += v
		}
	}
	t.Logf("%d seeds: %v", n, seen)
	if n < 100 {
		return
	}
	// Green means something only if the interesting things happened.
	for _, what := range []string{"term", "lapsed", "released", "fenced", "claim after release", "claim after silence",
		"claim after its failure was reported", "lost", "doubled", "failed but written", "delayed", "restart",
		"suspended", "rewound", "deaf for ever", "mute for ever"} {
		require.Greater(t, seen[what], 5, "%q hardly ever happened", what)
	}
}
