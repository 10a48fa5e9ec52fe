package nelitest

import (
	"cmp"
	"slices"
	"time"
)

// group is the coordinator's side of a consumer group on one topic.
//
// A rebalance is a round in which every member joins. Existing members learn of it by their heartbeats.
// When all have joined, the assignment is made and sent. Under the cooperative protocol the first round
// only takes moving partitions from their owners. The owners join again, and the second round assigns them.
type group struct {
	b       *Broker
	id      string
	topic   *topic
	members []*membership // in order of the members' names
	joining bool          // a round is under way

	notBefore time.Duration // when the round may end
	notAfter  time.Duration // when the round must end
	ev        event         // the end of the round
}

// membership is the coordinator's view of a member.
type membership struct {
	g        *group
	c        *groupConsumer
	seen     time.Duration // the last heartbeat
	joined   bool          // has joined in this round
	owned    []int         // claimed by the member when it joined
	assigned []int
	version  int // of assigned
	forced   bool
	gone     bool
	expiry   event
	delivery event
}

func (b *Broker) group(id, topic string) *group {
	i, ok := slices.BinarySearchFunc(b.groups, id, func(g *group, id string) int {
		return cmp.Or(cmp.Compare(g.id, id), cmp.Compare(g.topic.name, topic))
	})
	if !ok {
		g := &group{b: b, id: id, topic: b.topic(topic)}
		g.ev = event{by: "group " + id + " " + topic, do: taskFunc(g.proceed)}
		b.groups = slices.Insert(b.groups, i, g)
	}
	return b.groups[i]
}

// join is a member's request to join, or to join again.
func (g *group) join(c *groupConsumer) {
	m := c.ms
	if m == nil || m.gone {
		if m = g.resident(c.instance); m != nil {
			g.takeOver(m, c)
			return
		}
		m = &membership{g: g, c: c}
		m.expiry = c.event(taskFunc(m.expire))
		m.delivery = c.event(taskFunc(m.deliver))
		c.ms = m
		if len(g.members) == 0 {
			g.notBefore = g.b.now() + g.b.opts.InitialRebalanceDelay
		}
		g.members = append(g.members, m)
		slices.SortStableFunc(g.members, func(x, y *membership) int {
			return cmp.Or(cmp.Compare(x.c.m.name, y.c.m.name), cmp.Compare(x.c.rank, y.c.rank))
		})
	}
	m.heard()
	g.begin()
	m.joined, m.owned = true, nil
	if !c.eager {
		m.owned = c.have
	}
	g.settle()
}

// inconsistent reports whether c has no assignment strategy in common with all others.
func (g *group) inconsistent(c *groupConsumer) bool { return g.strategy(c) == "" }

// strategy returns the first strategy of c that all members have; empty if there is none.
func (g *group) strategy(c *groupConsumer) string {
	for _, name := range c.strategies {
		if !slices.ContainsFunc(g.members, func(m *membership) bool { return !slices.Contains(m.c.strategies, name) }) {
			return name
		}
	}
	return ""
}

// resident returns the membership that has a group.instance.id.
func (g *group) resident(instance string) *membership {
	for _, m := range g.members {
		if instance != "" && m.c.instance == instance {
			return m
		}
	}
	return nil
}

// takeOver gives a static member's place to the client that joined with the same
// group.instance.id; the previous one is fenced. That alone moves no partition.
func (g *group) takeOver(m *membership, c *groupConsumer) {
	m.c, c.ms = c, m
	m.owned = nil
	m.heard()
	if g.joining {
		m.joined = true
		g.settle()
		return
	}
	m.give(m.assigned)
}

// begin starts a round unless one is under way.
func (g *group) begin() {
	if g.joining || len(g.members) == 0 {
		return
	}
	g.joining = true
	patience := time.Duration(0)
	for _, m := range g.members {
		m.joined = false
		patience = max(patience, m.c.maxPoll)
	}
	g.notAfter = g.b.now() + patience
	g.b.schedule(&g.ev, g.notAfter)
}

