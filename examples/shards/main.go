// Command shards spreads customers over all processes that run it, so that each customer is served by one
// process only. Customers are hashed to shards. Each shard is a role, and the leader of a role owns its
// customers.
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
		process   = flag.String("name", "", "name of this process in logs (default: host, pid and time)")
		shards    = flag.Int("shards", 64, "number of shards: the same in all processes, and never changed")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	cfg := neli.Config{
		KafkaConfig:   neli.KafkaConfigMap{"bootstrap.servers": *bootstrap},
		LeaderGroupID: *group,
		Name:          *process,
		// Shards are cheap, so there are many. One partition carries them all.
		Roles: *shards,
	}
	if err := run(ctx, cfg); err != nil {
		fmt.Fprintln(os.Stderr, "shards:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, cfg neli.Config) error {
	s := &server{
		log:      log.New(os.Stdout, "", log.Ltime|log.Lmsgprefix),
		requests: time.NewTicker(20 * time.Millisecond),
	}
	defer s.requests.Stop()
	n, err := neli.New(cfg, s.moved)
	if err != nil {
		return err
	}
	s.n, s.shards = n, n.Config().Roles
	s.log.SetPrefix(n.Config().Name + ": ")
	s.log.Print("standing by")
	pulser, err := n.Background(s.step)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- pulser.Await() }()
	select {
	case err := <-failed:
		return err // a fatal error
	case <-ctx.Done():
	}
	// While Close looks for successors, this process still serves its customers.
	if err := n.Close(); err != nil {
		return err
	}
	s.log.Printf("closed; served %d requests, left %d to others", s.served, s.left)
	return nil
}

const customers = 100

// server serves the customers whose shards this process leads. It needs no lock, since step and moved are
// never called concurrently.
type server struct {
	n        *neli.Neli
	log      *log.Logger
	shards   int
	requests *time.Ticker
	next     int
	owned    []int // ascending
	served   int
	left     int
}

// step waits for a request, and serves it if this process owns the customer. It checks this after the wait,
// since the process may have been suspended meanwhile. (For simplicity all processes see all requests. A
// real front end would send each request to the owner of its slot.)
func (s *server) step() {
	<-s.requests.C
	customer := name(s.next)
	s.next = (s.next + 1) % customers
	if s.n.IsLeaderOf(neli.Slot(customer, s.shards)) {
		s.served++
	} else {
		s.left++
	}
}

// moved is called when shards come and go. A real server would load the customers of a shard here, and write
// back their data when it gives the shard up.
func (s *server) moved(e neli.Event) {
	switch e := e.(type) {
	case neli.LeaderAcquired:
		s.owned = append(s.owned, e.Roles()...)
		slices.Sort(s.owned)
		s.show("takes over")
	case neli.LeaderRevoked:
		s.drop(e.Roles())
		s.show("hands over")
	case neli.LeaderFenced:
		s.drop(e.Roles())
		s.show("lost some")
	}
}

func (s *server) drop(roles []int) {
	s.owned = slices.DeleteFunc(s.owned, func(role int) bool { return slices.Contains(roles, role) })
}

func (s *server) show(what string) {
	mine := 0
	for i := range customers {
		if slices.Contains(s.owned, neli.Slot(name(i), s.shards)) {
			mine++
		}
	}
	s.log.Printf("%s: owns %d of %d shards and %d of %d customers: %s",
		what, len(s.owned), s.shards, mine, customers, ranges(s.owned))
}

func name(customer int) string { return fmt.Sprintf("customer-%d", customer) }

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
