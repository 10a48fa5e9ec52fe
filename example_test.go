package neli_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"sync/atomic"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// These examples run on a broker in memory, and with a short HeartbeatTimeout so that they end
// soon. In production leave both fields out, and name your brokers in KafkaConfig.

func ExampleNew() {
	n, err := neli.New(neli.Config{
		KafkaConfig:      neli.KafkaConfigMap{"bootstrap.servers": "localhost:9092"},
		LeaderGroupID:    "invoices", // all processes of the group "invoices" contend
		HeartbeatTimeout: 2 * time.Second,
		Provider:         nelitest.NewBroker(nelitest.Options{}).Provider("a"),
	})
	if err != nil {
		log.Fatal(err) // lists everything that is wrong with the configuration
	}
	defer n.Close()

	// New has not waited for Kafka. Pulse makes this process a candidate, and waits
	// for up to a minute for it to become leader.
	leads, err := n.Pulse(time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("leads:", leads)
	// Output: leads: true
}

// A job in small pieces that only one process may do.
func ExampleNeli_Background() {
	n, err := neli.New(neli.Config{
		LeaderGroupID:    "invoices",
		HeartbeatTimeout: 2 * time.Second,
		Provider:         nelitest.NewBroker(nelitest.Options{}).Provider("a"),
	})
	if err != nil {
		log.Fatal(err)
	}
	invoices := make(chan int, 3)
	for i := range 3 {
		invoices <- i + 1
	}
	sent := make(chan struct{})

	// The task is called again and again for as long as this process leads.
	_, err = n.Background(func() {
		select {
		case i := <-invoices:
			fmt.Println("sent invoice", i)
			if i == 3 {
				close(sent)
			}
		case <-time.After(10 * time.Millisecond): // nothing to do: look again soon
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	<-sent
	// Close waits for the task and hands over.
	if err := n.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// sent invoice 1
	// sent invoice 2
	// sent invoice 3
}

// Lead calls a function once for each term of each role, with a context that ends with the term.
func ExampleNeli_Lead() {
	n, err := neli.New(neli.Config{
		LeaderGroupID:    "reports",
		HeartbeatTimeout: 2 * time.Second,
		Provider:         nelitest.NewBroker(nelitest.Options{}).Provider("a"),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer n.Close()

	ctx, shutDown := context.WithCancel(context.Background())
	err = n.Lead(ctx, func(ctx context.Context, l neli.Leadership) error {
		fmt.Println("leads role", l.Role)
		shutDown() // in production: on SIGTERM, for example

		<-ctx.Done()
		if errors.Is(context.Cause(ctx), neli.ErrFenced) {
			return nil // over already: stop at once
		}
		// The lease is kept until this function returns, but no longer than DrainTimeout.
		fmt.Println("finishes in good order")
		return nil
	})
	fmt.Println("error:", err)
	// Output:
	// leads role 0
	// finishes in good order
	// error: <nil>
}

// Full control: your own loop, and a barrier that receives every change of leadership. The barrier
// runs within Pulse and Close.
func ExampleNeli_Pulse() {
	n, err := neli.New(neli.Config{
		LeaderGroupID:    "import",
		HeartbeatTimeout: 2 * time.Second,
		Provider:         nelitest.NewBroker(nelitest.Options{}).Provider("a"),
	}, func(e neli.Event) {
		switch e := e.(type) {
		case neli.LeaderAcquired:
			fmt.Println("initialise what leading needs, for roles", e.Roles())
		case neli.LeaderRevoked:
			fmt.Println("finish before the deadline:", e.Reason)
		case neli.LeaderFenced:
			fmt.Println("stop at once:", e.Reason)
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	for done := false; !done; {
		leads, err := n.Pulse(10 * time.Millisecond)
		if err != nil {
			log.Fatal(err) // closed, or failed permanently
		}
		if leads {
			fmt.Println("do a piece of work")
			done = true
		}
	}
	if err := n.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// initialise what leading needs, for roles [0]
	// do a piece of work
	// finish before the deadline: closing
}

// Leadership may be over when the write arrives. So the row remembers the token of its last writer
// and refuses lower ones.
func ExampleNeli_Token() {
	var (
		n  *neli.Neli // from New
		db *sql.DB
	)
	setRate := func(ctx context.Context, rate int) error {
		token, ok := n.Token(0)
		if !ok {
			return errors.New("not the leader")
		}
		result, err := db.ExecContext(ctx,
			`UPDATE rates SET rate = $1, token = $2 WHERE id = 1 AND token <= $2`, rate, token)
		if err != nil {
			return err
		}
		if rows, err := result.RowsAffected(); err != nil || rows == 1 {
			return err
		}
		return fmt.Errorf("token %d is stale: a later leader has written", token)
	}
	_ = setRate
}

// A router watches who leads and never contends. It only knows who led a moment ago, which is
// enough to route a request; the process that gets the request checks IsLeaderOf.
func ExampleNeli_Watch() {
	broker := nelitest.NewBroker(nelitest.Options{})
	process := func(name string, observer bool) *neli.Neli {
		n, err := neli.New(neli.Config{
			LeaderGroupID:    "carts",
			Name:             name, // what others need to reach it
			Nomination:       neli.NominationOpen,
			Observer:         observer,
			HeartbeatTimeout: 2 * time.Second,
			Provider:         broker.Provider(name),
		})
		if err != nil {
			log.Fatal(err)
		}
		return n
	}
	router, server := process("router", true), process("10.0.0.7:8080", false)
	defer router.Close()
	if _, err := server.Pulse(time.Minute); err != nil { // and leads
		log.Fatal(err)
	}
	led := false
	for s := range router.Watch(context.Background()) {
		switch s.Status {
		case neli.StatusHeld:
			led = true
			fmt.Println("send requests for role 0 to", s.Holder.Name)
			go server.Close()
		case neli.StatusVacant:
			if led {
				fmt.Println("nobody leads: let them wait")
				return
			}
		case neli.StatusUnknown:
		}
	}
	// Output:
	// send requests for role 0 to 10.0.0.7:8080
	// nobody leads: let them wait
}

func ExampleNeli_Holder() {
	var n *neli.Neli // from New
	const shards = 64
	route := func(customer string) (address string, err error) {
		h, ok := n.Holder(neli.Slot(customer, shards))
		if !ok || h.Advertise == "" {
			return "", errors.New("no leader is known: try again soon")
		}
		return h.Advertise, nil
	}
	_ = route
}

// Shards are roles, and keys are hashed to shards. The owner of a key is the process that leads its slot.
func ExampleSlot() {
	const shards = 64 // Config.Roles; the same everywhere, and for ever
	for _, customer := range []string{"ada", "grace", "edsger"} {
		fmt.Println(customer, "is in shard", neli.Slot(customer, shards))
	}
	// and then: if n.IsLeaderOf(neli.Slot(customer, shards)) { … }

	// Output:
	// ada is in shard 30
	// grace is in shard 51
	// edsger is in shard 6
}

// Before the leader's machine is taken down for maintenance, its role is handed to another process.
func ExampleNeli_Transfer() {
	broker := nelitest.NewBroker(nelitest.Options{})
	leads := make(chan string)
	start := func(name string) *neli.Neli {
		n, err := neli.New(neli.Config{LeaderGroupID: "ledger", Name: name,
			Provider: broker.Provider(name), HeartbeatTimeout: 2 * time.Second})
		if err != nil {
			log.Fatal(err)
		}
		go n.Lead(context.Background(), func(ctx context.Context, _ neli.Leadership) error {
			leads <- name
			<-ctx.Done()
			fmt.Println(name, "finishes its work")
			return nil
		})
		return n
	}
	old := start("old")
	fmt.Println(<-leads, "leads")
	replacement := start("new")

	err := old.Transfer(context.Background(), 0, "new")
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for errors.Is(err, neli.ErrNoMember) { // the member has just started and is not known yet
		<-again.C
		err = old.Transfer(context.Background(), 0, "new")
	}
	fmt.Println("error:", err)
	fmt.Println(<-leads, "leads")
	_ = old.Close()
	_ = replacement.Close()
	// Output:
	// old leads
	// old finishes its work
	// error: <nil>
	// new leads
	// new finishes its work
}

// Members in the data centre that has the database are preferred. A member that has lost the
// database does not lead, wherever it is.
func ExampleConfig_priority() {
	var connected atomic.Bool
	cfg := neli.Config{
		LeaderGroupID: "billing",
		Priority:      10, // elsewhere 0
		Healthy: func() error {
			if !connected.Load() {
				return fmt.Errorf("no connection to the database")
			}
			return nil
		},
	}
	_ = cfg
}