// settle makes the round end soon if every member has joined.
func (g *group) settle() {
	if g.joining && g.complete() {
		g.b.schedule(&g.ev, max(g.notBefore, g.b.now()+g.b.opts.RebalanceTime))
	}
}

func (g *group) complete() bool {
	return !slices.ContainsFunc(g.members, func(m *membership) bool { return !m.joined })
}

// proceed ends the round, without the members that have not joined in time.
func (g *group) proceed() {
	if g.b.down || !g.joining {
		return
	}
	if !g.complete() {
		if g.b.now() < g.notAfter {
			g.b.schedule(&g.ev, g.notAfter)
			return
		}
		for _, m := range slices.Clone(g.members) {
			if !m.joined {
				g.remove(m)
			}
		}
		g.settle()
		return
	}
	g.joining = false
	if len(g.members) > 0 {
		g.assign()
	}
}

func (g *group) assign() {
	n := len(g.topic.logs)
	if g.members[0].c.eager {
		assignEager := assignRange
		if g.strategy(g.members[0].c) == roundRobin {
			assignEager = assignRoundRobin
		}
		for i, ps := range assignEager(n, len(g.members)) {
			g.members[i].give(ps)
		}
		return
	}
	has := make([][]int, len(g.members))
	for i, m := range g.members {
		has[i] = m.owned
	}
	target, owner := assignSticky(n, has)
	for i, m := range g.members {
		m.give(slices.DeleteFunc(target[i], func(p int) bool { return owner[p] >= 0 && owner[p] != i }))
	}
}

// give makes partitions the member's assignment, and sends it.
func (m *membership) give(partitions []int) {
	m.assigned, m.forced = slices.Clone(partitions), false
	slices.Sort(m.assigned)
	m.version++
	m.g.b.schedule(&m.delivery, m.g.b.now()+m.c.lag(m.g.b.opts.RequestLatency))
}

// force gives a member partitions on a test's command.
func (m *membership) force(partitions []int) {
	there := slices.DeleteFunc(slices.Clone(partitions), func(p int) bool { return !m.g.topic.has(p) })
	slices.Sort(there)
	m.give(slices.Compact(there))
	m.forced = true
}

// deliver is the arrival of the assignment at the member. If it does not arrive, the next heartbeat fetches it.
func (m *membership) deliver() {
	if c := m.c; !m.gone && c.ms == m && !c.over() && c.reaches(LinkGroup) && !c.m.suspended {
		c.receive()
	}
}

// heard notes a sign of life.
func (m *membership) heard() {
	m.seen = m.g.b.now()
	m.g.b.sooner(&m.expiry, m.seen+m.c.session)
}

func (m *membership) expire() {
	b := m.g.b
	switch end := m.seen + m.c.session; {
	case m.gone || b.down:
	case b.now() < end:
		b.schedule(&m.expiry, end)
	default:
		m.g.remove(m)
	}
}

// remove ends a membership. The present round, or a new one, gives its partitions to others.
func (g *group) remove(m *membership) {
	if m.gone {
		return
	}
	m.gone = true
	g.b.cancel(&m.expiry)
	g.b.cancel(&m.delivery)
	g.members = slices.DeleteFunc(g.members, func(x *membership) bool { return x == m })
	if g.joining {
		g.settle()
	} else {
		g.begin()
	}
}

// revive continues the group after the coordinator was down.
func (g *group) revive() {
	for _, m := range g.members {
		m.heard()
	}
	if g.joining {
		g.b.schedule(&g.ev, g.b.now()+g.b.opts.RebalanceTime)
	}
}

// end stops the group's timers for good.
func (g *group) end() {
	for _, m := range g.members {
		m.gone = true
		g.b.cancel(&m.expiry)
		g.b.cancel(&m.delivery)
	}
	g.members, g.joining = nil, false
	g.b.cancel(&g.ev)
}

func (b *Broker) rebalanceTopic(topic string) {
	for _, g := range b.groups {
		if g.topic.name == topic {
			g.begin()
		}
	}
}
