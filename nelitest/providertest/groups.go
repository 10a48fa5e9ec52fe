package providertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/drive"
	"github.com/goneli/neli/kafka"
)

var groupPoints = []point{
	{"a group assigns everything, evenly: cooperative", "", assignsEvenly("cooperative-sticky")},
	{"a group assigns everything, evenly: range", "", assignsEvenly("range")},
	{"an unfinished rebalance is not reported: cooperative", "", onlyComplete("cooperative-sticky")},
	{"an unfinished rebalance is not reported: range", "", onlyComplete("range")},
	{"a member for which no partition is left is told so", "", spareIsTold},
	{"a leaver's partitions go to others", "", leaverReplaced},
	{"a member can join again", "", joinsAgain},
	{"a member can join otherwise without leaving", "", joinsOtherwise},
	{"a member reads from the end", "", groupReads},
	{"a member that joins without reading reads nothing", "", groupReadsNothing},
	{"a group needs an id", "", groupNeedsID},
	{"a member with the same group.instance.id takes over", "", fenced},
	{"the end of a session is reported", Freeze, sessionOver},
	{"a member reports whether it reaches a broker", Freeze, reaches},
}

func assignsEvenly(strategy string) func(*testing.T, Bed) {
	return func(t *testing.T, b Bed) {
		topic, group := b.topic(t, 8), newName()
		ms := make([]*drive.Member, 3)
		for i := range ms {
			ms[i] = drive.Track(t, b.member(t, group, "partition.assignment.strategy", strategy), topic, false)
			wait(time.Duration(i) * time.Second) // at first together, then one later
		}
		eventually(t, patience, "each has two at least, and nobody what another one has", func() bool {
			var all []int
			for _, m := range ms {
				if len(m.Assigned()) < 2 {
					return false
				}
				all = append(all, m.Assigned()...)
			}
			slices.Sort(all)
			return slices.Equal(all, []int{0, 1, 2, 3, 4, 5, 6, 7})
		})
	}
}

// spareIsTold: a member without a partition is told so. Silence would mean that the group has no coordinator.
func spareIsTold(t *testing.T, b Bed) {
	topic, group := b.topic(t, 1), newName()
	x := drive.Track(t, b.member(t, group), topic, false)
	y := drive.Track(t, b.member(t, group), topic, false)
	eventually(t, patience, "one has the partition, and the other one is told that it has none", func() bool {
		if len(x.Events()) == 0 || len(y.Events()) == 0 {
			return false
		}
		return len(x.Assigned())+len(y.Assigned()) == 1
	})
}

func leaverReplaced(t *testing.T, b Bed) {
	topic, group := b.topic(t, 2), newName()
	// The session outlasts the test, so the partitions move only because the member says that it leaves.
	const session = "30000"
	x := drive.Track(t, b.member(t, group, "session.timeout.ms", session), topic, false)
	eventually(t, patience, "who is alone has all", func() bool { return slices.Equal(x.Assigned(), []int{0, 1}) })
	y := drive.Track(t, b.member(t, group, "session.timeout.ms", session), topic, false)
	eventually(t, patience, "two have one each", func() bool { return len(x.Assigned()) == 1 && len(y.Assigned()) == 1 })
	x.Stop()
	require.NoError(t, x.Client.Leave())
	eventually(t, 15*time.Second, "who stays has all", func() bool { return slices.Equal(y.Assigned(), []int{0, 1}) })
}

func joinsAgain(t *testing.T, b Bed) {
	topic := b.topic(t, 1)
	g := b.member(t, newName())
	for range 3 {
		m := drive.Track(t, g, topic, false)
		eventually(t, patience, "it has the partition", func() bool { return slices.Equal(m.Assigned(), []int{0}) })
		m.Stop()
		require.NoError(t, g.Leave())
		for range 3 {
			ev, err := g.Poll(300 * time.Millisecond)
			require.NoError(t, err)
			require.Contains(t, []kafka.GroupEventKind{kafka.GroupIdle, kafka.GroupLost}, ev.Kind)
		}
	}
}

// joinsOtherwise: a member that has joined without reading joins again to read.
func joinsOtherwise(t *testing.T, b Bed) {
	topic := b.topic(t, 1)
	g, p := b.member(t, newName()), b.producer(t)
	m := drive.Track(t, g, topic, false)
	eventually(t, patience, "it has the partition", func() bool { return len(m.Assigned()) == 1 })
	m.Stop()
	m = drive.Track(t, g, topic, true)
	eventually(t, patience, "it reads", func() bool {
		drive.AppendAll(t, p, topic, 0, "0") // again until it has found the end
		return len(m.Records()) > 0
	})
}

