package neli_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// A question between two steps of a loop. It asks the clock, and nobody else: it costs nothing.
func ExampleNeli_IsLeader() {
	n := leader(nelitest.NewBroker(nelitest.Options{}), "anna")
	fmt.Println("leads:", n.IsLeader())
	_ = n.Close()
	fmt.Println("leads:", n.IsLeader())
	// Output:
	// leads: true
	// leads: false
}

// Valid says whether the term is still on: for code that has a Leadership and no Neli.
func ExampleLeadership_Valid() {
	n, err := neli.New(neli.Config{LeaderGroupID: "ledger", HeartbeatTimeout: time.Second, Provider: nelitest.NewBroker(nelitest.Options{}).Provider("a")})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var term neli.Leadership
	err = n.Lead(ctx, func(_ context.Context, l neli.Leadership) error {
		term = l
		fmt.Println("within:", term.Valid())
		stop()
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	_ = n.Close()
	fmt.Println("afterwards:", term.Valid())
	// Output:
	// within: true
	// afterwards: false
}

// Close hands over: what follows it is not a leader's work any more.
func ExampleNeli_Close() {
	broker := nelitest.NewBroker(nelitest.Options{})
	anna := leader(broker, "anna")
	if err := anna.Close(); err != nil {
		log.Fatal(err)
	}
	ben := leader(broker, "ben") // does not wait for a lease to end
	defer ben.Close()
	fmt.Println("anna:", anna.IsLeader(), "ben:", ben.IsLeader())
	// Output: anna: false ben: true
}

// Members are those of which this process has heard lately, itself included.
func ExampleNeli_Members() {
	n := leader(nelitest.NewBroker(nelitest.Options{}), "anna")
	defer n.Close()
	for _, m := range n.Members() {
		fmt.Println(m.Name)
	}
	// Output: anna
}

// Stats is for graphs and alerts where package metrics does not fit. Its counters grow from New on.
func ExampleNeli_Stats() {
	n := leader(nelitest.NewBroker(nelitest.Options{}), "anna")
	defer n.Close()
	s := n.Stats()
	fmt.Println("terms:", s.TermsStarted, "healthy:", s.Healthy)
	// Output: terms: 1 healthy: true
}
