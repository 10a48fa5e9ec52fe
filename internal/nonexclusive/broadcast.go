package nonexclusive

import (
	"context"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/kafkalog"
)

// broadcast sends an empty record to every partition in each interval, if attend agrees, so that the
// partition's leader receives records.
func (a *Arbiter) broadcast(ctx context.Context) error {
	tick := time.NewTicker(a.set.Broadcast)
	defer tick.Stop()
	reports := make([]func(error), len(a.assigned))
	for p := range reports {
		reports[p] = func(err error) { a.reported(p, err) }
	}
	for {
		if a.attend() {
			for p, report := range reports {
				a.appending(p)
				if err := a.clients.Producer.Append(a.set.Topic, p, nil, report); err != nil {
					report(err) // the client reports nothing then; the next record will do
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-a.refused:
			return err
		case <-tick.C:
		}
	}
}

func (a *Arbiter) reported(p int, err error) {
	a.count(err)
	a.written(p, err)
	if err == nil {
		a.writing.OK()
		a.unwritten.Over(a.set.Logger, "writing to the leader topic again", "topic", a.set.Topic)
		return
	}
	right := "WRITE topic " + a.set.Topic
	if fatal := a.writing.Check(right, err); fatal != nil {
		select {
		case a.refused <- fatal:
		default:
		}
	}
	if !a.ended.Load() && a.unwritten.Due() {
		a.set.Logger.Warn("cannot write to the leader topic, retrying", "topic", a.set.Topic, "error", kafkalog.Naming(right, err))
	}
}

// attend keeps this process in the group only while it could lead. It reports whether to broadcast.
func (a *Arbiter) attend() bool {
	broadcasts, starved := a.decide()
	if starved >= 0 && a.unheard.Due() { // a log handler may call back, so no lock is held here
		a.set.Logger.Warn("no records received on an assigned partition: leaving the group for a while so that another member leads",
			"partition", starved, "for", a.set.Absence)
	}
	return broadcasts
}

// deaf reports whether the application will hear of a new term only much later. If this process also
// leads nothing, it leaves the group, so that others get its partitions.
func (a *Arbiter) deaf(now clock.Instant) bool { return a.set.Deaf != nil && a.set.Deaf(now) }

// decide joins or leaves the group. It reports whether to broadcast, and which partition was just
// found to receive no records, or −1.
func (a *Arbiter) decide() (broadcasts bool, starved int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.set.Now()
	alive, starved := a.set.Alive(now), -1
	if a.desired.Unhealthy { // so that the group notices
		a.away = max(a.away, now.Mono.Add(a.set.Absence))
	}
	if p, at := a.starved(); p >= 0 && now.Mono >= at {
		a.away = now.Mono.Add(a.set.Absence) // counted from when it leaves
		starved = p
		if a.stalled = none; a.silence[p].unwritten(now, a.set.StarvedAfter/2) {
			a.stalled = p // the log may stand still for all members
		}
	}
	_, leads := a.table.LeadsAny(a.desired.Roles)
	a.clients.Member.Join(alive && !a.leaving() && !a.desired.Unhealthy && now.Mono >= a.away && (leads || !a.deaf(now)))
	return alive && (a.desired.Contend || now.Mono.Sub(a.leaveAt.Mono) < 0), starved
}
