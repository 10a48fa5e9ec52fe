package elector

import (
	"github.com/goneli/neli/internal/byrole"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/leases"
	"github.com/goneli/neli/internal/elector/link"
	"github.com/goneli/neli/internal/elector/stats"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/quorum"
	"github.com/goneli/neli/internal/term"
)

// shards are all shards of a process, and channels of all of them are in the order of the logs.
type shards []*shard

// of returns the shard with a log's roles.
func (parts shards) of(log int) *shard { return parts[log%len(parts)] }

// local returns where a role lives.
func (parts shards) local(role int) (*shard, int32) {
	return parts[role%len(parts)], int32(role / len(parts))
}

// openShards opens the logs. It also returns how many lines of V there are.
func openShards(set *Settings, terms *term.Table, counts *stats.Counters, logs int, now clock.Instant) (shards, channels, int) {
	if set.Majority {
		return openSmall(set, terms, counts, logs, now)
	}
	return openLogs(set, terms, counts, logs, now)
}

// openLogs opens logs each of which is the only one with its roles.
func openLogs(set *Settings, terms *term.Table, counts *stats.Counters, logs int, now clock.Instant) (parts shards, all channels, lines int) {
	rules := lease.Rules{Process: set.Process, Name: set.Name, T: set.T, Rho: set.Rho}
	for i := range logs {
		l := leases.NewOne(rules, i)
		s := newShard(set, terms, counts, byrole.Numbering{Index: i, Of: logs}, l, l, leases.OneTraits)
		s.main = newChannel(set, i, l.Lease, l, now)
		s.logs = channels{s.main}
		parts, all = append(parts, s), append(all, s.main)
	}
	return parts, all, logs
}

// openSmall opens small logs, which form one shard together. It also returns how many lines of V there
// are.
func openSmall(set *Settings, terms *term.Table, counts *stats.Counters, logs int, now clock.Instant) (shards, channels, int) {
	q := leases.NewSmall(quorum.Rules{Logs: logs, Process: set.Process, Name: set.Name, T: set.T, Rho: set.Rho,
		Random: set.Random})
	s := newShard(set, terms, counts, byrole.Numbering{Index: 0, Of: 1}, q, nil, leases.SmallTraits)
	s.main = &channel{set: set, link: link.TrustedLink()} // q delays Claims
	for i := range logs {
		c := newChannel(set, i, q.Log(i), q, now)
		c.shallow, c.link = true, link.TrustedLink()
		s.logs = append(s.logs, c)
	}
	return shards{s}, s.logs, q.Lease.Lines()
}
