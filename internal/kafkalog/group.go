package kafkalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goneli/neli/kafka"
)

// pollSlice is the longest single wait of a group consumer. It limits how long a command waits for
// the goroutine that polls.
const pollSlice = 100 * time.Millisecond

// unassignedAfter is how long a group may assign nothing, not even an empty assignment, until that is logged. It is longer
// than the sessions of dead members, for which a rebalance waits.
const unassignedAfter = time.Minute

// GroupMember keeps this process in its consumer group while that is wanted, and passes on what
// the group says. In exclusive mode the group only nominates; in non-exclusive mode its records
// are the evidence.
type GroupMember struct {
	topic     string
	group     string
	read      bool                // receive records
	consumer  kafka.GroupConsumer // used by Run's goroutine until Run returns
	log       *slog.Logger
	OnRecord  func(kafka.Record)
	OnUnknown func() // called when the broker does not know the topic

	newConsumer func() (kafka.GroupConsumer, error)
	admin       kafka.Admin    // on other connections than the consumer's
	T           time.Duration  // HeartbeatTimeout
	absence     time.Duration  // how long to stay out of the group after access to the topic was refused
	quiet       bool           // the client may leave out an empty assignment: librdkafka with group.protocol=consumer
	replaced    *atomic.Uint64 // consumers that stood still
	closing     sync.WaitGroup // replaced consumers

	wanted  atomic.Bool
	joining AccessGuard
	reading AccessGuard
	trouble Trouble
	unread  Limiter
}

func (g *GroupMember) Join(yes bool) { g.wanted.Store(yes) }

func (g *GroupMember) Close() {
	_ = g.consumer.Close()
	g.closing.Wait()
}

// Run polls until ctx is done, and replaces a consumer that stands still.
func (g *GroupMember) Run(ctx context.Context, nominate func([]int, bool)) error {
	reach := newReachability(g.T)
	for ctx.Err() == nil {
		using, stop := context.WithCancel(ctx)
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			defer stop()
			g.watch(using, reach)
		}()
		err := g.take(using, nominate)
		stop()
		<-watched
		if err != nil || ctx.Err() != nil {
			return err
		}
		nominate(nil, true) // first: it may take long until there is another consumer
		g.replace(ctx)
	}
	return nil
}

// take is a member of the group until ctx is done.
func (g *GroupMember) take(ctx context.Context, nominate func([]int, bool)) error {
	joined, left := false, false
	var back time.Time       // stay out of the group until then
	var unassigned time.Time // since when the group has assigned nothing; zero: it has
	for ctx.Err() == nil {
		if want := g.wanted.Load() && !time.Now().Before(back); want != joined {
			if err := g.change(want); err != nil {
				if fatal := g.failed(ctx, err); fatal != nil {
					return fatal
				}
				continue
			}
			joined, left, unassigned = want, !want, time.Now()
			if left {
				nominate(nil, true)
			}
		}
		if !joined && !left {
			pause(ctx, pollSlice/10)
			continue
		}
		if !joined {
			// librdkafka postpones leaving while a rebalance is in progress, and leaves within a later poll.
			if _, err := g.consumer.Poll(pollSlice / 10); err != nil {
				if fatal := g.failed(ctx, err); fatal != nil {
					return fatal
				}
			}
			continue
		}
		ev, err := g.consumer.Poll(pollSlice)
		unassigned = g.awaits(unassigned, ev.Kind, time.Now())
		if err != nil {
			if fatal := g.failed(ctx, err); fatal != nil {
				return fatal
			}
			if errors.Is(err, kafka.ErrTopicAuthorization) && pause(ctx, time.Second) {
				// The client reports this once. A second request shows whether it lasts. Until then,
				// others get this member's partitions, and may be able to read them.
				if joined = g.consumer.Leave() != nil; !joined {
					left, back = true, time.Now().Add(g.absence)
					nominate(nil, true)
				}
			}
			continue
		}
		g.handle(ev, nominate)
	}
	return nil
}

// awaits returns since when, or since which warning, the group has assigned nothing; zero: it has. It warns each
// minute: the clients report no error while the coordinator is unavailable.
func (g *GroupMember) awaits(since time.Time, event kafka.GroupEventKind, now time.Time) time.Time {
	switch {
	case event == kafka.GroupAssigned, event == kafka.GroupRecord:
		return time.Time{}
	case since.IsZero():
		if event == kafka.GroupLost {
			return now
		}
	case now.Sub(since) >= unassignedAfter && !g.quiet:
		if g.trouble.Due() {
			g.log.Warn("the group has assigned nothing for a minute, waiting: its coordinator may be unavailable, or it waits for another member")
		}
		return now
	}
	return since
}

func (g *GroupMember) change(join bool) error {
	if join {
		return g.consumer.Join(g.topic, g.read)
	}
	return g.consumer.Leave()
}

func (g *GroupMember) handle(ev kafka.GroupEvent, nominate func([]int, bool)) {
	switch ev.Kind {
	case kafka.GroupRecord:
		g.reading.OK()
		g.trouble.Over(g.log, "group membership is undisturbed again")
		if g.OnRecord != nil {
			g.OnRecord(ev.Record)
		}
	case kafka.GroupAssigned:
		g.joining.OK()
		g.trouble.Over(g.log, "group membership is undisturbed again")
		if !g.read {
			g.reading.OK() // such a member needs no other access
		}
		g.log.Debug("the group assigned", "partitions", ev.Partitions)
		nominate(ev.Partitions, false)
	case kafka.GroupLost:
		g.log.Debug("the group's session is over")
		nominate(nil, true)
	case kafka.GroupIdle:
	}
}

// failed handles an error of the group consumer. An error that it returns is final.
func (g *GroupMember) failed(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, kafka.ErrInstanceFenced):
		return fmt.Errorf("neli: group %s: %w", g.group, err)
	case errors.Is(err, kafka.ErrClientFatal):
		return fmt.Errorf("neli: group %s: %w", g.group, err)
	}
	if errors.Is(err, kafka.ErrUnreadable) { // the consumer reads on at the end
		if g.unread.Due() {
			g.log.Warn("skipping what cannot be read in the leader topic", "topic", g.topic, "error", err)
		}
		return nil
	}
	if errors.Is(err, kafka.ErrUnknownTopic) && g.OnUnknown != nil {
		g.OnUnknown()
	}
	guard, doing := &g.joining, "READ group "+g.group
	if errors.Is(err, kafka.ErrTopicAuthorization) {
		guard, doing = &g.reading, "READ topic "+g.topic
	}
	if fatal := guard.Check(doing, err); fatal != nil {
		return fatal
	}
	if g.trouble.Due() {
		g.log.Warn("group membership is disturbed, retrying", "error", Naming(doing, err))
	}
	pause(ctx, 10*time.Millisecond)
	return nil
}
