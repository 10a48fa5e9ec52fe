package neli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// topic is the leader topic as an administrator sees it: created when it is
// missing, checked for settings that would make a lease unsafe, and watched for
// being another topic of the same name.
type topic struct {
	name    string
	admin   Admin
	create  *TopicSpec // nil: never create; Replicas 0: min(3, brokers)
	log     *slog.Logger
	spread  float64 // of the pauses between retries, as a fraction
	access  accessGuard
	id      string
	size    int
	suspect chan struct{}
}

const (
	askTimeout = 10 * time.Second
	// Nothing has worked yet: who is refused, or finds nobody, learns so from a
	// request that times out.
	firstAskTimeout = 3 * time.Second
	identityEvery   = 10 * time.Second
	// A deletion is believed when the broker has repeated it for so long: metadata
	// lag behind, most of all right after creation.
	unknownFor = 5 * time.Second
)

// retry calls fn until it succeeds, fails for good or ctx is done. Refused
// access is for good; anything else is logged, at most once in ten seconds.
func (t *topic) retry(ctx context.Context, doing string, fn func(context.Context) error) error {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.RandomizationFactor = 100*time.Millisecond, 2*time.Second, t.spread
	began := time.Now()
	var trouble limiter
	for {
		err := t.attempt(ctx, fn)
		if err == nil {
			t.access.ok()
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		if final(err) {
			return err
		}
		right := doing
		if errors.Is(err, ErrAuthorization) {
			right = "DESCRIBE topic " + t.name + " (READ and WRITE include it)"
		}
		if fatal := t.access.check(right, err); fatal != nil {
			return fatal
		}
		if (!errors.Is(err, errNotYet) || time.Since(began) > unknownFor) && trouble.due() {
			t.log.Warn("cannot "+doing+", retrying", "topic", t.name, "error", err)
		}
		if !pause(ctx, b.NextBackOff()) {
			return nil
		}
	}
}

func final(err error) bool {
	return errors.Is(err, ErrAccess) || errors.Is(err, ErrTopicReplaced) || errors.Is(err, ErrPartitionsChanged)
}

func (t *topic) attempt(ctx context.Context, fn func(context.Context) error) error {
	timeout := askTimeout
	if !t.access.hasWorked() {
		timeout = firstAskTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return fn(ctx)
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

// open waits until the topic is there and returns its number of partitions.
func (t *topic) open(ctx context.Context) (int, error) {
	err := t.retry(ctx, "find the leader topic", func(ctx context.Context) error {
		info, err := t.admin.Topic(ctx, t.name)
		if errors.Is(err, ErrUnknownTopic) {
			if t.create == nil {
				return fmt.Errorf("%w, and this process is not to create it (DisableTopicCreation, Observer)", err)
			}
			return or(t.make(ctx), errNotYet)
		}
		if err != nil {
			return err
		}
		if info.ID == "" || info.Partitions < 1 {
			return errNotYet
		}
		t.id, t.size = info.ID, info.Partitions
		return nil
	})
	if err != nil || ctx.Err() != nil {
		return 0, errors.Join(err, ctx.Err())
	}
	t.warn(ctx)
	return t.size, nil
}

var errNotYet = errors.New("the broker does not describe the topic yet")

func (t *topic) make(ctx context.Context) error {
	spec := *t.create
	brokers, err := t.admin.Brokers(ctx)
	if err != nil {
		return err
	}
	spec.Replicas = min(3, brokers)
	spec.Settings = map[string]string{
		"min.insync.replicas":            strconv.Itoa(max(1, spec.Replicas-1)),
		"unclean.leader.election.enable": "false",
		"cleanup.policy":                 "delete",
		"retention.ms":                   "3600000",
		"segment.ms":                     "600000",
		"segment.bytes":                  "16777216",
	}
	err = t.admin.CreateTopic(ctx, spec)
	switch {
	case errors.Is(err, ErrTopicExists):
		return nil // another member was faster
	case errors.Is(err, ErrAuthorization):
		return t.access.check("CREATE topic "+t.name, err)
	case err == nil:
		t.log.Info("created the leader topic", "topic", t.name, "partitions", spec.Partitions, "replicas", spec.Replicas)
	}
	return err
}

// warn logs the settings under which a lease is not safe, or its log not
// durable. Being refused to look is no reason to stop.
func (t *topic) warn(ctx context.Context) {
	var settings map[string]string
	var info TopicInfo
	err := t.attempt(ctx, func(ctx context.Context) (err error) {
		if settings, err = t.admin.Settings(ctx, t.name); err != nil {
			return err
		}
		info, err = t.admin.Topic(ctx, t.name)
		return err
	})
	if err != nil {
		why := ""
		if errors.Is(err, ErrAuthorization) {
			why = ": needs the right DESCRIBE_CONFIGS topic " + t.name
		}
		t.log.Info("could not check the leader topic's settings"+why, "topic", t.name, "error", err)
		return
	}
	for _, w := range unsafeSettings(settings, info.Replicas) {
		t.log.Warn("unsafe setting of the leader topic: "+w, "topic", t.name)
	}
}

// unsafeSettings names what is wrong with a topic that carries leases.
func unsafeSettings(s map[string]string, replicas int) []string {
	var out []string
	if s["unclean.leader.election.enable"] == "true" {
		out = append(out, "unclean.leader.election.enable=true: a broker that lacks records may become the partition's leader; set it to false")
	}
	if p := s["cleanup.policy"]; p != "" && p != "delete" {
		out = append(out, "cleanup.policy="+p+": a broker that compacts refuses records without keys, so nobody leads; set it to delete")
	}
	isr, err := strconv.Atoi(s["min.insync.replicas"])
	switch {
	case replicas < 2 || err != nil:
	case replicas == 2:
		out = append(out, "2 replicas: either an acknowledged record may be lost with one broker (min.insync.replicas=1), "+
			"or one broker down stops all elections (2); have 3 replicas")
	case isr < 2:
		out = append(out, fmt.Sprintf("min.insync.replicas=%d with %d replicas: an acknowledged record may be lost with one broker; set it to %d",
			isr, replicas, replicas-1))
	case isr >= replicas:
		out = append(out, fmt.Sprintf("min.insync.replicas=%d with %d replicas: one broker down stops all elections; set it to %d",
			isr, replicas, replicas-1))
	}
	if ms, err := strconv.ParseInt(s["retention.ms"], 10, 64); err == nil && ms >= 0 && ms < 60_000 {
		out = append(out, fmt.Sprintf("retention.ms=%d: records may be deleted before they are read; set it to an hour", ms))
	}
	return out
}

// doubt asks watch to look soon.
func (t *topic) doubt() {
	select {
	case t.suspect <- struct{}{}:
	default:
	}
}

// watch looks every ten seconds, or when there is doubt, whether the topic is
// still the one that was opened.
func (t *topic) watch(ctx context.Context) error {
	timer := time.NewTimer(identityEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-t.suspect:
		}
		if err := t.verify(ctx); err != nil {
			return err
		}
		timer.Reset(identityEvery)
	}
}

// verify returns an error if the topic is no more what it was.
func (t *topic) verify(ctx context.Context) error {
	var missing time.Time
	return t.retry(ctx, "check the leader topic", func(ctx context.Context) error {
		info, err := t.admin.Topic(ctx, t.name)
		if errors.Is(err, ErrUnknownTopic) {
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
		return t.same(info)
	})
}

func (t *topic) same(info TopicInfo) error {
	switch {
	case info.ID == "":
		return errNotYet
	case info.ID != t.id:
		return fmt.Errorf("%w: topic %s had id %s and now has %s", ErrTopicReplaced, t.name, t.id, info.ID)
	case info.Partitions != t.size:
		return fmt.Errorf("%w: topic %s had %d and now has %d", ErrPartitionsChanged, t.name, t.size, info.Partitions)
	}
	return nil
}
