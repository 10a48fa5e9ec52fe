package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	audit "github.com/goneli/neli/internal/history"
	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/chaos/member"
	"github.com/goneli/neli/lab/chaos/plan"
	"github.com/goneli/neli/lab/chaos/store"
)

// readLogs reads all topics of exclusive mode. A majority of logs has no history.
func (m *machine) readLogs(ctx context.Context) (all history.ElectionLog, err error) {
	for number := 0; number <= m.topic && !m.Has(Logs); number++ {
		log, err := m.readLog(ctx, number)
		if err != nil {
			return all, err
		}
		if number == 0 {
			all.From = log.From // later topics are too short for retention
		}
		all.Claims, all.Faults = append(all.Claims, log.Claims...), append(all.Faults, log.Faults...)
		all.Proof = strings.TrimPrefix(all.Proof+"; "+log.Proof, "; ")
	}
	return all, nil
}

// readLog reads a whole topic of exclusive mode, with a client other than the library's. All
// members have ended, so the topic no longer grows.
func (m *machine) readLog(ctx context.Context, number int) (history.ElectionLog, error) {
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	topic := member.Topic(number)
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(m.cluster.Bootstrap(), ",")...),
		kgo.Dialer(m.net.Host(hostRunner).Dial), kgo.ConsumeTopics(topic))
	if err != nil {
		return history.ElectionLog{}, err
	}
	defer client.Close()
	var entries []audit.Entry
	whole := map[int32]bool{}
	for len(whole) < Roles {
		fetches := client.PollFetches(limited)
		if err := fetches.Err(); err != nil {
			return history.ElectionLog{}, fmt.Errorf("reading the election's log: %w", err)
		}
		fetches.EachPartition(func(f kgo.FetchTopicPartition) {
			for _, r := range f.Records {
				if m.Has(plan.Clocks) { // brokers set the timestamps
					r.Timestamp = time.Time{}
				}
				entries = append(entries, audit.Entry{Partition: int(r.Partition), Offset: r.Offset, Time: r.Timestamp, Value: r.Value})
				if r.Offset+1 >= f.HighWatermark {
					whole[f.Partition] = true
				}
			}
		})
	}
	return electionLog(entries, member.TokenBase(number))
}

// electionLog is what the records tell and prove by the rules of neli history.
func electionLog(entries []audit.Entry, base int64) (log history.ElectionLog, err error) {
	var first struct{ Log string } // the topic's id, as its members know it
	if err := json.Unmarshal(entries[0].Value, &first); err != nil {
		return log, fmt.Errorf("the election's first record: %w", err)
	}
	told, err := audit.Of(member.Group(history.Exclusive), first.Log, Roles, entries)
	if err != nil {
		return log, err
	}
	log.From = told.From
	for _, t := range told.Terms { // the topic has as many partitions as there are roles
		log.Claims = append(log.Claims, history.Claim{Member: t.Name, Role: t.Role, Offset: base + t.Token})
	}
	for _, f := range told.Faults {
		log.Faults = append(log.Faults, "neli history --prove: "+f.String())
	}
	log.Proof = fmt.Sprintf("%d records, %d terms, %d waits, %d of them shown by timestamps", told.Records, len(told.Terms), told.Waits, told.Shown)
	return log, nil
}

// committed reads the records that leaders wrote in transactions.
func (m *machine) committed(ctx context.Context) ([]store.Entry, error) {
	limited, cancel := context.WithTimeout(ctx, time.Minute) // longer than the timeout of an abandoned transaction
	defer cancel()
	reader, err := store.NewReader(m.cluster.Bootstrap(), m.net.Host(hostRunner).Dial)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	return reader.Log(limited, Roles)
}

// storeOf is the kind of store to which the leaders of a role write.
func (m *machine) storeOf(role int) string { return m.Stores[role%len(m.Stores)] }
