package kafkalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync/atomic"
	"time"

	"github.com/goneli/neli/kafka"
)

// anyOldTopic is Kafka's own topic, which exists once any group was joined.
const anyOldTopic = "__consumer_offsets"

// creation is an attempt to create the leader topic with as many of its settings as the cluster accepts.
type creation struct {
	topic    *Topic
	spec     kafka.TopicSpec
	replicas []int // to try, in order
	trial    bool  // nothing is created
	lacking  []lacking
}

// lacking is a setting whose preferred value the cluster refuses.
type lacking struct {
	topicSetting
	instead string // the value that it accepts; empty: none
	refusal error
}

// make creates the topic.
func (t *Topic) make(ctx context.Context) error {
	if err := t.checkIDs(ctx); err != nil {
		return err
	}
	c, err := t.creation(ctx)
	if err != nil {
		return err
	}
	err = c.run(ctx)
	switch {
	case errors.Is(err, kafka.ErrTopicExists):
		return nil // another member was faster
	case errors.Is(err, kafka.ErrAuthorization):
		return cmp.Or(t.Access.Check("CREATE topic "+t.name, err), creating(err))
	case err != nil:
		return creating(err)
	}
	c.tell()
	return nil
}

// TryCreate asks whether the cluster would create a first member's leader topic, with one partition.
// It creates nothing. timeout is the HeartbeatTimeout from which the time-outs follow.
func TryCreate(ctx context.Context, admin kafka.Admin, name string, timeout time.Duration) error {
	t := &Topic{name: name, Admin: admin, create: &kafka.TopicSpec{Name: name, Partitions: 1}, log: slog.New(slog.DiscardHandler), T: timeout, health: new(Health)}
	if err := t.checkIDs(ctx); err != nil {
		return err
	}
	c, err := t.creation(ctx)
	if err != nil {
		return err
	}
	c.trial = true
	if err = c.run(ctx); errors.Is(err, kafka.ErrTopicExists) {
		return nil
	}
	return Naming("CREATE topic "+name, err)
}

// checkIDs returns an error if the cluster is known not to give topics ids, before an unusable topic is created.
func (t *Topic) checkIDs(ctx context.Context) error {
	var info kafka.TopicInfo
	err := t.attempt(ctx, func(ctx context.Context) (err error) {
		info, err = t.Admin.Topic(ctx, anyOldTopic)
		return err
	})
	if err == nil && info.Partitions > 0 && !identifies(info.ID) {
		return fmt.Errorf("%w: topic %s was not created", ErrNoTopicID, t.name)
	}
	return nil // it has an id, does not exist or was not described
}

