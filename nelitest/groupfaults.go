package nelitest

import "slices"

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
