package neli_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// fault is something that the adversary does to a process, or to all.
type fault struct {
	name   string
	strike func(w *world, p *proc)
}

// quietAfter takes note of a fault that ends by itself.
func (w *world) quietAfter(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if end := time.Now().Add(d); end.After(w.quiet) {
		w.quiet = end
	}
}

// later undoes a fault after a while, or when everything heals.
func (w *world) later(d time.Duration, undo func()) {
	once := sync.OnceFunc(undo)
	w.undo = append(w.undo, once)
	time.AfterFunc(d, once)
}

// long is how long most faults last: shorter or longer than leases, sessions and
// drains.
func (w *world) long() time.Duration {
	return w.upTo(oneOf(w.rnd, w.timeout, 2*w.timeout, 20*time.Second))
}

func cut(links nelitest.Link) func(*world, *proc) {
	return func(w *world, p *proc) {
		w.broker.CutOff(p.id, links)
		w.later(w.long(), func() { w.broker.Restore(p.id, links) })
	}
}

// faults are all that the adversary knows.
var faults = []fault{
	{"cut off", cut(nelitest.All)},
	{"cannot write", cut(nelitest.Appends)},
	{"cannot read", cut(nelitest.Reads)},
	{"acknowledgements lost", cut(nelitest.Acks)},
	{"cut off from the group", cut(nelitest.Group)},
	{"cut off from the log", cut(nelitest.Appends | nelitest.Acks | nelitest.Reads)},
	{"suspended", func(w *world, p *proc) {
		p.suspend(false)
		w.later(w.long(), p.wake)
	}},
	{"machine suspended", func(w *world, p *proc) {
		p.suspend(true)
		w.later(w.long(), p.wake)
	}},
	{"crash", func(w *world, p *proc) {
		w.crash(p)
		w.start(oneOf(w.rnd, "", p.name), p.group)
	}},
	{"close", func(w *world, p *proc) {
		w.leave(p)
		w.start(oneOf(w.rnd, "", p.name), p.group)
	}},
	{"replaced while suspended", func(w *world, p *proc) {
		p.suspend(w.chance(0.3))
		w.start(p.name, p.group)
		w.later(w.long(), func() {
			p.wake()
			w.leave(p)
		})
	}},
	{"next append delayed", func(w *world, p *proc) { w.delayNext(p, w.upTo(10*w.timeout)) }},
	{"next appends delayed", func(w *world, p *proc) {
		for range 1 + w.rnd.IntN(4) {
			w.delayNext(p, w.upTo(2*w.timeout))
		}
	}},
	{"slow appends", func(w *world, p *proc) {
		w.broker.Delay(p.id, w.upTo(w.timeout))
		w.later(w.long(), func() { w.broker.Delay(p.id, 0) })
	}},
	{"duplicates", func(w *world, p *proc) {
		w.broker.Duplicate(p.id, 5, w.upTo(10*time.Second))
		w.later(30*time.Second, func() { w.broker.Duplicate(p.id, 0, 0) })
	}},
	{"slow reads", func(w *world, p *proc) {
		w.broker.SlowReads(p.id, w.upTo(w.timeout))
		w.later(w.long(), func() { w.broker.SlowReads(p.id, 0) })
	}},
	{"application hangs", func(w *world, p *proc) {
		d := w.upTo(4 * simMaxPulse)
		p.hang(d)
		w.quietAfter(d)
	}},
	{"session expires", func(w *world, p *proc) { w.broker.Expire(p.id) }},
	{"rebalance", func(w *world, _ *proc) { w.broker.Rebalance() }},
	{"assigned everything, too", func(w *world, p *proc) { w.broker.Assign(p.id, w.allPartitions()...) }},
	{"assigned nothing", func(w *world, p *proc) { w.broker.Assign(p.id) }},
	{"broker restart", func(w *world, _ *proc) {
		w.broker.Stop()
		w.brokerIs(true)
		w.later(w.long(), func() {
			w.broker.Start()
			w.brokerIs(false)
		})
	}},
	{"another R", func(w *world, p *proc) {
		if err := p.SetRoles(1 + w.rnd.IntN(w.roles)); err != nil {
			w.Fatal(err)
		}
	}},
	{"wall clock set", func(w *world, p *proc) {
		p.clock.adjust(w.upTo(2*w.timeout)-w.timeout, 2*w.timeout)
	}},
	{"rubbish", func(w *world, _ *proc) { _, _ = w.broker.Inject(simTopic, w.rnd.IntN(w.partitions), []byte("rubbish")) }},
	{"head deleted unread", func(w *world, p *proc) {
		w.broker.CutOff(p.id, nelitest.Reads)
		w.later(w.long(), func() {
			for partition := range w.partitions {
				if rs := w.broker.Records(simTopic, partition); len(rs) > 0 {
					_ = w.broker.DeleteHead(simTopic, partition, rs[len(rs)-1].Offset)
				}
			}
			w.broker.Restore(p.id, nelitest.Reads)
		})
	}},
	{"reads lag, then writes stop", func(w *world, p *proc) {
		w.broker.SlowReads(p.id, w.upTo(2*w.timeout))
		time.Sleep(w.upTo(2 * w.timeout))
		w.broker.CutOff(p.id, nelitest.Appends)
		w.later(w.timeout+w.long(), func() {
			w.broker.SlowReads(p.id, 0)
			w.broker.Restore(p.id, nelitest.Appends)
		})
	}},
	{"suspended with an append under way", func(w *world, p *proc) {
		w.delayNext(p, w.upTo(4*w.timeout))
		time.Sleep(w.upTo(w.timeout))
		p.suspend(false)
		w.broker.Rebalance()
		w.later(w.long(), p.wake)
	}},
}

