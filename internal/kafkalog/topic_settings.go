package kafkalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goneli/neli/kafka"
)

// topicSettings are what the leader topic is created with, the dearest first. Some
// clusters refuse one or the other (managed ones have bounds on sizes and times, or
// a policy): then the last lot that is still there is left out, until the broker
// agrees.
//
// Records are kept for a week, so that after any shorter downtime a member finds
// what its group wrote last, and need not wait as long as the longest lease there
// may be. The size bounds what a week of beats would take, and does nothing while
// nobody writes. Segments are above the least that Kafka 4 takes, 1 MiB.
func topicSettings(replicas int) []map[string]string {
	return []map[string]string{{
		"min.insync.replicas":            strconv.Itoa(max(1, replicas-1)),
		"unclean.leader.election.enable": "false",
		"cleanup.policy":                 "delete",
	}, {
		// The broker's clock and not the sender's: Kafka refuses records of the
		// future, so whose clock is an hour ahead could never lead.
		"message.timestamp.type": "LogAppendTime",
		"retention.ms":           "604800000", // 7 days
	}, {
		"retention.bytes": "16777216", // 16 MiB: 80,000 records of 200 bytes
		"segment.bytes":   "4194304",  // 4 MiB
		"segment.ms":      "86400000", // a day: only whole segments are deleted
	}}
}

// make creates the topic.
func (t *Topic) make(ctx context.Context) error {
	spec := *t.create
	brokers, err := t.Admin.Brokers(ctx)
	if err != nil {
		return err
	}
	spec.Replicas = min(3, len(brokers))
	if t.apart > 0 {
		spec.Replicas = 1
		if spec.Brokers, err = placeApart(brokers, t.apart, t.name); err != nil {
			return err
		}
	}
	lots := topicSettings(spec.Replicas)
	var refusal error
	for kept := len(lots); ; kept-- {
		spec.Settings = map[string]string{}
		for _, lot := range lots[:kept] {
			maps.Copy(spec.Settings, lot)
		}
		err = t.Admin.CreateTopic(ctx, spec)
		if !errors.Is(err, kafka.ErrSettings) || kept == 0 {
			break
		}
		refusal = err
	}
	switch {
	case errors.Is(err, kafka.ErrTopicExists):
		return nil // another member was faster
	case errors.Is(err, kafka.ErrAuthorization):
		return t.Access.Check("CREATE topic "+t.name, err)
	case err != nil:
		return err
	}
	args := []any{"topic", t.name, "partitions", spec.Partitions, "replicas", spec.Replicas}
	if spec.Brokers != nil {
		args = append(args, "brokers", spec.Brokers)
	}
	t.log.Info("created the leader topic", args...)
	if missing := missingSettings(lots, spec.Settings); len(missing) > 0 {
		t.log.Warn("created the leader topic without settings that it should have, as the broker refuses at least one of them: set what it allows",
			"topic", t.name, "missing", strings.Join(missing, " "), "error", refusal)
	}
	return nil
}

// missingSettings returns what is in lots and not in got, as name=value.
func missingSettings(lots []map[string]string, got map[string]string) []string {
	var missing []string
	for _, lot := range lots {
		for name, value := range lot {
			if _, ok := got[name]; !ok {
				missing = append(missing, name+"="+value)
			}
		}
	}
	slices.Sort(missing)
	return missing
}

// warn logs the settings under which a lease is not safe, or its log not
// durable. Being refused to look is no reason to stop.
func (t *Topic) warn(ctx context.Context) {
	var settings map[string]string
	var info kafka.TopicInfo
	err := t.attempt(ctx, func(ctx context.Context) (err error) {
		if settings, err = t.Admin.Settings(ctx, t.name); err != nil {
			return err
		}
		info, err = t.Admin.Topic(ctx, t.name)
		return err
	})
	if err != nil {
		t.log.Info("could not check the leader topic's settings", "topic", t.name,
			"error", Naming("DESCRIBE_CONFIGS topic "+t.name, err))
		return
	}
	for _, w := range unsafeSettings(settings, info.Replicas) {
		t.log.Warn("unsafe setting of the leader topic", "topic", t.name, "error", w)
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
		out = append(out, fmt.Sprintf("retention.ms=%d: records may be deleted before they are read; set it to 604800000 (7 days)", ms))
	}
	if s["message.timestamp.type"] == "CreateTime" {
		out = append(out, "message.timestamp.type=CreateTime: a process whose wall clock is more than an hour ahead of the broker's "+
			"has its records refused and never leads; set it to LogAppendTime")
	}
	return out
}
