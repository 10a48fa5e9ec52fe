package elector

import (
	"github.com/goneli/neli/internal/byrole"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/leases"
	"github.com/goneli/neli/internal/elector/link"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/quorum"
)

// openShards opens the logs, and returns how many lines of V there are.
func (k *common) openShards(logs int, now clock.Instant) (lines int) {
	if k.set.Majority {
		return k.openSmall(logs, now)
	}
	k.openLogs(logs, now)
	return logs
}

// openLogs opens logs each of which is the only one with its roles.
func (k *common) openLogs(logs int, now clock.Instant) {
	rules := lease.Rules{Process: k.set.Process, Name: k.set.Name, T: k.set.T, Rho: k.set.Rho}
	for i := range logs {
		l := leases.NewOne(rules, i)
		s := newShard(k, byrole.Numbering{Index: i, Of: logs}, l, l, leases.OneTraits)
		s.main = newChannel(k, i, l.Lease, s, now)
		s.logs = channels{s.main}
		k.shards, k.channels = append(k.shards, s), append(k.channels, s.main)
	}
}

// openSmall opens small logs, which form one shard together. It returns how many lines of V there
// are.
func (k *common) openSmall(logs int, now clock.Instant) (lines int) {
	q := leases.NewSmall(quorum.Rules{Logs: logs, Process: k.set.Process, Name: k.set.Name, T: k.set.T, Rho: k.set.Rho,
		Random: k.set.Random})
	all := newShard(k, byrole.Numbering{Index: 0, Of: 1}, q, nil, leases.SmallTraits)
	all.main = &channel{common: k, shard: all, link: link.TrustedLink()} // q delays Claims
	for i := range logs {
		c := newChannel(k, i, q.Log(i), all, now)
		c.shallow, c.link = true, link.TrustedLink()
		k.channels = append(k.channels, c)
	}
	all.logs = k.channels
	k.shards = []*shard{all}
	return q.Lease.Lines()
}
