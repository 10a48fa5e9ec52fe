//go:build unix

package main

import (
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/examples/internal/show"
)

const (
	timeout = 1500 * time.Millisecond // T: a leader that is not heard of for so long is none
	steady  = 15 * time.Second        // for so long a member must have been there to be given something
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
