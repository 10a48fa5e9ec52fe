package sim

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/sentinel"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

// Sentinels beside the members, one or two, in runs with Options.Hub. The library's Hub and Watch
// run over a simulated kernel and socket. Members register late, with some sentinels never, and
// again after a sentinel has restarted. Sentinels learn of deaths late, twice or never.

// posts are the sentinels of a world. They draw from a source of their own, so that a seed stays
// the same without them.
type posts struct {
	*journal
	opts   *Options
	at     sentinel.Registration // of all members, without their identities
	longer time.Duration         // the longest T
	net    network
	ending sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	rnd     *rand.Rand
	born    int
	living  []*post
	members map[string]watchedMember // by process; those still alive
	numbers map[string]uint64        // by process: the number of its newest registration, at any sentinel
}

// network connects sentinels to the brokers or the small logs, and kills them there.
type network struct {
	provider func(id string) kafka.Provider
	kill     func(id string)
}

// post is one sentinel.
type post struct {
	id   string
	hub  *sentinel.Hub
	stop context.CancelFunc
}

// watchedMember is a live member.
type watchedMember struct {
	secret, name string
	t            time.Duration
	farewell     bool // it says goodbye after Close
}

// newPosts returns the sentinels. If there are to be none, it returns nil, whose methods do nothing.
func newPosts(j *journal, opts *Options, at sentinel.Registration, net network) *posts {
	if opts.Hub == nil {
		return nil
	}
	s := &posts{journal: j, opts: opts, at: at, longer: at.T, net: net, rnd: rand.New(rand.NewPCG(opts.Seed, 43)), members: map[string]watchedMember{}, numbers: map[string]uint64{}}
	for range 1 + s.rnd.IntN(2) {
		s.start()
	}
	return s
}

// start starts a sentinel. It knows no member until one registers.
func (s *posts) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.born++
	p := &post{id: fmt.Sprint("s", s.born)}
	clock := newMachine(s.began, s.at.Rho*float64(s.rnd.IntN(3)-1), sigma*float64(s.rnd.IntN(3)-1))
	seed := s.rnd.Uint64()
	logger := s.logger(p.id, s.opts)
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.hub = s.opts.Hub(ctx, Machine{Clock: library{clock}, Random: random(seed, 41, false), ID: fmt.Sprintf("%s.%x", p.id, seed)},
		neli.Config{Sentinel: "none", Name: p.id, Provider: s.net.provider(p.id), Logger: logger})
	s.say(p.id, "a sentinel starts")
	s.living = append(s.living, p)
	for id := range s.members {
		s.registers(p, id)
	}
}

// enrol returns the process id of a new member, and lets it register with the sentinels.
func (s *posts) enrol(secret, name string, t time.Duration) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := sentinel.ProcessID(secret)
	s.members[id] = watchedMember{secret, name, t, s.rnd.IntN(2) == 0}
	for _, p := range s.living {
		s.registers(p, id)
	}
	return id
}

// registers lets a member register soon, late or never. It needs the lock.
func (s *posts) registers(p *post, id string) {
	if s.rnd.IntN(8) == 0 {
		return // it cannot reach the socket
	}
	s.after(oneOf(s.rnd, 0, s.longer/100, s.longer), func() { s.register(p, id) })
}

// after calls do within d. It needs the lock.
func (s *posts) after(d time.Duration, do func()) {
	time.AfterFunc(time.Duration(s.rnd.Int64N(int64(d)+1)), do)
}

// register does what a member's Client does. It tries again while the member and the sentinel are alive.
func (s *posts) register(p *post, id string) {
	s.mu.Lock()
	m, lives := s.members[id]
	lives = lives && slices.Contains(s.living, p)
	s.numbers[id]++
	number := s.numbers[id]
	s.mu.Unlock()
	if !lives {
		return
	}
	again := func(a sentinel.Answer) {
		if a.State == sentinel.Refused {
			time.AfterFunc(time.Second, func() { s.register(p, id) })
		}
	}
	reg := s.at
	reg.Process, reg.Secret, reg.Name, reg.T, reg.Number = id, m.secret, m.name, m.t, number
	a, _ := p.hub.Register(reg, sentinel.Proof{Files: 1, Pidfd: true}, &sentinel.Teller{Tell: again})
	again(a)
}

