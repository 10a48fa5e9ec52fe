// Package program has a program that only uses the library. It imports nothing else, since a binary contains its
// imports.
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
)

// Knows is what a program prints when it knows who leads.
const Knows = "knows"

// Main contends for one role until its standard input ends. Its arguments are the servers' addresses and the group.
// kafka: the servers are brokers.
func Main(provider kafka.Provider, kafka bool) {
	var servers neli.KafkaConfigMap
	if kafka {
		servers = neli.KafkaConfigMap{"bootstrap.servers": os.Args[1]}
	}
	if err := contend(provider, servers, os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func contend(provider kafka.Provider, servers neli.KafkaConfigMap, group string) error {
	n, err := neli.New(neli.Config{
		KafkaConfig:      servers,
		LeaderGroupID:    group,
		Nomination:       neli.Open,
		HeartbeatTimeout: time.Second,
		Provider:         provider,
	})
	if err != nil {
		return err
	}
	go func() {
		_ = n.Lead(context.Background(), func(ctx context.Context, _ neli.Leadership) error {
			<-ctx.Done()
			return nil
		})
	}()
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if _, known := n.Holder(0); known {
				fmt.Println(Knows)
				return
			}
		}
	}()
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, n.Close())
}
