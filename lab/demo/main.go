//go:build unix

// Command demo shows leader election at work, on one machine and without your own Kafka. It starts an
// embedded broker and several member processes. It kills one, suspends and wakes another, closes one,
// starts one and kills that with a sentinel running, and it measures what the members believed meanwhile.
// It needs Linux, macOS or another Unix, because it suspends processes.
//
//	go run ./demo
package main

import (
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/internal/show"
)

const (
	timeout = 1500 * time.Millisecond // T: a leader leads for this long after its last beat
	steady  = 15 * time.Second        // how long a process must have been a member to be given roles
)

func main() { show.Main("demo", 12, member, tell) }

// member contends for all roles. args are the broker and the socket of a sentinel, "" for none.
func member(name string) error {
	return show.Member(func(args []string) neli.Config {
		return neli.Config{
			KafkaConfig:      neli.KafkaConfigMap{"bootstrap.servers": args[0]},
			LeaderGroupID:    "demo",
			Name:             name,
			Partitions:       show.Roles,
			HeartbeatTimeout: timeout,
			Sentinel:         args[1],
		}
	}, func(string) {})
}
