package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/chaos/member"
	"github.com/goneli/neli/lab/chaos/store"
)

// readLog reads the whole topic of exclusive mode, with a client other than the library's. All
// members have ended, so the topic no longer grows.
func (m *machine) readLog(ctx context.Context) (history.ElectionLog, error) {
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(m.cluster.Bootstrap(), ",")...),
		kgo.Dialer(m.net.Host(hostRunner).Dial), kgo.ConsumeTopics(member.Group(history.Exclusive)+".neli"))
	if err != nil {
		return history.ElectionLog{}, err
	}
	defer client.Close()
	log := history.ElectionLog{From: make([]int64, Roles)}
	whole := map[int32]bool{}
	first := map[int32]bool{}
	for len(whole) < Roles {
		fetches := client.PollFetches(limited)
		if err := fetches.Err(); err != nil {
			return log, fmt.Errorf("reading the election's log: %w", err)
		}
		fetches.EachPartition(func(f kgo.FetchTopicPartition) {
			for _, r := range f.Records {
				if !first[f.Partition] {
					first[f.Partition] = true
					log.From[f.Partition] = r.Offset
				}
				if c, ok := claimOf(r); ok {
					log.Claims = append(log.Claims, c)
				}
				whole[f.Partition] = r.Offset+1 >= f.HighWatermark
			}
		})
		for p, all := range whole {
			if !all {
				delete(whole, p)
			}
		}
	}
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

// claimOf returns the claim in a record. The topic has as many partitions as there are roles.
func claimOf(r *kgo.Record) (history.Claim, bool) {
	var v struct{ Kind, Name string }
	if err := json.Unmarshal(r.Value, &v); err != nil || v.Kind != "claim" {
		return history.Claim{}, false
	}
	return history.Claim{Member: v.Name, Role: int(r.Partition), Offset: r.Offset}, true
}
