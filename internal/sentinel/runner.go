package sentinel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/lease"
)

const (
	// pollSlice is the longest that one call of Next waits.
	pollSlice = 100 * time.Millisecond
	// openWithin bounds the opening of a log. After that its members are refused.
	openWithin = 30 * time.Second
)

// errOtherTopic: no two topics have the same id. So the sentinel is connected to another cluster, or
// the topic was deleted and created again.
var errOtherTopic = errors.New("the topic has another id: the sentinel is of another cluster, or the topic was created anew")

// errOtherLogs is errOtherTopic for small logs without a broker. Their identity is the list of their hosts.
var errOtherLogs = errors.New("the sentinel has other small logs than the member: their lists of hosts differ")

// errNotOpened: no broker answers, or the topic is missing or invisible to the sentinel.
var errNotOpened = fmt.Errorf("the log could not be opened within %v: there is no such topic, or no broker", openWithin)

// runner runs a Watch. It has the mutex, the goroutines and the I/O, and decides nothing.
type runner struct {
	log    elector.Log
	now    func() clock.Instant
	logger *slog.Logger
	at     Place // what members say of their logs; without a TopicID these have no identity
	wakeup chan struct{}
	ready  func() // called once, after the first successful append

	mu        sync.Mutex // guards what follows; never held during I/O or a callback
	watch     *Watch
	scheduled clock.Mono // when the timer calls Tick next
	opened    bool
	told      bool // ready was called
}

func newRunner(rules Rules, at Place, log elector.Log, now func() clock.Instant, logger *slog.Logger, ready func()) *runner {
	return &runner{log: log, now: now, logger: logger, at: at, wakeup: make(chan struct{}, 1), ready: ready, watch: NewWatch(rules)}
}

// run works until ctx is done or the log fails for good, and returns the log's error. It closes the log.
func (r *runner) run(ctx context.Context) error {
	defer r.log.Close()
	if err := r.open(ctx); err != nil {
		return err
	}
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return r.read(ctx) })
	work.Go(func() error { return r.tick(ctx) })
	work.Go(func() error { return r.log.Watch(ctx) })
	return work.Wait()
}

func (r *runner) open(ctx context.Context) error {
	limit, cancel := context.WithTimeoutCause(ctx, openWithin, errNotOpened)
	defer cancel()
	logs, id, err := r.log.Open(limit)
	switch {
	case limit.Err() != nil:
		return context.Cause(limit)
	case err != nil:
		return err
	case id != "" && r.at.TopicID != "" && id != r.at.TopicID: // an id is missing if the topic was not found: Next returns that error
		if r.at.Topic == "" {
			return errOtherLogs
		}
		return errOtherTopic
	}
	r.do(func(w *Watch, now clock.Instant) {
		w.Open(logs, id, now)
		r.opened = true
	})
	return nil
}

// died passes a death on to the Watch.
func (r *runner) died(d Death) {
	r.do(func(w *Watch, now clock.Instant) { w.Died(d, now) })
}

// idle reports whether no dead process is remembered.
func (r *runner) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.watch.Idle()
}

func (r *runner) read(ctx context.Context) error {
	for ctx.Err() == nil {
		entry, ok, err := r.log.Next(ctx, pollSlice)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		var record *lease.Record
		var bad error
		if !entry.Reset && !entry.Alive {
			record, bad = entry.Decode(r.watch.Codec(entry.ID))
		}
		r.do(func(w *Watch, now clock.Instant) { w.Read(entry, record, bad, now) })
	}
	return nil
}

func (r *runner) tick(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-r.wakeup:
		}
		timer.Reset(r.do(func(w *Watch, now clock.Instant) { w.Tick(now) }))
	}
}

// do gives the Watch one input under the lock, and then does what Ready says without the lock. It
// returns after how long Tick is due.
func (r *runner) do(input func(*Watch, clock.Instant)) time.Duration {
	r.mu.Lock()
	now := r.now()
	input(r.watch, now)
	out := Ready{WakeIn: lookEvery}
	if r.opened {
		out = r.watch.Ready(now)
	}
	at := now.Mono.Add(out.WakeIn)
	earlier := at < r.scheduled || r.scheduled <= now.Mono
	r.scheduled = at
	r.mu.Unlock()
	for _, n := range out.Noted {
		r.logger.Info("released what a dead process held", "process", n.Process, "by_name", n.Name, "partition", n.Partition, "count", n.Roles)
	}
	if out.Verify {
		r.log.Verify()
	}
	for _, a := range out.Append {
		r.append(a)
	}
	if earlier {
		select {
		case r.wakeup <- struct{}{}:
		default:
		}
	}
	return out.WakeIn
}

func (r *runner) append(a elector.Append) {
	report := func(err error) {
		r.do(func(w *Watch, now clock.Instant) { w.Acked(a, err, now) })
		if err == nil {
			r.written()
		}
	}
	to := elector.Address{Partition: a.Partition, ID: a.ID, Ballot: a.Record.Ballot}
	if err := r.log.Append(to, r.watch.Codec(a.ID).Encode(&a.Record), report); err != nil {
		report(err)
	}
}

// written notes a successful append. The first one proves that this process may write.
func (r *runner) written() {
	r.mu.Lock()
	first := !r.told
	r.told = true
	r.mu.Unlock()
	if first {
		r.ready()
	}
}
