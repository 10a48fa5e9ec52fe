package nelitest

import (
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goneli/neli/internal/freeze"
	"github.com/goneli/neli/kafka"
)

// Options configure a Broker. The zero value works. For latencies zero means the
// default and a negative value means none.
type Options struct {
	// Brokers is the number of brokers, and the default number of replicas of a topic. Their ids are
	// 1, 2, …. Faults affect all of them together, except StopBroker and WipeBroker. Default: 3.
	Brokers int
	// Racks are the racks of brokers 1, 2, …. Brokers that are not listed have none. Default: none.
	Racks []string
	// AppendLatency is the time from Append until the record is in the log. Default: 1 ms.
	AppendLatency time.Duration
	// AckLatency is the time from when a record is committed until the report. Default: 1 ms.
	AckLatency time.Duration
	// ReadLatency is the time from when a record is committed, or from Assign, until Poll returns it. Default: 1 ms.
	ReadLatency time.Duration
	// RequestLatency is the duration of a request to the group coordinator or by an Admin. Default: 1 ms.
	RequestLatency time.Duration
	// Jitter is the limit of the random time by which each of these latencies is lengthened. Default: none.
	Jitter time.Duration
	// InitialRebalanceDelay is how long the first assignment of an empty group waits for more members
	// (group.initial.rebalance.delay.ms; 3 s on a stock Kafka). Default: none.
	InitialRebalanceDelay time.Duration
	// RebalanceTime is the time from when the last member joins a rebalance until the assignment goes
	// out. Default: none.
	RebalanceTime time.Duration
	// Seed determines all randomness: jitter and topic ids.
	Seed uint64
}

func (o *Options) complete() {
	if o.Brokers <= 0 {
		o.Brokers = 3
	}
	for _, d := range []*time.Duration{&o.AppendLatency, &o.AckLatency, &o.ReadLatency, &o.RequestLatency} {
		if *d == 0 {
			*d = time.Millisecond
		}
	}
	for _, d := range []*time.Duration{&o.AppendLatency, &o.AckLatency, &o.ReadLatency, &o.RequestLatency,
		&o.Jitter, &o.InitialRebalanceDelay, &o.RebalanceTime} {
		*d = max(*d, 0)
	}
}

// Broker is a Kafka cluster in memory, with its clients and the network between them. Its methods are
// safe for concurrent use. They take effect at once and do not wait, unless their comments say so.
//
// A Broker that is used in a synctest bubble must be created in it.
type Broker struct {
	mu      sync.Mutex
	opts    Options
	line    timeline
	topics  map[string]*topic
	topicNo uint64
	groups  []*group  // in order of their keys
	members []*member // in order of their names
	down    bool
	away    map[int]bool // single brokers that are stopped
	closed  bool

	lag       time.Duration // how far the followers lag behind
	perRecord time.Duration // how long the broker works for each record
	busyUntil time.Duration
	boot      int // how often the cluster was stopped
}

// NewBroker returns a running broker that has no topics.
func NewBroker(opts Options) *Broker {
	opts.complete()
	return &Broker{
		opts:   opts,
		line:   timeline{epoch: time.Now()},
		topics: map[string]*topic{},
		away:   map[int]bool{},
	}
}

// Close ends everything: clients fail with kafka.ErrClientFatal, pending calls return, and appends that
// were not acknowledged are reported as failed. It does not wait. Close the clients nevertheless: only
// then is it certain that their last report was made. Closing twice is harmless.
func (b *Broker) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.closed = true
	for _, g := range b.groups {
		g.end()
	}
	for _, m := range b.members {
		m.suspended = false
		m.frozen.Thaw()
		for _, p := range m.processes {
			p.kill()
		}
		m.release()
	}
}