// stops lets the kernel tell the sentinels of a death: late, perhaps twice, some of them never. A
// pidfd becomes readable when its process has ended, but not when it is suspended.
func (s *posts) stops(id string, ended bool) {
	if s == nil || !ended {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.members, id)
	for _, p := range s.living {
		for range 1 + s.rnd.IntN(2) {
			if s.rnd.IntN(6) > 0 {
				s.after(oneOf(s.rnd, 0, time.Millisecond, s.longer/10, s.longer, 10*s.longer), func() { s.tell(p, id) })
			}
		}
	}
}

func (s *posts) tell(p *post, id string) {
	s.mu.Lock()
	lives, newest := slices.Contains(s.living, p), s.numbers[id]
	s.mu.Unlock()
	if lives {
		s.opts.Seen.Count("sentinel: told of a death")
		for number := uint64(1); number <= newest && p.hub.Fired(id, number); number++ { // it may have registered elsewhere last
		}
	}
}

// left handles a member that has closed: it says goodbye, or its end looks like a death.
func (s *posts) left(id string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	m := s.members[id]
	living := slices.Clone(s.living)
	s.mu.Unlock()
	if !m.farewell {
		s.stops(id, true)
		return
	}
	for _, p := range living {
		p.hub.Goodbye(id)
	}
	s.mu.Lock()
	delete(s.members, id)
	s.mu.Unlock()
}

// any draws a sentinel.
func (s *posts) any() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.living[s.rnd.IntN(len(s.living))].id
}

// crash kills a sentinel, as SIGKILL does.
func (s *posts) crash(id string) {
	s.net.kill(id)
	s.mu.Lock()
	i := slices.IndexFunc(s.living, func(p *post) bool { return p.id == id })
	p := s.living[i]
	s.living = slices.Delete(s.living, i, i+1)
	s.mu.Unlock()
	s.say(id, "the sentinel is killed")
	p.stop()
	s.ending.Go(p.hub.Wait)
}

// restart replaces a sentinel. The new one knows only what members tell it.
func (s *posts) restart() {
	s.crash(s.any())
	s.start()
}

// close ends all sentinels.
func (s *posts) close() {
	if s == nil {
		return
	}
	for s.number() > 0 {
		s.crash(s.any())
	}
	s.ending.Wait()
}

func (s *posts) number() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.living)
}

// buriedAlive asserts that the process in whose name a sentinel sent a Release is dead. It needs the lock.
func (w *world) buriedAlive(process string) {
	if i := slices.IndexFunc(w.procs, func(p *proc) bool { return p.self == process }); i >= 0 {
		w.violated("a sentinel's Release is in the name of %s, which lives", w.procs[i].id)
	}
	w.opts.Seen.Count("sentinel: a Release in the name of the dead")
}

// succeeded counts successes of the sentinels: a process leads within T/2 after another's death.
func (s *posts) succeeded(dead time.Time, t time.Duration) {
	if s != nil && !dead.IsZero() && time.Since(dead) < t/2 {
		s.opts.Seen.Count("sentinel: the dead are succeeded within T/2")
	}
}

// watchedOver asserts that the sentinels' cases have occurred.
func watchedOver(t *testing.T, seen *Seen, kafka bool) {
	all := []string{"sentinel: told of a death", "sentinel: the dead are succeeded within T/2"}
	if kafka { // small logs do not show who has sent what
		all = append(all, "sentinel: a Claim of the dead became valid", "sentinel: a Release in the name of the dead")
		for _, f := range sentinelFaults {
			all = append(all, "fault: "+f.name)
		}
	} else {
		for _, f := range smallSentinelFaults {
			all = append(all, "fault: "+f.name)
		}
	}
	for _, what := range all {
		if seen.Of(what) == 0 {
			t.Errorf("never: %s", what)
		}
	}
}

