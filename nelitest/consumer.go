package nelitest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/goneli/neli/kafka"
)

// groupConsumer implements kafka.GroupConsumer: the member's side of a group.
type groupConsumer struct {
	client
	settings
	poll  poller
	fetch fetcher
	topic *topic // joined; nil: none
	read  bool

	ms       *membership // nil while not a member
	version  int         // the version of the assignment that was received; 0: none
	have     []int
	mustJoin bool // send a request to join at the next chance
	underway bool // a request to join is in flight
	rejoins  bool // a request to join was sent, and no assignment received since
	heard    time.Duration
	polled   time.Duration
	fenced   bool
	told     *refusal // the refusal that was reported since the last Join

	news queue[news]
	tick event
	ask  event // the arrival of the request to join

	asking []*waiter // calls of Reach that wait for the link
}

// news is an event that Poll returns before any record.
type news struct {
	ev  kafka.GroupEvent
	err error
}

func newGroupConsumer(c client, s settings) *groupConsumer {
	g := &groupConsumer{client: c, settings: s}
	g.poll.init(&g.client, func() bool { return g.news.len() > 0 || g.fetch.buffer.len() > 0 })
	g.fetch.init(&g.client, &g.poll, s.reset)
	g.tick = g.event(taskFunc(g.heartbeat))
	g.ask = g.event(taskFunc(g.asked))
	return g
}

// Join implements [kafka.GroupConsumer].
func (c *groupConsumer) Join(topic string, read bool) error {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.gate()
	if err := c.err(); err != nil {
		return err
	}
	if c.fenced {
		return c.fencing()
	}
	c.leave()
	c.topic, c.read = c.b.topic(topic), read
	if read {
		c.fetch.follow(c.topic)
	}
	c.polled, c.mustJoin, c.told = c.b.now(), true, nil
	c.b.schedule(&c.tick, c.b.now()+c.settings.heartbeat)
	return nil
}

// Poll implements [kafka.GroupConsumer].
func (c *groupConsumer) Poll(timeout time.Duration) (kafka.GroupEvent, error) {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.gate()
	c.polled = c.b.now()
	c.answer()
	c.poll.wait(c.poll.until(timeout))
	c.polled = c.b.now()
	if err := c.err(); err != nil {
		return kafka.GroupEvent{}, err
	}
	if c.news.len() > 0 {
		n := c.news.pop()
		c.answer()
		return n.ev, n.err
	}
	if c.fetch.buffer.len() > 0 {
		it := c.fetch.take()
		if it.err != nil {
			return kafka.GroupEvent{}, it.err
		}
		return kafka.GroupEvent{Kind: kafka.GroupRecord, Record: it.rec}, nil
	}
	return kafka.GroupEvent{}, nil
}

// Reach implements [kafka.GroupConsumer].
func (c *groupConsumer) Reach(ctx context.Context, _ string) error {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.gate()
	for c.err() == nil && !c.b.down && !c.reaches(LinkGroup) && ctx.Err() == nil {
		w := c.newWaiter()
		c.asking = append(c.asking, w)
		c.b.mu.Unlock()
		select {
		case <-w.done:
		case <-ctx.Done(): // a link that is cut carries no answer
		}
		c.b.mu.Lock()
		c.b.cancel(&w.event)
		c.asking = slices.DeleteFunc(c.asking, func(x *waiter) bool { return x == w })
		c.gate()
	}
	switch {
	case c.err() != nil:
		return c.err()
	case ctx.Err() != nil:
		return fmt.Errorf("nelitest: %w", ctx.Err())
	case c.b.down:
		return errDown
	}
	return nil
}

// Leave implements [kafka.GroupConsumer]. Poll does not report it.
func (c *groupConsumer) Leave() error {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.gate()
	c.leave()
	return nil
}

// Close implements [kafka.GroupConsumer].
func (c *groupConsumer) Close() error {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.gate()
	c.leave()
	c.closed = true
	c.poll.notify()
	c.askAgain()
	c.dismiss(c)
	return nil
}

func (c *groupConsumer) leave() {
	c.depart()
	c.forget()
	c.news.clear()
	c.fetch.quit()
	c.topic, c.mustJoin = nil, false
	c.b.cancel(&c.tick)
}

// depart tells the coordinator that the member leaves, if it can be reached. Static members do not, so
// that they can return.
func (c *groupConsumer) depart() {
	if c.ms != nil && c.ms.c == c && !c.dead && c.reaches(LinkGroup) && c.instance == "" {
		c.ms.g.remove(c.ms)
	}
}

// forget ends the membership on this side.
func (c *groupConsumer) forget() {
	c.fetch.stop(c.have)
	c.ms, c.have, c.version = nil, nil, 0
	c.underway, c.rejoins = false, false
	c.b.cancel(&c.ask)
}

// lost is forget, but it also tells the application, and makes the member join again.
func (c *groupConsumer) lost() {
	c.forget()
	c.mustJoin = true
	c.tell(news{ev: kafka.GroupEvent{Kind: kafka.GroupLost}})
}