// creation prepares the topic's specification, still without settings.
func (t *Topic) creation(ctx context.Context) (*creation, error) {
	c := &creation{topic: t, spec: *t.create}
	var brokers []kafka.BrokerInfo
	err := t.attempt(ctx, func(ctx context.Context) (err error) {
		brokers, err = t.Admin.Brokers(ctx, t.logs > 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	if t.logs > 0 {
		c.spec.Replicas = 1
		if c.spec.Brokers, err = placeApart(brokers, t.logs, t.name); err != nil {
			return nil, creating(err)
		}
		c.replicas = []int{1}
		return c, nil
	}
	c.replicas = replications(len(brokers))
	return c, nil
}

// replications returns the numbers of replicas to try, in order; 0 is the cluster's default. Some
// clusters show fewer brokers than they have, for example when some are down, and require three
// replicas of each topic.
func replications(brokers int) []int {
	switch brokers {
	case 1:
		return []int{0, 3}
	case 2:
		return []int{3, 2, 0}
	}
	return []int{3, 0}
}

// run creates the topic with all settings, or else with those that the cluster accepts.
func (c *creation) run(ctx context.Context) error {
	t := c.topic
	c.spec.Replicas = c.replicas[0]
	c.spec.Settings = map[string]string{}
	for _, s := range topicSettings(c.spec.Replicas) {
		c.spec.Settings[s.name] = s.values[0]
	}
	err := c.ask(ctx, c.spec)
	if !errors.Is(err, kafka.ErrSettings) {
		return err
	}
	if t.refusedOutright {
		// Each setting was tried before. While the cluster refuses even a topic without
		// settings, there is no need to try them again.
		bare := c.spec
		bare.Settings, bare.ValidateOnly = nil, true
		for _, bare.Replicas = range c.replicas {
			if err = c.ask(ctx, bare); !errors.Is(err, kafka.ErrSettings) {
				break
			}
		}
		if err != nil {
			return outright(err)
		}
	}
	for _, replicas := range c.replicas {
		c.spec.Replicas = replicas
		refusal, other := c.negotiate(ctx)
		if other != nil {
			return other
		}
		if refusal == nil {
			return c.ask(ctx, c.spec)
		}
		err = refusal
	}
	t.refusedOutright = true
	return outright(err)
}

func outright(err error) error {
	if !errors.Is(err, kafka.ErrSettings) {
		return err
	}
	return fmt.Errorf("the cluster refuses it with whatever settings; create it by hand as the cluster wants it: %w", err)
}

// negotiate finds the settings that the cluster accepts together. It tries them one after the
// other, beside those already accepted. A refused setting is tried again after another one was
// accepted, since it may depend on that. refusal is not nil if the cluster creates no topic at
// all.
func (c *creation) negotiate(ctx context.Context) (refusal, other error) {
	c.spec.Settings = map[string]string{}
	refusal = c.check(ctx, c.spec.Settings)
	if refusal != nil && !errors.Is(refusal, kafka.ErrSettings) {
		return nil, refusal
	}
	var instead, refused []lacking
	missing := topicSettings(c.spec.Replicas)
	for again := true; again; {
		again, refused = false, nil
		var still []topicSetting
		for _, s := range missing {
			value, why, err := c.take(ctx, s)
			switch {
			case err != nil:
				return nil, err
			case value == "":
				still = append(still, s)
				refused = append(refused, lacking{s, "", why})
				continue
			case why != nil:
				instead = append(instead, lacking{s, value, why})
			}
			again, refusal = true, nil
		}
		again = again && len(still) > 0
		missing = still
	}
	c.lacking = append(instead, refused...)
	return refusal, nil
}

// take adds a setting with the first of its values that the cluster accepts; value is empty if it
// accepts none. why is the refusal of the preferred value.
func (c *creation) take(ctx context.Context, s topicSetting) (value string, why, other error) {
	for _, value := range s.values {
		with := maps.Clone(c.spec.Settings)
		with[s.name] = value
		err := c.check(ctx, with)
		if err == nil {
			c.spec.Settings = with
			return value, why, nil
		}
		if !errors.Is(err, kafka.ErrSettings) {
			return "", nil, err
		}
		why = cmp.Or(why, err)
	}
	return "", why, nil
}

// check asks whether the cluster would create the topic with these settings.
func (c *creation) check(ctx context.Context, settings map[string]string) error {
	spec := c.spec
	spec.Settings, spec.ValidateOnly = settings, true
	return c.ask(ctx, spec)
}

// ask sends one request with a time-out of its own, as there may be many.
func (c *creation) ask(ctx context.Context, spec kafka.TopicSpec) error {
	spec.ValidateOnly = spec.ValidateOnly || c.trial
	return c.topic.attempt(ctx, func(ctx context.Context) error { return c.topic.Admin.CreateTopic(ctx, spec) })
}

// tell logs that the topic was created, and each setting that it lacks.
func (c *creation) tell() {
	t := c.topic
	args := []any{"topic", t.name, "partitions", c.spec.Partitions, "replicas", c.spec.Replicas}
	if c.spec.Replicas == 0 {
		args[len(args)-1] = "the cluster's default"
	}
	if c.spec.Brokers != nil {
		args = append(args, "brokers", c.spec.Brokers)
	}
	t.log.Info("created the leader topic", args...)
	t.health.Refusals.note(c.lacking)
	for _, l := range c.lacking {
		t.log.Warn("the cluster refuses a setting of the leader topic", "topic", t.name, "setting", l.name, "wanted", l.values[0],
			"instead", cmp.Or(l.instead, "the cluster's default"), "meaning", l.without, "error", l.refusal)
	}
}

// Refusals are the settings that a cluster refused when this process created the leader topic.
type Refusals struct {
	meaning atomic.Pointer[map[string]string]
}

func (r *Refusals) note(all []lacking) {
	if len(all) == 0 {
		return
	}
	meaning := map[string]string{}
	for _, l := range all {
		meaning[l.name] = l.without
		if l.instead != "" {
			meaning[l.name] = l.instead + " instead of " + l.values[0] + ": " + l.without
		}
	}
	r.meaning.Store(&meaning)
}

// Meaning returns what the refusal of each setting means, by the setting's name.
func (r *Refusals) Meaning() map[string]string {
	meaning := r.meaning.Load()
	if meaning == nil {
		return map[string]string{}
	}
	return maps.Clone(*meaning)
}

// creatingError is an error of creating the topic, as opposed to finding it.
type creatingError struct{ error }

func (e creatingError) Unwrap() error { return e.error }

func creating(err error) error { return creatingError{err} }
