package nelitest

import (
	"math/bits"
	"time"
)

// Link is a set of connections between a member and the broker that can be cut.
type Link uint8

const (
	// LinkAppends carries records to the log. While it is cut, they queue in the client, which writes them in
	// order once the link is back. A record that has waited for message.timeout.ms by then is reported as
	// failed and never written.
	LinkAppends Link = 1 << iota
	// LinkAcks carries acknowledgements back. While it is cut, records reach the log, and are reported as
	// failed after message.timeout.ms: a lost acknowledgement is not sent again.
	LinkAcks
	// LinkReads carries records to the member. Once the link is back, reading continues where it was. While
	// it is cut, the client still returns what it has fetched already.
	LinkReads
	// LinkGroup connects to the group coordinator. A member that is cut off for session.timeout.ms loses its
	// session: the others get its partitions, and the member gets GroupLost. A member that is cut off during
	// a rebalance does not notice before the link is back, like librdkafka.
	LinkGroup
	// LinkAdmin carries administrative requests. They wait for the link.
	LinkAdmin

	// LinkAll is every link: a network partition.
	LinkAll = LinkAppends | LinkAcks | LinkReads | LinkGroup | LinkAdmin

	linkCount = iota
)

// CutOff cuts links of a member silently: its clients get no errors, only timeouts. Links that are cut
// already stay cut.
func (b *Broker) CutOff(member string, links Link) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.member(member).cut |= links
}

// Restore repairs links of a member.
func (b *Broker) Restore(member string, links Link) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.member(member)
	m.cut &^= links
	m.recheck()
}

// Refuse makes the broker answer a member's requests over the links with err, which should wrap
// kafka.ErrAuthorization or kafka.ErrAuthentication; nil ends this. Appends fail with err. Poll returns
// err once now, and once for every Assign or Join. Admin calls return it. A group member whose requests
// over LinkGroup are refused sends no heartbeats, and loses its session. LinkAcks cannot be refused.
func (b *Broker) Refuse(member string, links Link, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.member(member)
	for i := range m.refused {
		if links&(1<<i) != 0 {
			m.refused[i] = nil
			if err != nil {
				m.refused[i] = &refusal{err}
			}
		}
	}
	m.recheck()
}

// refusal is one call of Refuse. Clients that report it once compare pointers.
type refusal struct{ err error }

// refuses returns the refusal of one link; nil: none.
func (m *member) refuses(l Link) *refusal { return m.refused[bits.TrailingZeros8(uint8(l))] }

// refusal returns the error that Refuse has set for one link.
func (m *member) refusal(l Link) error {
	if r := m.refuses(l); r != nil {
		return r.err
	}
	return nil
}

// Suspend stops a member as SIGSTOP stops a process, as far as that can be done from outside. Every call
// of its clients, pending or new, blocks until Resume or Kill, and no report is made. The program's own
// goroutines and timers continue. What its clients have sent still arrives, but they send nothing more,
// not even heartbeats. [Broker.Freeze] also shows what the program does when it wakes.
func (b *Broker) Suspend(member string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.member(member)
	m.suspended = m.suspended || !b.closed
}

// Freeze is Suspend, and also shows what the member's program does when it wakes. From now on the program
// behaves as if it had slept until its leases were over, and had woken before package neli did.
//
//   - Every check of the clock says that it leads nothing: IsLeader, IsLeaderOf, Token, Leadership.Valid
//     and Remaining, and the context that Lead gives to its function.
//   - Nothing is told without a check: the barrier is not called, and no context ends by itself. Pulse and
//     Close do not return before Resume or Kill.
//
// Whatever the program still does as a leader after Freeze, it would do beside another leader. In a test,
// let it work, freeze it, let some time pass, and verify that it has done nothing.
//
// Resume also ends the freeze. Call it after T, when the lease is really over. If it is not, the term
// continues, and a function of Lead that has returned is called again.
func (b *Broker) Freeze(member string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.member(member)
	if b.closed {
		return
	}
	m.suspended = true
	m.frozen.Freeze()
}

// Resume ends a suspension. Blocked calls continue. Polls first return, without delay, what their client
// had received before, then later events after the usual latency. A Poll whose timeout has passed does
// not await them. Overdue reports are made, and a heartbeat is sent.
func (b *Broker) Resume(member string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.member(member)
	if !m.suspended {
		return
	}
	m.suspended = false
	m.frozen.Thaw()
	m.release()
	m.recheck()
}

// Kill ends a member's processes as SIGKILL does: nothing more is sent, but what is in flight still
// arrives. The member does not leave its groups; its sessions time out. Since the program that used the
// clients lives on, their calls now fail with kafka.ErrClientFatal, pending appends are reported as
// failed, and the member's present providers make no more clients. A suspension ends. Other faults stay,
// for the member's next process (see [Broker.Provider]).
func (b *Broker) Kill(member string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.member(member)
	m.suspended = false
	m.frozen.Thaw()
	processes := m.processes
	m.processes = nil
	for _, p := range processes {
		p.kill()
	}
	m.release()
}

// Delay adds d to the append latency of a member from its next append on. Records do not overtake each
// other: after the delay is shortened, later records still wait for a delayed one.
func (b *Broker) Delay(member string, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.member(member).delay = max(d, 0)
}

// DelayNext makes a member's next append take d longer than usual. For this append it replaces Delay, and
// later ones overtake it. Meanwhile the record is held up in the network: it arrives even if by then the
// link is cut, it was reported as failed, or its sender is gone. Called n times, it delays the next n
// appends, in order.
func (b *Broker) DelayNext(member string, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.member(member).nextDelays.push(max(d, 0))
}

// Duplicate makes each of a member's next n appends arrive twice. The copy arrives the given time after
// the first, independently of links, as with DelayNext. It replaces an earlier setting; 0 ends it.
func (b *Broker) Duplicate(member string, n int, after time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.member(member)
	m.duplicates, m.copyAfter = n, max(after, 0)
}

// Throttle makes the broker delay a member by d for each record that it appends from now on, as for an
// exceeded quota: acknowledgements come that much later, and the producer's Throttled counts it. 0 ends
// it.
func (b *Broker) Throttle(member string, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.member(member).throttle = max(d, 0)
}

// SlowReads adds d to the read latency of a member. 0 ends it.
func (b *Broker) SlowReads(member string, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.member(member)
	m.slow = max(d, 0)
	m.recheck()
}

// Busy makes the cluster work for d for each record, one after the other. Records wait in one queue, and
// are written even if their senders have given them up meanwhile. Records that wait when the cluster is
// stopped are lost; their senders send them again once it is up, unless they have given them up. 0 ends
// it.
func (b *Broker) Busy(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.perRecord = max(d, 0)
}

// Stop stops the cluster. Records and groups survive. Appends wait for Start or their timeout. Poll
// returns one passing error and then nothing. Admin calls fail. Meanwhile sessions time out on the
// members' side, but not on the broker's.
func (b *Broker) Stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return
	}
	b.down = true
	b.boot++
	for _, m := range b.members {
		for _, c := range m.clients {
			c.lose()
		}
	}
}

// Start starts the cluster again after Stop, each partition in a new leader epoch. The timeouts of sessions
// begin again.
func (b *Broker) Start() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.down {
		return
	}
	b.down, b.busyUntil = false, 0
	b.eachLog(func(t *topic, partition int) {
		t.logs[partition].epoch += 2 // one of them for the time without a leader
		b.commit(t, partition)
	})
	for _, g := range b.groups {
		g.revive()
	}
	for _, m := range b.members {
		m.recheck()
	}
}
