package nelitest

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/goneli/neli/kafka"
)

// producer implements kafka.Producer.
//
// A message travels for the append latency and arrives, or is parked until the obstacle is gone. Then its
// acknowledgement travels. If that has not arrived after message.timeout.ms, the message is reported as
// failed, whatever has happened to it.
type producer struct {
	client
	timeout  time.Duration
	open     queue[*message] // in order of their deadlines; some are done
	parked   []*message
	last     time.Duration // when the last message arrives; later ones do not overtake it
	expiry   event
	outbox   queue[outcome]
	dispatch event
	carrying bool            // deliver is running
	closing  []chan struct{} // calls of Close that wait for the last report
}

// outcome is a report to be made.
type outcome struct {
	report func(error)
	err    error
}

type message struct {
	event
	p         *producer
	topic     *topic
	partition int
	value     []byte
	report    func(error)
	deadline  time.Duration
	copies    bool // a copy follows, copyAfter later
	copyAfter time.Duration
	stray     bool // held up in the network, where cutting the member's links does not stop it
	queued    bool // it has reached the broker, which is busy
	boot      int  // Broker.boot when it reached the broker
	written   bool // it is in the log; its acknowledgement travels
	offset    int64
	epoch     int  // of the leader that wrote it
	done      bool // reported, or a copy, which has no report
}

func newProducer(c client, timeout time.Duration) *producer {
	p := &producer{client: c, timeout: timeout}
	p.expiry = p.event(taskFunc(p.expire))
	p.dispatch = p.event(taskFunc(p.depart))
	return p
}

// Append implements [kafka.Producer].
func (p *producer) Append(topic string, partition int, value []byte, report func(error)) error {
	b := p.b
	b.mu.Lock()
	defer b.mu.Unlock()
	p.gate()
	if err := p.err(); err != nil {
		return err
	}
	m := &message{
		p: p, topic: b.topic(topic), partition: partition, value: bytes.Clone(value),
		report: report, deadline: b.now() + p.timeout,
	}
	m.event = p.event(m)
	p.open.push(m)
	b.sooner(&p.expiry, m.deadline)
	if p.m.duplicates > 0 {
		p.m.duplicates--
		m.copies, m.copyAfter = true, p.m.copyAfter
	}
	if p.m.nextDelays.len() > 0 {
		m.stray = true
		b.schedule(&m.event, b.now()+p.lag(b.opts.AppendLatency)+p.m.nextDelays.pop())
		return nil
	}
	m.send()
	return nil
}

// send puts the message on its way, behind those before it.
func (m *message) send() {
	p := m.p
	p.last = max(p.last, p.b.now()+p.lag(p.b.opts.AppendLatency)+p.m.delay)
	p.b.schedule(&m.event, p.last)
}

func (m *message) fire() {
	if m.written {
		m.acknowledge()
	} else {
		m.arrive()
	}
}

func (m *message) arrive() {
	p, b := m.p, m.p.b
	if m.queued {
		if m.boot == b.boot && !b.down {
			m.write()
		}
		return // otherwise it was lost with the broker
	}
	if b.down || !m.stray && (!p.reaches(LinkAppends) || p.waits(m)) || !m.topic.has(m.partition) || b.offline(m.topic, m.partition) {
		if !m.done {
			m.stray = false
			p.parked = append(p.parked, m)
		}
		return
	}
	if err := p.m.refusal(LinkAppends); err != nil {
		m.finish(err)
		return
	}
	if b.perRecord > 0 {
		m.queued, m.boot = true, b.boot
		b.busyUntil = max(b.busyUntil, b.now()) + b.perRecord
		b.schedule(&m.event, b.busyUntil)
		return
	}
	m.write()
}

// waits reports whether an earlier message to the same partition waits until an obstacle is gone.
func (p *producer) waits(m *message) bool {
	return slices.ContainsFunc(p.parked, func(x *message) bool {
		return !x.done && !x.written && x.topic == m.topic && x.partition == m.partition
	})
}

// write puts the message into the log, whether or not its sender has given it up.
func (m *message) write() {
	p, b := m.p, m.p.b
	if !m.topic.has(m.partition) || b.offline(m.topic, m.partition) {
		return // the topic was deleted, or its broker stopped, while it waited; it is reported after its timeout
	}
	m.written = true
	m.epoch = m.topic.logs[m.partition].epoch
	m.offset = b.append(m.topic, m.partition, entry{value: m.value, by: m})
	if m.copies {
		c := &message{p: p, topic: m.topic, partition: m.partition, value: m.value, stray: true, done: true}
		c.event = p.event(c)
		b.schedule(&c.event, b.now()+m.copyAfter)
	}
}

// lost reports whether the log has lost a written message, not by DeleteHead.
func (m *message) lost() bool {
	if !m.topic.has(m.partition) {
		return true
	}
	l := m.topic.logs[m.partition]
	i := m.offset - l.start
	return i >= int64(len(l.entries)) || i >= 0 && l.entries[i].epoch != m.epoch
}

