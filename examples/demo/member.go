//go:build unix

package main

import (
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/examples/internal/show"
)

const (
	timeout = 1500 * time.Millisecond // T: a leader leads for this long after its last beat
	steady  = 15 * time.Second        // how long a process must have been a member to be given roles
)

// member contends for all roles, until standard input says "close" or ends.
func member(name, bootstrap, sentinel string) error {
	return show.Member(neli.Config{
		KafkaConfig:      neli.KafkaConfigMap{"bootstrap.servers": bootstrap},
		LeaderGroupID:    "demo",
		Name:             name,
		Partitions:       show.Roles,
		HeartbeatTimeout: timeout,
		Sentinel:         sentinel,
	}, func(string) {})
}
