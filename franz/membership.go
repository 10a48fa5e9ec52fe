package franz

import (
	"context"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli/kafka"
)

// membership is what begins with Join and ends with Leave.
type membership struct {
	of    *group
	kafka *link
	topic string
	read  bool
	left  chan struct{} // closed when the client is
}

// taking are the options of every member.
func taking(s *settings) []kgo.Opt {
	opts := []kgo.Opt{
		kgo.ConsumerGroup(s.group),
		kgo.DisableAutoCommit(),
		// Nothing is ever committed, and what others have committed says nothing.
		kgo.ConsumeStartOffset(kgo.NewOffset().AtEnd()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()),
		kgo.AdjustFetchOffsetsFn(fromEnd),
		kgo.FetchIsolationLevel(kgo.ReadUncommitted()),
	}
	switch {
	case s.serverSide == "range":
		return append(opts, kgo.ServerSideBalancer(), kgo.Balancers(kgo.RangeBalancer()))
	case s.serverSide != "":
		return append(opts, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
	case len(s.balancers) > 0:
		return append(opts, kgo.Balancers(s.balancers...))
	}
	return opts
}

func fromEnd(_ context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	for _, parts := range offsets {
		for i := range parts {
			parts[i] = kgo.NewOffset().AtEnd()
		}
	}
	return offsets, nil
}

// leave tells the coordinator, for memberGrace at most, and closes the client. Where a
// join is under way the coordinator hears of it when that is over.
func (m *membership) leave() {
	defer close(m.left)
	ctx, cancel := context.WithTimeout(context.Background(), memberGrace)
	defer cancel()
	_ = m.kafka.LeaveGroupContext(ctx) // whoever cannot be told finds out
	m.kafka.shut(0)
}

// tell has Poll return what has happened, unless the membership is over. change says
// what, with the lock held; false: nothing worth telling.
func (m *membership) tell(change func(g *group) bool) {
	g := m.of
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.present == m && change(g) && g.poll != nil {
		g.poll()
	}
}

// assigned is called at the end of each rebalance, with what was added.
func (m *membership) assigned(_ context.Context, _ *kgo.Client, added map[string][]int32) {
	m.tell(func(g *group) bool {
		for _, p := range added[m.topic] {
			g.owned[int(p)] = struct{}{}
		}
		g.events = append(g.events, kafka.GroupEvent{Kind: kafka.GroupAssigned, Partitions: slices.Sorted(maps.Keys(g.owned))})
		return true
	})
}

// revoked is called during a rebalance, which ends in assigned or lost: by an eager
// protocol with everything, which means nothing yet.
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

// OnGroupManageError is a hook of franz-go. A member whose place was taken would take
// it back: its client is stopped instead, without taking leave.
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