// breaches break what the promise rests on. All that is asserted of them is that
// everything works again afterwards.
var breaches = []fault{
	{"topic truncated", func(w *world, _ *proc) {
		w.broken = true
		w.breachUntil(2*neli.SilenceOf(w.timeout, w.drift) + 20*time.Second)
		partition := w.rnd.IntN(w.partitions)
		if rs := w.broker.Records(simTopic, partition); len(rs) > 0 {
			_ = w.broker.Truncate(simTopic, partition, rs[len(rs)-1].Offset-int64(w.rnd.IntN(20)))
		}
	}},
	{"topic recreated", func(w *world, _ *proc) {
		w.breachUntil(2*neli.SilenceOf(w.timeout, w.drift) + 30*time.Second)
		_ = w.broker.DeleteTopic(simTopic)
		w.later(w.upTo(5*time.Second), func() { _ = w.broker.CreateTopic(simTopic, w.partitions) })
	}},
}

// brokerIs takes note of whether the broker is down.
func (w *world) brokerIs(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
	if !down {
		w.restarted = time.Now()
	}
}

func (w *world) breachUntil(d time.Duration) {
	w.quietAfter(d)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = true
	w.breach = time.Now().Add(d)
}

func (w *world) delayNext(p *proc, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delayed = append(p.delayed, d)
	w.broker.DelayNext(p.id, d)
}

func (w *world) allPartitions() []int {
	ps := make([]int, w.partitions)
	for p := range ps {
		ps[p] = p
	}
	return ps
}

// menu draws the few kinds of faults that strike again and again in this run.
func menu(rnd *rand.Rand) []fault {
	ms := slices.Clone(faults)
	rnd.Shuffle(len(ms), func(i, j int) { ms[i], ms[j] = ms[j], ms[i] })
	return ms[:1+rnd.IntN(5)]
}

// victim is whom the next fault strikes: a leader rather often.
func (w *world) victim() *proc {
	if w.chance(0.5) {
		if p := w.leaderOf(w.rnd.IntN(w.roles)); p != nil && !p.leaving.Load() {
			return p
		}
	}
	ps := w.living()
	return ps[w.rnd.IntN(len(ps))]
}

func (w *world) strike(f fault, p *proc) {
	w.seen.count("fault: " + f.name)
	w.say(p.id, "fault: %s", f.name)
	f.strike(w, p)
}