// committed sends the acknowledgement on its way.
func (m *message) committed() {
	if p := m.p; !m.done {
		if p.m.throttle > 0 {
			p.waited += p.m.throttle
		}
		p.b.schedule(&m.event, p.b.now()+p.lag(p.b.opts.AckLatency)+p.m.throttle)
	}
}

// resend sends a message again after a change of leader.
func (m *message) resend() {
	p := m.p
	switch {
	case m.done:
	case p.b.down || p.m.suspended || !p.reaches(LinkAcks): // the client does not learn of the new leader now
		m.written, m.queued, m.stray, m.copies = false, false, false, false
		p.parked = append(p.parked, m)
	default:
		m.written, m.queued, m.stray, m.copies = false, false, false, false
		m.send()
	}
}

func (m *message) acknowledge() {
	switch p := m.p; {
	case m.done:
	case p.b.down || p.b.offline(m.topic, m.partition):
		p.parked = append(p.parked, m)
	case p.reaches(LinkAcks):
		m.finish(nil)
	}
}

// finish queues the message's report, once.
func (m *message) finish(err error) {
	if m.done {
		return
	}
	m.done = true
	p := m.p
	p.outbox.push(outcome{m.report, err})
	m.report = nil
	for p.open.len() > 0 && p.open.first().done {
		p.open.pop()
	}
	p.carry()
}

// expire reports messages that were not acknowledged in time.
func (p *producer) expire() {
	now := p.b.now()
	for p.open.len() > 0 {
		m := p.open.first()
		switch {
		case m.done:
			p.open.pop()
		case m.deadline > now:
			p.b.schedule(&p.expiry, m.deadline)
			return
		case !m.topic.has(m.partition):
			m.finish(fmt.Errorf("%w: %w", errTimedOut, unknown(m.topic.name, m.partition)))
		default:
			m.finish(errTimedOut)
		}
	}
}

// Purge implements [kafka.Producer]. Messages in flight arrive nevertheless.
func (p *producer) Purge() {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	p.gate()
	p.purge(errPurged)
}

func (p *producer) purge(err error) {
	p.parked = nil
	for p.open.len() > 0 {
		m := p.open.pop()
		m.finish(err)
	}
}

// Close implements [kafka.Producer]. It must not be called from a report.
func (p *producer) Close() error {
	b := p.b
	b.mu.Lock()
	defer b.mu.Unlock()
	p.gate()
	if !p.closed {
		p.closed = true
		p.purge(errClosed)
		b.cancel(&p.expiry)
	}
	if p.outbox.len() > 0 || p.carrying {
		done := make(chan struct{})
		p.closing = append(p.closing, done)
		b.mu.Unlock()
		<-done
		b.mu.Lock()
	}
	p.dismiss(p) // not earlier, since the end of a suspension releases the last reports
	return nil
}

// carry makes sure that the outbox is delivered.
func (p *producer) carry() {
	switch l := &p.b.line; {
	case p.carrying || p.outbox.len() == 0 || p.m.suspended && !p.dead:
	case l.running && !l.woke:
		p.depart()
	default:
		p.b.sooner(&p.dispatch, 0)
	}
}

// depart makes the current run of events deliver the outbox.
func (p *producer) depart() {
	if !p.carrying && p.outbox.len() > 0 {
		p.carrying = true
		p.b.line.courier, p.b.line.woke = p, true
	}
}

// deliver makes the reports. It does not hold the lock meanwhile.
func (p *producer) deliver() {
	for {
		p.b.mu.Lock()
		if p.outbox.len() == 0 || p.m.suspended && !p.dead {
			p.carrying = false
			if p.outbox.len() == 0 {
				for _, c := range p.closing {
					close(c)
				}
				p.closing = nil
			}
			p.b.mu.Unlock()
			return
		}
		o := p.outbox.pop()
		p.b.mu.Unlock()
		o.report(o.err)
	}
}

func (p *producer) recheck() {
	p.carry()
	if p.b.down || p.m.suspended {
		return
	}
	parked := p.parked
	p.parked = nil
	last := p.last
	for _, m := range parked {
		switch {
		case m.done:
		case m.written && m.lost():
			m.resend()
		case m.written:
			p.b.schedule(&m.event, p.b.now()+p.lag(p.b.opts.AckLatency))
		case !p.reaches(LinkAppends) || !m.topic.has(m.partition) || p.b.offline(m.topic, m.partition):
			p.parked = append(p.parked, m)
		default:
			m.send()
		}
	}
	if p.last > last {
		for _, m := range p.open.items[p.open.head:] {
			if m.pos > 0 && m.at <= last && !m.stray && !m.queued && !m.written {
				m.send() // behind those that waited
			}
		}
	}
}

// lose takes back the messages that the broker had not processed.
func (p *producer) lose() {
	for _, m := range p.open.items[p.open.head:] {
		if m.queued && !m.written && !m.done {
			p.b.cancel(&m.event)
			m.queued, m.stray = false, false
			p.parked = append(p.parked, m)
		}
	}
}

func (p *producer) kill() {
	p.dead = true
	p.b.cancel(&p.expiry)
	p.purge(p.err())
	p.carry() // the reports that a suspension held up
}

var _ kafka.Producer = (*producer)(nil)
