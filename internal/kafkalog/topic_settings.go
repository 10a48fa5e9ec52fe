package kafkalog

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goneli/neli/kafka"
)

// topicSetting is a setting with which the leader topic is created.
type topicSetting struct {
	name    string
	values  []string // the preferred one, then acceptable ones
	without string   // the consequence of its absence
}

// topicSettings returns the settings with which the leader topic is created, the most important
// first. replicas is 0 if the cluster chooses the number; it then chooses min.insync.replicas too.
//
// Records are kept for a week, so that after a shorter downtime a member finds its group's last
// records, and need not wait as long as the longest possible lease. The size limit bounds what a
// week of beats takes. Segments are larger than the minimum of Kafka 4 (1 MiB), or else as large
// as the minimum of Confluent Cloud (50 MiB).
func topicSettings(replicas int) []topicSetting {
	var all []topicSetting
	if replicas > 0 {
		all = append(all, topicSetting{"min.insync.replicas", []string{strconv.Itoa(max(1, replicas-1))},
			"an acknowledged record may be lost with one broker, unless the cluster's default is " + strconv.Itoa(max(1, replicas-1))})
	}
	return append(all,
		// Otherwise clients unpack compressed batches of other processes: some KiB may become hundreds of MiB.
		topicSetting{"compression.type", []string{"uncompressed"},
			"a record that somebody writes may take much more memory at all members than at the brokers"},
		topicSetting{"max.message.bytes", []string{strconv.Itoa(LargestBatch)},
			"members must read records of others that are larger than any of their own"},
		topicSetting{"unclean.leader.election.enable", []string{"false"},
			"a broker that lacks records may become the partition's leader, unless the cluster's default is false"},
		topicSetting{"cleanup.policy", []string{"delete"},
			"nobody can lead if the cluster's default is to compact: it refuses records without keys then"},
		// The broker's clock, not the sender's: Kafka refuses records from the future, so a
		// process whose clock is an hour ahead could never lead.
		topicSetting{"message.timestamp.type", []string{"LogAppendTime"},
			"a process whose wall clock is more than an hour ahead of the broker's never leads"},
		topicSetting{"retention.ms", []string{"604800000"}, // 7 days
			"after a downtime longer than the cluster's default, members wait for about a minute before anybody leads"},
		topicSetting{"retention.bytes", []string{"16777216"}, // 16 MiB: 80,000 records of 200 bytes
			"the topic takes as much room as its retention time lets it"},
		topicSetting{"segment.bytes", []string{"4194304", "52428800"}, // 4 MiB, 50 MiB
			"records stay longer than they need, as brokers delete whole segments only"},
		topicSetting{"segment.ms", []string{"86400000"}, // a day
			"records stay longer than they need, as brokers delete whole segments only"},
	)
}

// LargestBatch is the size of the largest batch of records that members write: one record, or several
// small ones. (One record is below 64 KiB.)
const LargestBatch = 128 << 10

// largestUsual is Kafka's own default of max.message.bytes.
const largestUsual = 1_048_588

// differences lists the settings of a topic that differ from those with which it would be created,
// with their consequences, except those that unsafeSettings reports.
func differences(got map[string]string, replicas int) []string {
	complaints := strings.Join(unsafeSettings(got, replicas), " ")
	var out []string
	for _, s := range topicSettings(replicas) {
		value, told := got[s.name]
		if !told || value == "" || slices.Contains(s.values, value) || strings.Contains(complaints, s.name+"=") {
			continue
		}
		if s.name == "min.insync.replicas" {
			if n, err := strconv.Atoi(value); err == nil && n > replicas/2 && n < replicas || replicas < 3 {
				continue // equivalent
			}
		}
		out = append(out, fmt.Sprintf("%s is %s, and the library would create it with %s: %s", s.name, value, s.values[0], s.without))
	}
	return out
}

// warn logs the settings that make a lease unsafe, and those that differ from the library's. It is no
// error if this process may not read them.
func (t *Topic) warn(ctx context.Context) {
	var settings map[string]string
	var info kafka.TopicInfo
	ask := func() error {
		return t.attempt(ctx, func(ctx context.Context) (err error) {
			if settings, err = t.Admin.Settings(ctx, t.name); err != nil {
				return err
			}
			info, err = t.Admin.Topic(ctx, t.name)
			return err
		})
	}
	err := ask()
	for t.spreads(err) && pause(ctx, 100*time.Millisecond) {
		err = ask()
	}
	if err != nil {
		t.log.Info("could not check the leader topic's settings", "topic", t.name,
			"error", Naming("DESCRIBE_CONFIGS topic "+t.name, err))
		return
	}
	for _, w := range unsafeSettings(settings, info.Replicas) {
		t.log.Warn("unsafe setting of the leader topic", "topic", t.name, "error", w)
	}
	for _, d := range differences(settings, info.Replicas) {
		t.log.Info("a setting of the leader topic differs", "topic", t.name, "difference", d)
	}
}

// unsafeSettings lists the settings that are wrong for a topic that carries leases.
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
	case replicas == 1 && isr > 1: // newer versions of Kafka take it for 1
		out = append(out, fmt.Sprintf("min.insync.replicas=%d with 1 replica: brokers of earlier Kafka versions refuse every record, so nobody leads; set it to 1", isr))
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
	if w := growing(s); w != "" {
		out = append(out, w)
	}
	if s["write.caching"] == "true" { // a setting of Redpanda
		out = append(out, "write.caching=true: brokers acknowledge a record before it is on a disk, so a power cut may take back a claim; set it to false")
	}
	if s["warpstream.topic.type"] == "lightning" {
		out = append(out, "warpstream.topic.type=lightning: a record is acknowledged before it has its place in the log, "+
			"so what a member reads lags behind what was promised to another one; use a topic of the usual type")
	}
	if s["message.timestamp.type"] == "CreateTime" {
		out = append(out, "message.timestamp.type=CreateTime: a process whose wall clock is more than an hour ahead of the broker's "+
			"has its records refused and never leads; set it to LogAppendTime")
	}
	return out
}

// growing describes settings by which any principal that may write to the topic can make its readers
// use very much memory. One sentence covers both settings.
func growing(s map[string]string) string {
	var set []string
	if c := s["compression.type"]; c != "" && c != "uncompressed" {
		set = append(set, "compression.type="+c)
	}
	if n, err := strconv.Atoi(s["max.message.bytes"]); err == nil && (n > largestUsual || set != nil && n > LargestBatch) {
		set = append(set, "max.message.bytes="+s["max.message.bytes"])
	}
	if set == nil {
		return ""
	}
	return strings.Join(set, " and ") + ": a record of somebody who may write to the topic can take members very much memory; " +
		"set compression.type=uncompressed and max.message.bytes=" + strconv.Itoa(LargestBatch)
}