func (c *groupConsumer) tell(n news) {
	c.news.push(n)
	c.poll.notify()
}

// answer sends a request to join if one is due and the application has received all news. It runs only during Poll.
func (c *groupConsumer) answer() {
	if !c.mustJoin || c.underway || c.news.len() > 0 || c.over() {
		return
	}
	c.mustJoin, c.underway, c.rejoins = false, true, true
	if c.eager {
		c.fetch.stop(c.have)
	}
	c.b.schedule(&c.ask, c.b.now()+c.lag(c.b.opts.RequestLatency))
}

// asked is the arrival of the request to join.
func (c *groupConsumer) asked() {
	c.underway = false
	if !c.reaches(LinkGroup) || c.m.refusal(LinkGroup) != nil {
		c.mustJoin = true // at the next heartbeat
		return
	}
	if m := c.ms; m != nil && (m.gone || m.c != c) {
		c.beat() // reports that the membership is lost or taken over
		return
	}
	c.heard = c.b.now()
	if !c.topic.exists {
		c.tell(news{err: fmt.Errorf("%w: %s", kafka.ErrUnknownTopic, c.topic.name)})
	}
	g := c.b.group(c.group, c.topic.name)
	if g.inconsistent(c) {
		c.mustJoin = true // at the next heartbeat
		c.tell(news{err: errStrategy})
		return
	}
	g.join(c)
}

// heartbeat happens once in each interval. It also retries whatever has failed.
func (c *groupConsumer) heartbeat() {
	now := c.b.now()
	next := now + c.settings.heartbeat
	defer func() { c.b.schedule(&c.tick, next) }()
	switch {
	case c.m.suspended || c.fenced:
	case c.ms != nil && !c.poll.waiting && now-c.polled > c.maxPoll:
		c.depart()
		c.lost()
	case !c.reaches(LinkGroup) || c.m.refusal(LinkGroup) != nil:
		c.complain()
		if end := c.heard + c.session; c.ms == nil || c.rejoins {
			break
		} else if now >= end {
			c.lost()
		} else {
			next = min(next, end)
		}
	default:
		c.beat()
	}
}

// complain reports a refusal, once.
func (c *groupConsumer) complain() {
	if r := c.m.refuses(LinkGroup); r != nil && r != c.told && c.reaches(LinkGroup) {
		c.told = r
		c.tell(news{err: r.err})
	}
}

func (c *groupConsumer) fencing() error {
	return fmt.Errorf("%w: %s", kafka.ErrInstanceFenced, c.instance)
}

// beat is a heartbeat that reaches the coordinator.
func (c *groupConsumer) beat() {
	m := c.ms
	switch {
	case m == nil:
	case m.c != c:
		c.fenced = true
		c.forget()
		c.tell(news{err: c.fencing()})
		return
	case m.gone:
		c.lost()
	default:
		c.heard = c.b.now()
		m.heard()
		if m.version != c.version && !m.g.joining {
			c.receive()
		}
		if m.g.joining && !m.joined && !c.underway {
			c.mustJoin = true
		}
	}
	if c.poll.waiting {
		c.answer()
	}
}

// receive takes over the assignment that the coordinator has made.
func (c *groupConsumer) receive() {
	m := c.ms
	if m.version == c.version {
		return
	}
	first := c.version == 0
	c.version, c.heard, c.rejoins = m.version, c.b.now(), false
	had := c.have
	c.have = m.assigned
	without := func(a, b []int) []int {
		return slices.DeleteFunc(slices.Clone(a), func(p int) bool { return slices.Contains(b, p) })
	}
	removed, added := without(had, c.have), without(c.have, had)
	c.fetch.stop(removed)
	if c.eager && !m.forced {
		added = c.have // reading has stopped for the rebalance
	}
	for _, p := range added {
		if c.read && m.g.topic.has(p) {
			c.fetch.start(p, m.g.topic.logs[p].readable())
		}
	}
	if !c.eager && !m.forced && len(removed) > 0 {
		c.mustJoin = true // so that others get the removed partitions
	}
	if first || c.eager || len(added)+len(removed) > 0 {
		c.tell(news{ev: kafka.GroupEvent{Kind: kafka.GroupAssigned, Partitions: slices.Clone(c.have)}})
	}
}

// askAgain makes the calls of Reach look again.
func (c *groupConsumer) askAgain() {
	for _, w := range c.asking {
		c.b.schedule(&w.event, 0)
	}
	c.asking = nil
}

func (c *groupConsumer) recheck() {
	c.askAgain()
	c.fetch.recheck()
	c.poll.notify()
	if c.topic != nil && !c.m.suspended {
		c.b.sooner(&c.tick, c.b.now()+c.lag(c.b.opts.RequestLatency))
	}
}

func (c *groupConsumer) lose() {
	c.askAgain()
	if c.topic != nil {
		c.tell(news{err: errDown})
	}
}

func (c *groupConsumer) kill() {
	c.dead = true
	c.fetch.quit()
	c.b.cancel(&c.tick)
	c.b.cancel(&c.ask)
	c.poll.notify()
	c.askAgain()
}
