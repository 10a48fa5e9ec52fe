// Package footprint measures what a program costs that does nothing but use the
// library, with each Kafka client: the size of its binary, its start, its memory and its
// threads. The programs are commands of their own, since a binary has what its imports
// have.
package footprint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/goneli/neli"
)

// Knows is what a program prints once it knows who leads.
const Knows = "knows"

// Main is such a program: it contends for one role until its standard input ends.
func Main(provider neli.Provider) {
	if err := contend(provider, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func contend(provider neli.Provider, bootstrap, group string) error {
	n, err := neli.New(neli.Config{
		KafkaConfig:      neli.KafkaConfigMap{"bootstrap.servers": bootstrap},
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
