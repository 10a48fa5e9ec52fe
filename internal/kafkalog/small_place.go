package kafkalog

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"github.com/goneli/neli/kafka"
)

// SmallTopicName returns the name of the topic of Config.Logs. The name contains everything that
// must be the same for all members: a member that finds a log without records of its group waits
// for its own T, so members with another T, ρ or N must not share the topic.
func SmallTopicName(topic string, logs int, lease time.Duration, drift float64) string {
	return fmt.Sprintf("%s.logs-%d.t-%v.rho-%s", topic, logs, lease, strconv.FormatFloat(drift, 'g', -1, 64))
}

// placeApart chooses a different broker for each of n partitions, in different racks as far as
// there are racks. The topic's name decides where it starts, so that many topics spread over many
// brokers.
func placeApart(brokers []kafka.BrokerInfo, n int, topic string) ([][]int, error) {
	if len(brokers) < n {
		return nil, fmt.Errorf("%d brokers are up, and Logs is %d: each log needs one of its own", len(brokers), n)
	}
	order := slices.SortedFunc(slices.Values(brokers), func(a, b kafka.BrokerInfo) int { return cmp.Compare(a.ID, b.ID) })
	h := fnv.New32a()
	_, _ = h.Write([]byte(topic))
	first := int(h.Sum32() % uint32(len(order)))
	order = append(order[first:], order[:first]...)

	var chosen [][]int
	racks := map[string]bool{}
	var rest []kafka.BrokerInfo
	for _, b := range order {
		if len(chosen) == n || racks[b.Rack] {
			rest = append(rest, b)
			continue
		}
		racks[b.Rack] = b.Rack != "" // a broker without a rack counts as having one of its own
		chosen = append(chosen, []int{b.ID})
	}
	for _, b := range rest[:n-len(chosen)] {
		chosen = append(chosen, []int{b.ID})
	}
	return chosen, nil
}

// checkApart returns all that is wrong unless a topic has n partitions, each with one replica on a broker of its own.
func checkApart(topic string, info kafka.TopicInfo, n int) error {
	var wrong []error
	if info.Partitions != n {
		wrong = append(wrong, fmt.Errorf("it has %d partitions: must be as many as Logs, %d", info.Partitions, n))
	}
	on := map[int]int{}
	for p, brokers := range info.Brokers {
		if len(brokers) != 1 {
			wrong = append(wrong, fmt.Errorf("partition %d has %d replicas, on brokers %v: must be 1", p, len(brokers), brokers))
		}
		for _, id := range brokers {
			if other, taken := on[id]; taken && other != p {
				wrong = append(wrong, fmt.Errorf("partitions %d and %d are on broker %d: must be on different ones", other, p, id))
				continue
			}
			on[id] = p
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%w: topic %s:\n%w", ErrTopicPlacement, topic, errors.Join(wrong...))
}
