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

// Topic is the leader topic as an administrator sees it: created when it is
// missing, checked for settings that would make a lease unsafe, and watched for
// being another topic of the same name.
type Topic struct {
	name    string
	Admin   kafka.Admin
	create  *kafka.TopicSpec // nil: never create; without replicas and settings, which make adds
	log     *slog.Logger
	spread  float64 // of the pauses between retries, as a fraction
	Access  AccessGuard
	id      string
	Size    int
	asked   atomic.Pointer[time.Time] // when the newest question was put to which it was still the same
	suspect chan struct{}
	late    atomic.Int32 // questions that took too long before anything has worked
	brokers string       // to begin with, for people
	contact *Contact     // may be nil
	apart   int          // with one replica for each partition, on so many brokers; 0: as is usual

	refusedOutright bool      // creation, with whatever settings
	opened          time.Time // zero: not yet

	throttling *Throttling // looked at now and then; may be nil
}

const (
	askTimeout = 10 * time.Second
	// Nothing has worked yet: who is refused, or finds nobody, learns so from a
	// request that times out. The next one has twice the time: brokers may be far away.
	firstAskTimeout = 3 * time.Second
	identityEvery   = 10 * time.Second
	// A deletion is believed when the brokers have repeated it for so long without
	// showing another topic of that name: after a cold start of all of them their
	// metadata can lack topics for many seconds.
	unknownFor = time.Minute
	// A topic that was just created is not described, or not in full, for so long.
	describedWithin = 5 * time.Second
	// A broker that describes a topic for so long without an id will never give one.
	idWithin = 10 * time.Second
)

// noTopicID is the id of 128 zero bits: a broker that knows no topic ids.
const noTopicID = "AAAAAAAAAAAAAAAAAAAAAA"

func identifies(id string) bool { return id != "" && id != noTopicID }

// answered reports whether a broker has answered what ended with err.
func answered(err error) bool {
	for _, kind := range []error{errNotYet, kafka.ErrUnknownTopic, kafka.ErrTopicExists, kafka.ErrSettings, kafka.ErrAuthentication, kafka.ErrAuthorization} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return err == nil || final(err)
}

// retry calls fn until it succeeds, fails for good or ctx is done. Refused
// access is for good; anything else is logged, at most once in ten seconds, and so is
// its end.
func (t *Topic) retry(ctx context.Context, doing string, fn func(context.Context) error) error {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.RandomizationFactor = 100*time.Millisecond, 2*time.Second, t.spread
	var described time.Time // until when a topic that is not described yet is none to speak of
	var trouble Trouble
	for {
		err := t.attempt(ctx, fn)
		t.contact.note(answered(err))
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
			if t.contact.Lacking() {
				t.log.Warn("no broker reached, retrying", "topic", t.name, "brokers", t.brokers, "error", err)
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

// spreads reports whether an error is of a topic that may have been created a moment ago:
// one broker has described it, and another does not know it yet.
func (t *Topic) spreads(err error) bool {
	return errors.Is(err, kafka.ErrUnknownTopic) && !t.opened.IsZero() && time.Since(t.opened) <= describedWithin
}

func final(err error) bool {
	return errors.Is(err, ErrAccess) || errors.Is(err, ErrTopicReplaced) || errors.Is(err, ErrPartitionsChanged) ||
		errors.Is(err, ErrNoTopicID) || errors.Is(err, ErrTopicPlacement)
}

func (t *Topic) attempt(ctx context.Context, fn func(context.Context) error) error {
	timeout := askTimeout
	if !t.Access.hasWorked() {
		timeout = min(firstAskTimeout<<t.late.Load(), askTimeout)
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := fn(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil && timeout < askTimeout {
		t.late.Add(1)
	}
	return err
}

// pause waits for d, and reports false when ctx was done first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Open waits until the topic is there, and learns its id and its number of
// partitions.
func (t *Topic) Open(ctx context.Context) error {
	var anonymous time.Time // since when it is described without an id
	err := t.retry(ctx, "find the leader topic", func(asking context.Context) error {
		info, err := t.Admin.Topic(asking, t.name)
		if errors.Is(err, kafka.ErrUnknownTopic) {
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
		if t.apart > 0 {
			if err := checkApart(t.name, info, t.apart); err != nil {
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

// Doubt asks Watch to look soon.
func (t *Topic) Doubt() {
	select {
	case t.suspect <- struct{}{}:
	default:
	}
}

// Watch looks every ten seconds, or when there is doubt, whether the topic is
// still the one that was opened.
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
		if t.throttling != nil {
			t.throttling.look(t.log)
		}
		if err := t.verify(ctx); err != nil {
			return err
		}
		timer.Reset(identityEvery)
	}
}

// verify returns an error if the topic is no more what it was.
func (t *Topic) verify(ctx context.Context) error {
	var missing time.Time
	return t.retry(ctx, "check the leader topic", func(ctx context.Context) error {
		asked := time.Now()
		info, err := t.Admin.Topic(ctx, t.name)
		if errors.Is(err, kafka.ErrUnknownTopic) {
			if missing.IsZero() {
				missing = time.Now()
			}
			if time.Since(missing) >= unknownFor {
				return fmt.Errorf("%w: topic %s is gone", ErrTopicReplaced, t.name)
			}
			return err
		}
		missing = time.Time{}
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

// sameSince reports whether the topic was still the same when asked at a time or
// later.
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
