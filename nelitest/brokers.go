package nelitest

import (
	"fmt"
	"slices"

	"github.com/goneli/neli/kafka"
)

// StopBroker stops one broker of the cluster, at once. The partitions of which no other running broker has a replica
// then have no leader: appends wait for one or until they time out, reads return nothing and no error,
// and admin requests about these logs wait. Clients are not told. All other partitions continue under
// another replica; that change of leader is not simulated. StopBroker fails if there is no such broker.
func (b *Broker) StopBroker(id int) error {
	return b.changeBroker(id, func() { b.away[id] = true })
}

// StartBroker brings a broker back with all its data. In a new epoch, it leads those of its partitions
// that had no leader.
func (b *Broker) StartBroker(id int) error {
	return b.changeBroker(id, func() {
		if b.away[id] {
			b.comeBack(id)
		}
	})
}

// WipeBroker simulates the loss of a broker's disk. The broker comes back; if it was up, it goes down
// first. The partitions of which it has the only replica are then empty, in a new epoch and under the
// same topic id. Acknowledged records are gone, and no client is told.
func (b *Broker) WipeBroker(id int) error {
	return b.changeBroker(id, func() {
		b.eachLog(func(t *topic, partition int) {
			if l := t.logs[partition]; slices.Equal(l.brokers, []int{id}) {
				b.cut(l, 0)
				l.entries, l.start = nil, 0
			}
		})
		b.comeBack(id)
	})
}

// comeBack begins a new epoch of the partitions that only this broker has, and of those that had no leader.
func (b *Broker) comeBack(id int) {
	led := map[*partitionLog]bool{}
	b.eachLog(func(t *topic, partition int) { led[t.logs[partition]] = !b.offline(t, partition) })
	delete(b.away, id)
	b.eachLog(func(t *topic, partition int) {
		if l := t.logs[partition]; slices.Equal(l.brokers, []int{id}) || !led[l] && slices.Contains(l.brokers, id) {
			l.epoch += 2 // one of them for the time without a leader
			b.commit(t, partition)
			t.touch(partition)
		}
	})
	for _, m := range b.members {
		m.recheck()
	}
}

func (b *Broker) changeBroker(id int, change func()) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if id < 1 || id > b.opts.Brokers {
		return fmt.Errorf("nelitest: no broker %d of %d", id, b.opts.Brokers)
	}
	change()
	return nil
}

// offline reports whether a partition exists and has no leader.
func (b *Broker) offline(t *topic, partition int) bool {
	return t.has(partition) && !slices.ContainsFunc(t.logs[partition].brokers, func(id int) bool { return !b.away[id] })
}

// place returns the brokers of a partition's replicas, unless the topic's creator names them.
func (b *Broker) place(partition, replicas int) []int {
	var on []int
	for i := range replicas {
		on = append(on, (partition+i)%b.opts.Brokers+1)
	}
	return on
}

func (b *Broker) checkPlacement(spec kafka.TopicSpec) error {
	if spec.Brokers == nil {
		return nil
	}
	if len(spec.Brokers) != spec.Partitions {
		return fmt.Errorf("nelitest: %d partitions, and brokers for %d", spec.Partitions, len(spec.Brokers))
	}
	for i, on := range spec.Brokers {
		different := slices.Compact(slices.Sorted(slices.Values(on)))
		if len(on) != spec.Replicas || len(different) != len(on) ||
			slices.ContainsFunc(on, func(id int) bool { return id < 1 || id > b.opts.Brokers }) {
			return fmt.Errorf("nelitest: partition %d on brokers %v: must be %d different ones of %d", i, on, spec.Replicas, b.opts.Brokers)
		}
	}
	return nil
}

// describe returns the cluster's description of its brokers.
func (b *Broker) describe() []kafka.BrokerInfo {
	var all []kafka.BrokerInfo
	for id := 1; id <= b.opts.Brokers; id++ {
		info := kafka.BrokerInfo{ID: id}
		if id <= len(b.opts.Racks) {
			info.Rack = b.opts.Racks[id-1]
		}
		if !b.away[id] {
			all = append(all, info)
		}
	}
	return all
}

// Assign makes exactly these partitions the assignment of a member, whatever others have. So a partition
// can be assigned to several members, or, with [Broker.Revoke], to none. It lasts until the group's next
// rebalance, and applies to all group consumers of the member. They report it as GroupAssigned, at the
// next heartbeat if the member cannot be reached now. Partitions that the topic does not have are left
// out. The result reports whether the member is in a group; if not, nothing happens.
func (b *Broker) Assign(member string, partitions ...int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.eachMembership(member, func(m *membership) { m.force(partitions) })
}

// Revoke takes partitions from a member. It is Assign with the remaining ones.
func (b *Broker) Revoke(member string, partitions ...int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.eachMembership(member, func(m *membership) {
		m.force(slices.DeleteFunc(slices.Clone(m.assigned), func(p int) bool { return slices.Contains(partitions, p) }))
	})
}

// Expire ends a member's group sessions on the broker's side, now. A rebalance gives its partitions to
// others. The member gets GroupLost at its next heartbeat, or after the session timeout if it cannot be
// reached, and joins again. The result reports whether it was in a group.
func (b *Broker) Expire(member string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.eachMembership(member, func(m *membership) { m.g.remove(m) })
}

// Rebalance makes all groups rebalance.
func (b *Broker) Rebalance() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, g := range b.groups {
		g.begin()
	}
}

// Assigned returns the partitions that the coordinator has assigned to a member, in all its groups, in
// ascending order. The member itself may not know them yet.
func (b *Broker) Assigned(member string) []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []int
	b.eachMembership(member, func(m *membership) { all = append(all, m.assigned...) })
	slices.Sort(all)
	return all
}

func (b *Broker) eachMembership(member string, do func(*membership)) (any bool) {
	for _, g := range b.groups {
		for _, m := range slices.Clone(g.members) {
			if m.c.m.name == member {
				any = true
				do(m)
			}
		}
	}
	return any
}
