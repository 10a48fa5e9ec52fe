package kafkalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/goneli/neli/kafka"
)

// Topic is the leader topic from an administrator's view: it creates a missing topic, checks for
// settings that make a lease unsafe, and watches for another topic of the same name.
type Topic struct {
	name    string
	Admin   kafka.Admin
	create  *kafka.TopicSpec // nil: never create; make adds replicas and settings
	log     *slog.Logger
	spread  float64 // of the pauses between retries, as a fraction
	Access  AccessGuard
	id      string
	Size    int
	asked   atomic.Pointer[time.Time] // when the last check that found the same topic began
	suspect chan struct{}
	T       time.Duration // HeartbeatTimeout
	health  *Health
	brokers string // the bootstrap servers, for messages; empty: not known
	logs    int    // Config.Logs: the number of partitions, each on one broker of its own; else 0

	refusedOutright bool      // the cluster refused to create it with any settings
	opened          time.Time // zero: not yet
}

const (
	identityEvery = 10 * time.Second
	// A topic counts as deleted when every check for this long has found it unknown. After a cold
	// start of all brokers, their metadata can lack topics for many seconds.
	unknownFor = time.Minute
	// How much of the time between two such checks counts at most. It is longer than a pause of
	// retry and a quick answer.
	unknownGap = 5 * time.Second
	// It may take brokers this long to describe a new topic completely.
	describedWithin = 5 * time.Second
	// A broker that describes a topic without an id for this long does not have ids.
	idWithin = 10 * time.Second
)

// noTopicID is the id of 128 zero bits, which brokers without topic ids report.
const noTopicID = "AAAAAAAAAAAAAAAAAAAAAA"

func identifies(id string) bool { return id != "" && id != noTopicID }

// answered reports whether a broker answered the question that returned err.
func answered(err error) bool {
	for _, kind := range []error{errNotYet, kafka.ErrUnknownTopic, kafka.ErrTopicExists, kafka.ErrSettings, kafka.ErrAuthentication, kafka.ErrAuthorization,
		kafka.ErrAdvertised} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return err == nil || final(err)
}