// Provider returns a provider whose clients belong to the named member. Faults name the member that they
// affect. One provider stands for one process: after [Broker.Kill] another call makes the member's next
// process. Provider panics in a synctest bubble if the Broker was created outside any bubble.
func (b *Broker) Provider(member string) kafka.Provider {
	if b.now() < 0 { // a bubble's clock starts in the year 2000: nothing would happen before the Broker's time
		panic("nelitest: a Broker that is used in a synctest bubble must be created in it")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.member(member)
	p := &process{b: b, m: m, dead: b.closed}
	m.processes = append(m.processes, p)
	return p
}

// member is a name to which clients belong, and which faults affect.
type member struct {
	name       string
	processes  []*process
	clients    []endpoint
	made       int // number of clients made so far
	cut        Link
	refused    [linkCount]*refusal
	suspended  bool
	frozen     freeze.State
	held       []*waiter // calls that wait for the end of a suspension
	delay      time.Duration
	nextDelays queue[time.Duration]
	duplicates int
	copyAfter  time.Duration
	slow       time.Duration
	throttle   time.Duration
}

// endpoint is a client as faults see it. Its methods are called with the lock held.
type endpoint interface {
	recheck() // an obstacle may be gone
	lose()    // the broker has gone down
	kill()    // the process has died
}

func (b *Broker) member(name string) *member {
	i, ok := slices.BinarySearchFunc(b.members, name, func(m *member, name string) int {
		return strings.Compare(m.name, name)
	})
	if !ok {
		b.members = slices.Insert(b.members, i, &member{name: name})
	}
	return b.members[i]
}

func (m *member) recheck() {
	for _, c := range m.clients {
		c.recheck()
	}
}

// release resumes the calls that wait for the end of a suspension.
func (m *member) release() {
	for _, w := range m.held {
		w.b.schedule(&w.event, 0)
	}
	m.held = nil
}

// client is the part that all clients have in common.
type client struct {
	b      *Broker
	m      *member
	proc   *process
	rank   int
	rng    *rand.Rand // nil without jitter
	waited time.Duration
	closed bool
	dead   bool
}

func (p *process) newClient() client {
	b, m := p.b, p.m
	c := client{b: b, m: m, proc: p, rank: m.made}
	m.made++
	if b.opts.Jitter > 0 {
		// Each client has its own random numbers, which must not depend on the order in which other
		// clients' goroutines run.
		h := fnv.New64a()
		h.Write([]byte(m.name))
		c.rng = rand.New(rand.NewPCG(b.opts.Seed, h.Sum64()+uint64(c.rank)))
	}
	return c
}

// dismiss removes a client that was closed.
func (c *client) dismiss(e endpoint) {
	same := func(x endpoint) bool { return x == e }
	c.m.clients = slices.DeleteFunc(c.m.clients, same)
	c.proc.clients = slices.DeleteFunc(c.proc.clients, same)
}

func (c *client) event(do task) event {
	return event{by: c.m.name, rank: c.rank, do: do}
}

// lag returns a latency, jitter included.
func (c *client) lag(base time.Duration) time.Duration {
	if c.rng != nil {
		base += time.Duration(c.rng.Int64N(int64(c.b.opts.Jitter)))
	}
	return base
}

func (c *client) reaches(l Link) bool { return !c.b.down && c.m.cut&l == 0 }

// Throttled implements part of [kafka.Producer] and other clients; see [Broker.Throttle].
func (c *client) Throttled() time.Duration {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	return c.waited
}

func (c *client) over() bool { return c.closed || c.dead }

func (c *client) err() error {
	switch {
	case c.closed:
		return errClosed
	case c.dead:
		return c.proc.ended()
	}
	return nil
}

// gate blocks a call while the member is suspended. The caller holds the lock; gate releases it while it waits.
func (c *client) gate() {
	for c.m.suspended && !c.dead {
		w := c.newWaiter()
		c.m.held = append(c.m.held, w)
		c.b.mu.Unlock()
		<-w.done
		c.b.mu.Lock()
	}
}

var (
	errClosed   = errors.New("nelitest: the client is closed")
	errDown     = errors.New("nelitest: the broker is down")
	errTimedOut = errors.New("nelitest: message timed out")
	errPurged   = errors.New("nelitest: message purged")
	errStrategy = errors.New("nelitest: inconsistent group protocol: other members have another partition.assignment.strategy")
)
