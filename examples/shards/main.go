// Command shards spreads customers over all processes that run it, so that each
// customer is served by one process only. Customers are hashed to shards, shards
// are roles, and leaders of roles own their customers.
//
//	go run ./shards -name anna
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/goneli/neli"
)

func main() {
	var (
		bootstrap = flag.String("bootstrap", "localhost:9092", "Kafka brokers, host:port,…")
		group     = flag.String("group", "shards", "the group whose members contend")
		topic     = flag.String("topic", "", "the topic that carries the election (default: group + .neli)")
		name      = flag.String("name", "", "this process, in logs (default: host, pid and time)")
		shards    = flag.Int("shards", 64, "shards; the same in all processes, and for ever")
		limit     = flag.Duration("for", 0, "end after this time; 0: when interrupted")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *limit)
		defer cancel()
	}
	cfg := neli.Config{
		KafkaConfig:   neli.KafkaConfigMap{"bootstrap.servers": *bootstrap},
		LeaderGroupID: *group,
		LeaderTopic:   *topic,
		Name:          *name,
		// Shards cost nothing, so there are many; partitions cost a beat each, so
		// there are few: enough for as many processes as will ever run.
		Roles:      *shards,
		Partitions: 8,
	}
	if err := run(ctx, cfg); err != nil {
		fmt.Fprintln(os.Stderr, "shards:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, cfg neli.Config) (err error) {
	n, err := neli.New(cfg)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := n.Close(); err == nil {
			err = closeErr
		}
	}()
	s := &server{
		n:      n,
		log:    log.New(os.Stdout, n.Name()+": ", log.Ltime|log.Lmsgprefix),
		shards: cfg.Roles,
	}
	s.log.Print("standing by")
	// Whoever calls Pulse only now and then calls it with no timeout, ahead of the
	// work: it delivers what has changed, and says that this process is not hung.
	requests := time.NewTicker(20 * time.Millisecond)
	defer requests.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-requests.C:
		}
		if _, err := n.Pulse(0); err != nil {
			return err
		}
		s.show()
		s.serve(fmt.Sprintf("customer-%d", i%customers))
	}
}

const customers = 100

// server serves the customers whose shards this process leads.
type server struct {
	n      *neli.Neli
	log    *log.Logger
	shards int
	owned  []int
	served map[string]int // by customer, since ownership last changed
}

// serve handles a request, if it is this process's to handle.
func (s *server) serve(customer string) {
	shard := neli.Slot(customer, s.shards)
	if !s.n.IsLeaderOf(shard) {
		return // another process's
	}
	s.served[customer]++
}

// show prints what this process owns, when that has changed.
func (s *server) show() {
	owned := slices.Collect(s.n.Roles())
	if s.served != nil && slices.Equal(owned, s.owned) {
		return
	}
	if len(s.served) > 0 {
		s.log.Printf("served %d customers meanwhile", len(s.served))
	}
	s.owned, s.served = owned, map[string]int{}
	mine := 0
	for i := range customers {
		if s.n.IsLeaderOf(neli.Slot(fmt.Sprintf("customer-%d", i), s.shards)) {
			mine++
		}
	}
	s.log.Printf("owns %d of %d shards and %d of %d customers: %s",
		len(owned), s.shards, mine, customers, ranges(owned))
}

// ranges writes ascending numbers as in "0-3,8".
func ranges(numbers []int) string {
	out := ""
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		if out != "" {
			out += ","
		}
		if out += fmt.Sprint(numbers[i]); j > i {
			out += fmt.Sprintf("-%d", numbers[j])
		}
		i = j + 1
	}
	return out
}
