package franz

import (
	"context"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/goneli/neli/kafka"
)

// membership begins with Join and ends with Leave.
type membership struct {
	of    *group
	kafka *link
	topic string
	read  bool
	left  chan struct{} // closed when the client is closed
}

// taking returns the options of every member.
func taking(s *settings) []kgo.Opt {
	return []kgo.Opt{
		kgo.ConsumerGroup(s.group),
		kgo.DisableAutoCommit(),
		// Nothing is ever committed, and others' commits are ignored.
		kgo.ConsumeStartOffset(kgo.NewOffset().AtEnd()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()),
		kgo.AdjustFetchOffsetsFn(fromEnd),
		kgo.FetchIsolationLevel(kgo.ReadUncommitted()),
	}
}

func fromEnd(_ context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	for _, parts := range offsets {
		for i := range parts {
			parts[i] = kgo.NewOffset().AtEnd()
		}
	}
	return offsets, nil
}

// leave tells the coordinator, for at most memberGrace, and closes the client. If a join is in
// progress, the coordinator is told after it.
func (m *membership) leave() {
	defer close(m.left)
	ctx, cancel := context.WithTimeout(context.Background(), memberGrace)
	defer cancel()
	_ = m.kafka.LeaveGroupContext(ctx) // if the coordinator cannot be told, it ends the session later
	m.kafka.shut(0)
}

// tell calls change with the lock held, unless the membership is over. change records what has
// happened. If it returns true, there is something to return, and tell wakes Poll.
func (m *membership) tell(change func(g *group) bool) {
	g := m.of
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.present == m && change(g) && g.poll != nil {
		g.poll()
	}
}

// assigned is called at the end of each rebalance, with the partitions added.
func (m *membership) assigned(_ context.Context, _ *kgo.Client, added map[string][]int32) {
	m.tell(func(g *group) bool {
		for _, p := range added[m.topic] {
			g.owned[int(p)] = struct{}{}
		}
		g.events = append(g.events, kafka.GroupEvent{Kind: kafka.GroupAssigned, Partitions: slices.Sorted(maps.Keys(g.owned))})
		return true
	})
}

// revoked is called during a rebalance, which ends with assigned or lost. An eager protocol
// revokes everything, which means nothing by itself.
func (m *membership) revoked(_ context.Context, _ *kgo.Client, gone map[string][]int32) {
	m.tell(func(g *group) bool {
		for _, p := range gone[m.topic] {
			delete(g.owned, int(p))
		}
		return false
	})
}

// lost is called when the session is over.
func (m *membership) lost(context.Context, *kgo.Client, map[string][]int32) {
	m.tell(func(g *group) bool {
		clear(g.owned)
		g.events = append(g.events, kafka.GroupEvent{Kind: kafka.GroupLost})
		return true
	})
}

// OnGroupManageError is a hook of franz-go. A member whose place was taken by another process
// would take it back. Instead, its client is stopped without leaving the group.
func (m *membership) OnGroupManageError(err error) {
	if kindOf(err) != kafka.ErrInstanceFenced {
		return
	}
	m.tell(func(g *group) bool {
		g.fatal = classify("group", err)
		if m.kafka != nil {
			m.kafka.stop()
		}
		return true
	})
}

// Cluster implements kafka.ClusterDescriber. Brokers do not report their version, so it is guessed from
// the requests that one of them supports.
func (a *admin) Cluster(ctx context.Context) (info kafka.ClusterInfo, err error) {
	metadata := kmsg.NewPtrMetadataRequest()
	metadata.Topics = []kmsg.MetadataRequestTopic{} // no topics; nil would ask for all
	err = ask(ctx, a, "describe cluster", metadata, func(resp *kmsg.MetadataResponse) error {
		if resp.ClusterID != nil {
			info.ID = *resp.ClusterID
		}
		for _, b := range resp.Brokers {
			info.Hosts = append(info.Hosts, b.Host)
		}
		return nil
	})
	if err != nil {
		return info, err
	}
	err = ask(ctx, a, "ask for versions", kmsg.NewPtrApiVersionsRequest(), func(resp *kmsg.ApiVersionsResponse) error {
		info.Version = kversion.FromApiVersionsResponse(resp).VersionGuess()
		return kerr.ErrorForCode(resp.ErrorCode)
	})
	return info, err
}

// KeepsEpochs implements kafka.EpochKeeper. Only brokers of a cluster with KRaft answer questions about its
// quorum, or have a metadata version. Anybody may ask for that.
func (a *admin) KeepsEpochs(ctx context.Context) (keeps bool, err error) {
	err = ask(ctx, a, "ask for versions", kmsg.NewPtrApiVersionsRequest(), func(resp *kmsg.ApiVersionsResponse) error {
		for _, k := range resp.ApiKeys {
			keeps = keeps || k.ApiKey == int16(kmsg.DescribeQuorum)
		}
		for _, f := range resp.FinalizedFeatures {
			keeps = keeps || f.Name == "metadata.version"
		}
		return kerr.ErrorForCode(resp.ErrorCode)
	})
	return keeps && err == nil, err
}
