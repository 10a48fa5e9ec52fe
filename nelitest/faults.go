package nelitest

import (
	"math/bits"
	"time"
)

// Link is a set of the ways between a member and the broker that can be cut.
type Link uint8

const (
	// Appends is the way of records to the log. While it is cut they queue in the
	// client, which writes them, in order, once the link is back; what has waited
	// for message.timeout.ms by then is reported as failed and never written.
	Appends Link = 1 << iota
	// Acks is the way of acknowledgements back. While it is cut records reach the
	// log, and those whose acknowledgement was under way are reported as failed
	// after message.timeout.ms: a lost acknowledgement is not sent again.
	Acks
	// Reads is the way of records to the member. Reading goes on where it was
	// once the link is back. What the client has fetched already it returns still.
	Reads
	// Group is the way to the group coordinator. A member that is cut off for
	// session.timeout.ms loses its session: the others are given its partitions,
	// and itself gets GroupLost, unless a rebalance was under way when it was cut
	// off: then, like librdkafka, it does not notice before the link is back.
	Group
	// Admin is the way of administrative requests. They wait for the link.
	Admin

	// All is every link: a network partition.
	All = Appends | Acks | Reads | Group | Admin

	linkCount = iota
)

// CutOff cuts links of a member, silently: its clients get no errors but timeouts.
// Links that are cut already stay so.
func (b *Broker) CutOff(member string, links Link) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.member(member).cut |= links
}

// Restore mends links of a member.
func (b *Broker) Restore(member string, links Link) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.member(member)
	m.cut &^= links
	m.recheck()
}

// Refuse makes the broker answer a member's requests over the links with err,
// which should wrap kafka.ErrAuthorization or kafka.ErrAuthentication; nil ends it.
// Appends are reported as failed with it; Poll returns it once for every
// Assign or Join and once now; Admin calls return it. A member of a group that is
// refused there does not get its heartbeats through, and loses its session. Acks
// cannot be refused.
func (b *Broker) Refuse(member string, links Link, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.member(member)
	for i := range m.refused {
		if links&(1<<i) != 0 {
			m.refused[i] = err
		}
	}
	m.recheck()
}

// refusal returns what Refuse has set for one link.
func (m *member) refusal(l Link) error { return m.refused[bits.TrailingZeros8(uint8(l))] }

// Suspend stops a member as SIGSTOP stops a process, as far as that can be done
// from outside: every call of its clients, under way or new, blocks until Resume
// or Kill, and no report is made. Its own goroutines and timers run on.
// What its clients have sent still arrives; nothing more is sent, heartbeats
// included. [Broker.Freeze] also shows what the program does when it wakes.
func (b *Broker) Suspend(member string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.member(member)
	m.suspended = m.suspended || !b.closed
}

// Freeze is Suspend, and shows what the member's program does when it wakes: to all
// that it does from now on, it is as if it had slept until its leases were over, and
// had run again before anything of package neli did.
//
//   - Whoever asks the clock is told that nothing is led: IsLeader, IsLeaderOf, Token,
//     Leadership.Valid and Remaining, the context that Lead gives to its function.
//   - Nobody is told without asking: the barrier is not called, no context ends by
//     itself. Pulse, and Close, do not return before Resume or Kill.
//
// What the program still does as a leader after Freeze it would do beside another leader.
// In a test, let it work, freeze it, let some time pass, and see that it has done nothing.
//
// Resume ends the freeze, too. Call it after T, when the lease is really over. If it is
// not, the term goes on, and a function of Lead that has stopped is started anew.
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

// Resume ends a suspension. The calls that were blocked go on: a Poll returns what
// its client had received by the time of the suspension, all of it at once, and
// what has happened since after the usual latency, or nothing where its timeout
// has passed. Overdue reports are made and a heartbeat is sent.
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

// Kill ends a member's processes as SIGKILL does: nothing more is sent, though
// what is under way still arrives; no group is left, sessions time out. Since
// the program that used the clients lives on, their calls fail from now on with
// kafka.ErrClientFatal, appends not yet acknowledged are reported as failed, and
// so does making clients with the member's present providers fail. A suspension
// ends; other faults stay, for the member's next process (see [Broker.Provider]).
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

// Delay adds d to the append latency of a member from its next append on. Records
// do not overtake each other: when the delay is shortened, those behind a delayed
// one still wait for it.
func (b *Broker) Delay(member string, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.member(member).delay = max(d, 0)
}

// DelayNext makes a member's next append take d longer than usual, in place of
// Delay, while later ones overtake it. Meanwhile it is held up in the network: it
// arrives even if by then the link is cut, or it was reported as failed, or its
// sender is gone. Called n times it delays the next n appends, in order.
func (b *Broker) DelayNext(member string, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.member(member).nextDelays.push(max(d, 0))
}

// Duplicate makes each of a member's next n appends arrive twice: the copy
// arrives after the given time from the first, by itself, as with DelayNext. It
// replaces an earlier setting; 0 ends it.
func (b *Broker) Duplicate(member string, n int, after time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.member(member)
	m.duplicates, m.copyAfter = n, max(after, 0)
}

// Throttle makes the broker let a member wait for d for each record that it appends from
// now on, as for a quota that is exceeded: acknowledgements come so much later, and
// Throttled of the producer tells of it. 0 ends it.
func (b *Broker) Throttle(member string, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.member(member).throttle = max(d, 0)
}

// SlowReads adds d to the read latency of a member, 0 ends it.
func (b *Broker) SlowReads(member string, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.member(member)
	m.slow = max(d, 0)
	m.recheck()
}

// Busy makes the cluster work for d for each record, one after the other: records wait
// their turn in one queue, and are written though their senders have given them up
// meanwhile. What waits when the cluster is stopped is lost, and its senders send it
// again once it is up, unless they have given it up. 0 ends it.
func (b *Broker) Busy(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.perRecord = max(d, 0)
}

// Stop takes the cluster down. Records and groups survive. Appends wait for Start
// or their timeout; Polls return one passing error and then nothing; Admin calls
// fail. Sessions do not time out on the side of the broker meanwhile, on the
// member's side they do.
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

// Start brings the cluster up again after Stop. Sessions begin again.
func (b *Broker) Start() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.down {
		return
	}
	b.down, b.busyUntil = false, 0
	b.eachLog(b.commit)
	for _, g := range b.groups {
		g.revive()
	}
	for _, m := range b.members {
		m.recheck()
	}
}
