// Command shards moves 64 shards among three processes under load, and prints who served each request. A shard takes
// 100 ms to warm up; package shards does that before it moves.
//
// The program starts the processes a, b and c itself, in four scenes: with Prepare, without it, with standbys, and with
// standbys and a sentinel. In each scene it moves each shard three times and kills c. A move that fails is tried again.
// A scene that takes longer than 90 seconds is an error. After each scene the program prints lines of 64 requests, one
// for each shard: who served them (nobody: a dot). It also prints how long shards were not served.
//
//	go run ./shards
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/goneli/neli"
)

const (
	count  = 64 // shards
	warmUp = 100 * time.Millisecond
)

func main() {
	var (
		bootstrap = flag.String("bootstrap", "localhost:9092", "Kafka brokers, host:port,…")
		group     = flag.String("group", "shards", "the group whose members contend")
		moves     = flag.Int("moves", 3, "times that each shard moves in a scene")
		pause     = flag.Duration("pause", 6*time.Second, "the time before the moves, and before the SIGKILL")
		name      = flag.String("member", "", "be this member, and obey the standard input (for the program's own use)")
		cold      = flag.Bool("cold", false, "the member is without Prepare")
		standby   = flag.Bool("standby", false, "the member stands by for shards of others")
		sentinel  = flag.String("sentinel", "", "the member's sentinel")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	cfg := neli.Config{
		KafkaConfig:      neli.KafkaConfigMap{"bootstrap.servers": *bootstrap},
		LeaderGroupID:    *group,
		Name:             *name,
		Roles:            count,
		Standby:          *standby,
		Sentinel:         *sentinel,
		DisableRebalance: true, // this program moves the shards
	}
	var err error
	if *name != "" {
		err = (&member{out: os.Stdout}).run(ctx, cfg, *cold, os.Stdin)
	} else {
		err = show(ctx, cfg, *bootstrap, pace{*moves, *pause})
	}
	if err != nil {
		log.Fatal("shards: ", err)
	}
}