// retry calls fn until it succeeds, fails permanently or ctx is done (the error is nil then). Refused access is
// permanent if access has never worked. Other errors, but for a new topic's, are logged at most every ten seconds.
func (t *Topic) retry(ctx context.Context, doing string, fn func(context.Context) error) error {
	b := backoff.NewExponentialBackOff()
	// A topic that was just created is described a few milliseconds later.
	b.InitialInterval, b.Multiplier, b.MaxInterval, b.RandomizationFactor = 5*time.Millisecond, 2, 2*time.Second, t.spread
	var described time.Time // until then a missing description is not logged
	var trouble Trouble
	for {
		err := t.attempt(ctx, fn)
		t.health.Contact.note(answered(err))
		if err == nil {
			t.Access.OK()
			trouble.Over(t.log, "brokers answer again", "topic", t.name, "asked", doing)
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		if final(err) {
			return err
		}
		right := doing
		if errors.Is(err, kafka.ErrAuthorization) {
			right = "DESCRIBE topic " + t.name + " (READ and WRITE include it)"
		}
		if fatal := t.Access.Check(right, err); fatal != nil {
			return fatal
		}
		notYet := errors.Is(err, errNotYet)
		if notYet && described.IsZero() {
			described = time.Now().Add(describedWithin)
		}
		young := notYet && time.Now().Before(described) || t.spreads(err)
		if !young && trouble.Due() {
			var created creatingError
			if t.health.Contact.Lacking() {
				args := []any{"topic", t.name}
				if t.brokers != "" {
					args = append(args, "brokers", t.brokers)
				}
				t.log.Warn("no broker reached, retrying", append(args, "error", err)...)
			} else if errors.As(err, &created) {
				t.log.Warn("cannot create the leader topic, retrying", "topic", t.name, "error", err)
			} else {
				t.log.Warn("cannot "+doing+", retrying", "topic", t.name, "error", Naming(right, err))
			}
		}
		if !pause(ctx, b.NextBackOff()) {
			return nil
		}
	}
}

// spreads reports whether an error may come from a topic that was just created: one broker has
// described it and another does not know it yet.
func (t *Topic) spreads(err error) bool {
	return errors.Is(err, kafka.ErrUnknownTopic) && !t.opened.IsZero() && time.Since(t.opened) <= describedWithin
}

func final(err error) bool {
	return errors.Is(err, ErrAccess) || errors.Is(err, ErrTopicReplaced) || errors.Is(err, ErrPartitionsChanged) ||
		errors.Is(err, ErrNoTopicID) || errors.Is(err, ErrTopicPlacement) || errors.Is(err, ErrEpochsNotKept)
}

func (t *Topic) attempt(ctx context.Context, fn func(context.Context) error) error {
	limits := t.health.Pace.Timeouts(t.T)
	timeout := limits.Question
	if !t.Access.hasWorked() {
		timeout = limits.First
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := fn(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		t.health.Pace.noteLate()
	}
	return err
}

// pause waits for d. It returns false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// Open waits until the topic exists, and learns its id and its number of partitions.
func (t *Topic) Open(ctx context.Context) error {
	var anonymous time.Time // since when it is described without an id
	err := t.retry(ctx, "find the leader topic", func(asking context.Context) error {
		info, err := t.Admin.Topic(asking, t.name)
		if errors.Is(err, kafka.ErrUnknownTopic) {
			t.health.Contact.note(true) // even if creating the topic fails for a reason of its own
			if t.create == nil {
				return fmt.Errorf("%w, and this process is not to create it (DisableTopicCreation, Observer)", err)
			}
			return cmp.Or(t.make(ctx), errNotYet)
		}
		if err != nil {
			return err
		}
		if info.Partitions < 1 {
			return errNotYet
		}
		if !identifies(info.ID) {
			if anonymous.IsZero() {
				anonymous = time.Now()
			}
			if time.Since(anonymous) >= idWithin {
				return fmt.Errorf("%w: topic %s", ErrNoTopicID, t.name)
			}
			return errNotYet
		}
		if t.logs > 0 {
			if err := checkApart(t.name, info, t.logs); err != nil {
				return err
			}
		}
		t.id, t.Size, t.opened = info.ID, info.Partitions, time.Now()
		return nil
	})
	if err != nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	t.warn(ctx)
	return nil
}

var errNotYet = errors.New("the broker does not describe the topic yet")

// Doubt asks Watch to check soon.
func (t *Topic) Doubt() {
	select {
	case t.suspect <- struct{}{}:
	default:
	}
}

// Watch checks every ten seconds, and when there is doubt, whether the topic is still the one that was opened.
func (t *Topic) Watch(ctx context.Context) error {
	timer := time.NewTimer(identityEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-t.suspect:
		}
		t.health.Throttling.look(t.log)
		if err := t.verify(ctx); err != nil {
			return err
		}
		timer.Reset(identityEvery)
	}
}

// verify returns an error if the topic is gone, is another one or has changed.
func (t *Topic) verify(ctx context.Context) error {
	// Only time in which this process asks counts: while it is suspended, the topic may have been there.
	var missing time.Duration
	var last time.Time // when the last check found the topic unknown; zero: it did not
	return t.retry(ctx, "check the leader topic", func(ctx context.Context) error {
		asked := time.Now()
		info, err := t.Admin.Topic(ctx, t.name)
		if errors.Is(err, kafka.ErrUnknownTopic) {
			now := time.Now()
			if !last.IsZero() {
				missing += min(now.Sub(last), unknownGap)
			}
			if last = now; missing >= unknownFor {
				return fmt.Errorf("%w: topic %s is gone", ErrTopicReplaced, t.name)
			}
			return err
		}
		missing, last = 0, time.Time{}
		if err != nil {
			return err
		}
		if err := t.same(info); err != nil {
			return err
		}
		t.asked.Store(&asked)
		return nil
	})
}

// sameSince reports whether a check that began at a time or later found the same topic.
func (t *Topic) sameSince(at time.Time) bool {
	asked := t.asked.Load()
	return asked != nil && !asked.Before(at)
}

func (t *Topic) same(info kafka.TopicInfo) error {
	switch {
	case !identifies(info.ID):
		return errNotYet
	case info.ID != t.id:
		return fmt.Errorf("%w: topic %s had id %s and now has %s", ErrTopicReplaced, t.name, t.id, info.ID)
	case info.Partitions != t.Size:
		return fmt.Errorf("%w: topic %s had %d and now has %d", ErrPartitionsChanged, t.name, t.Size, info.Partitions)
	}
	return nil
}