func groupReads(t *testing.T, b Bed) {
	topic, group := b.topic(t, 2), newName()
	p := b.writer(t)
	drive.AppendAll(t, p, topic, 0, "old")
	x := drive.Track(t, b.member(t, group), topic, true)
	y := drive.Track(t, b.member(t, group), topic, true)
	eventually(t, patience, "two have one each", func() bool { return len(x.Assigned()) == 1 && len(y.Assigned()) == 1 })
	wait(3 * time.Second) // until the member has found the end
	drive.AppendAll(t, p, topic, 0, "0")
	drive.AppendAll(t, p, topic, 1, "1")
	for _, m := range []*drive.Member{x, y} {
		eventually(t, patience, "it reads", func() bool { return len(m.Records()) > 0 })
	}
	wait(time.Second)
	for _, m := range []*drive.Member{x, y} {
		require.Equal(t, []string{fmt.Sprint(m.Assigned()[0])}, drive.Values(m.Records()))
	}
}

func groupNeedsID(t *testing.T, b Bed) {
	_, err := b.Provider.GroupConsumer(b.properties(map[string]string{}), discard)
	require.Error(t, err)
}

// onlyComplete: when a second member joins, the first one goes from all partitions to its share, without
// having none in between.
func onlyComplete(strategy string) func(*testing.T, Bed) {
	return func(t *testing.T, b Bed) {
		topic, group := b.topic(t, 4), newName()
		x := drive.Track(t, b.member(t, group, "partition.assignment.strategy", strategy), topic, false)
		eventually(t, patience, "who is alone has all", func() bool { return len(x.Assigned()) == 4 })
		y := drive.Track(t, b.member(t, group, "partition.assignment.strategy", strategy), topic, false)
		eventually(t, patience, "two have two each", func() bool { return len(x.Assigned()) == 2 && len(y.Assigned()) == 2 })
		for _, ev := range x.Events() {
			require.Equal(t, kafka.GroupAssigned, ev.Kind)
			require.NotEmpty(t, ev.Partitions)
			require.True(t, slices.IsSorted(ev.Partitions))
		}
	}
}

func groupReadsNothing(t *testing.T, b Bed) {
	topic := b.topic(t, 1)
	p := b.producer(t)
	m := drive.Track(t, b.member(t, newName()), topic, false)
	eventually(t, patience, "it has the partition", func() bool { return len(m.Assigned()) == 1 })
	drive.AppendAll(t, p, topic, 0, "0", "1")
	wait(2 * time.Second)
	require.Empty(t, m.Records())
	require.Len(t, m.Assigned(), 1)
}

func fenced(t *testing.T, b Bed) {
	topic, group := b.topic(t, 1), newName()
	first := b.member(t, group, "group.instance.id", "i")
	x := drive.Track(t, first, topic, false)
	eventually(t, patience, "the first has the partition", func() bool { return len(x.Assigned()) == 1 })
	y := drive.Track(t, b.member(t, group, "group.instance.id", "i"), topic, false)
	eventually(t, patience, "the second has it", func() bool { return len(y.Assigned()) == 1 })
	eventually(t, patience, "the first is fenced", func() bool { return errors.Is(errors.Join(x.Errors()...), kafka.ErrInstanceFenced) })
	began := len(y.Events())
	wait(3 * time.Second)
	require.Len(t, y.Events(), began, "the second keeps it")
	require.Len(t, y.Assigned(), 1)
}

func sessionOver(t *testing.T, b Bed) {
	topic := b.topic(t, 1)
	m := drive.Track(t, b.member(t, newName()), topic, false)
	eventually(t, patience, "it has the partition", func() bool { return len(m.Assigned()) == 1 })
	thaw := b.Freeze(t)
	defer thaw()
	wait(10 * time.Second) // the session timeout is 6 s
	thaw()
	eventually(t, patience, "it says so", func() bool {
		return slices.ContainsFunc(m.Events(), func(ev kafka.GroupEvent) bool { return ev.Kind == kafka.GroupLost })
	})
	eventually(t, patience, "it has joined again", func() bool { return len(m.Assigned()) == 1 })
}

// reaches tests a member that has joined, while another goroutine calls Poll, and a closed one.
func reaches(t *testing.T, b Bed) {
	topic := b.topic(t, 2)
	m := drive.Track(t, b.member(t, newName()), topic, false)
	eventually(t, patience, "it has the partitions", func() bool { return len(m.Assigned()) == 2 })
	ask := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		return m.Client.Reach(ctx, topic)
	}
	eventually(t, patience, "it reaches a broker", func() bool { return ask() == nil })
	thaw := b.Freeze(t)
	defer thaw()
	require.Error(t, ask(), "the brokers are silent")
	thaw()
	eventually(t, patience, "it reaches a broker again", func() bool { return ask() == nil })
	m.Stop()
	require.NoError(t, m.Client.Close())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = m.Client.Reach(ctx, topic) // it may return anything, but must return
}