// sentinelFaults strike in runs with sentinels, beside a few of the other faults.
var sentinelFaults = []fault{
	{"killed with appends under way", func(w *world, p *proc) {
		for range 1 + w.rnd.IntN(4) {
			w.delayNext(p, w.upTo(oneOf(w.rnd, p.t/2, 2*p.t, 10*p.t)))
		}
		time.Sleep(w.upTo(p.t))
		w.crash(p)
		w.start(oneOf(w.rnd, "", p.name))
	}},
	{"killed, and its successors with Claims under way", func(w *world, p *proc) {
		w.unsureNow() // perhaps no process is left that knows the fold
		d := oneOf(w.rnd, p.t/2, p.t, 4*p.t)
		for _, q := range w.living() {
			for range 3 {
				w.delayNext(q, d/2+w.upTo(d))
			}
		}
		w.crash(p)
		time.Sleep(w.upTo(d))
		for _, q := range w.living() {
			w.crash(q)
			w.start("")
		}
		w.start("")
	}},
	{"all but one killed", func(w *world, p *proc) {
		for q := w.another(p); q != nil; q = w.another(p) {
			w.crash(q)
		}
		w.start("")
		w.start("")
	}},
	{"one leader killed after the other", func(w *world, p *proc) {
		for range 1 + w.rnd.IntN(4) {
			w.crash(p)
			w.start("")
			time.Sleep(w.upTo(2 * p.t))
			p = w.victim()
		}
	}},
	{"killed, and a sentinel with it", func(w *world, p *proc) {
		w.crash(p)
		w.posts.restart()
		w.start(p.name)
	}},
	{"a sentinel restarted", func(w *world, _ *proc) { w.posts.restart() }},
	{"a sentinel suspended", func(w *world, _ *proc) {
		id := w.posts.any()
		w.broker.Suspend(id)
		w.later(w.long(), func() { w.broker.Resume(id) })
	}},
	{"a sentinel cut off", func(w *world, _ *proc) {
		id, links := w.posts.any(), oneOf(w.rnd, nelitest.LinkAll, nelitest.LinkAppends, nelitest.LinkReads, nelitest.LinkAcks)
		w.broker.CutOff(id, links)
		w.later(w.long(), func() { w.broker.Restore(id, links) })
	}},
	{"a sentinel's records late, doubled and overtaken", func(w *world, p *proc) {
		id := w.posts.any()
		for range 1 + w.rnd.IntN(4) {
			w.broker.DelayNext(id, w.upTo(4*p.t))
		}
		w.quietAfter(4 * p.t)
		w.broker.Duplicate(id, 6, w.upTo(4*p.t))
		w.later(30*time.Second, func() { w.broker.Duplicate(id, 0, 0) })
	}},
	{"a sentinel reads late", func(w *world, p *proc) {
		id := w.posts.any()
		w.broker.SlowReads(id, w.upTo(p.t))
		w.later(w.long(), func() { w.broker.SlowReads(id, 0) })
	}},
}

// smallSentinelFaults are such faults on small logs.
var smallSentinelFaults = []smallFault{
	{"killed with appends under way", func(w *smallWorld, p *smallProc) {
		p.slow(w.upTo(smallLate*w.t), 0)
		w.pass(w.upTo(w.t))
		w.crash(p)
		w.start(oneOf(w.rnd, "", p.name))
	}},
	{"killed, and its successors with Claims under way", func(w *smallWorld, p *smallProc) {
		for _, q := range w.living() {
			if q != p {
				q.slow(w.upTo(smallLate*w.t), 0)
			}
		}
		w.crash(p)
		w.pass(w.upTo(w.t))
		for _, q := range w.living() {
			w.crash(q)
			w.start("")
		}
		w.start("")
	}},
	{"killed, and a sentinel with it", func(w *smallWorld, p *smallProc) {
		w.crash(p)
		w.posts.restart()
		w.start(p.name)
	}},
	{"one leader killed after the other", func(w *smallWorld, p *smallProc) {
		for range 1 + w.rnd.IntN(4) {
			w.crash(p)
			w.start("")
			w.pass(w.upTo(2 * w.t))
			p = w.victim()
		}
	}},
	{"a sentinel restarted", func(w *smallWorld, _ *smallProc) { w.posts.restart() }},
	{"a sentinel cut off from some logs", func(w *smallWorld, _ *smallProc) {
		id := w.posts.any()
		for log := range w.logs {
			if w.rnd.IntN(2) == 0 {
				w.net.CutOff(id, log, nelitest.LinkAll)
				w.later(func() { w.net.Restore(id, log) })
			}
		}
	}},
	{"a sentinel slow", func(w *smallWorld, _ *smallProc) {
		id := w.posts.any()
		w.net.Slow(id, w.upTo(smallLate*w.t), w.upTo(w.t/2))
		w.later(func() { w.net.Slow(id, 0, 0) })
	}},
}
