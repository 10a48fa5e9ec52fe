// Command static keeps a job running on one of several machines. It is one static binary without a C library:
// its Kafka client is franz-go.
//
//	CGO_ENABLED=0 go build -tags neli_nolibrdkafka ./static
//	./static -name anna
//
// (With CGO_ENABLED=0 the tag changes nothing; with cgo it leaves librdkafka out.)
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli"
	"github.com/goneli/neli/franz"
)

func main() {
	var (
		bootstrap = flag.String("bootstrap", "localhost:9092", "Kafka brokers, host:port,…")
		group     = flag.String("group", "static", "the group whose members contend")
		name      = flag.String("name", "", "name of this process in logs (default: host, pid and time)")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	if err := run(ctx, *group, *name, strings.Split(*bootstrap, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "static:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, group, name string, brokers []string) error {
	n, err := neli.New(neli.Config{
		LeaderGroupID: group,
		Name:          name,
		Provider:      franz.Provider(kgo.SeedBrokers(brokers...)),
	})
	if err != nil {
		return err
	}
	logger := log.New(os.Stdout, n.Config().Name+": ", log.Ltime|log.Lmsgprefix)
	err = n.Lead(ctx, func(ctx context.Context, l neli.Leadership) error {
		logger.Printf("runs the job, with token %d", l.Token)
		<-ctx.Done() // a real job would work here, and check ctx.Err() before each thing it does
		logger.Printf("stops the job (%v)", context.Cause(ctx))
		return nil
	})
	return errors.Join(err, n.Close())
}
