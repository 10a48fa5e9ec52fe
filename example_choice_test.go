package neli_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync/atomic"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// Before the leader's machine is taken down for maintenance its role is handed to
// another one.
func ExampleNeli_Transfer() {
	broker := nelitest.NewBroker(nelitest.Options{})
	leads := make(chan string)
	start := func(name string) *neli.Neli {
		n, err := neli.New(neli.Config{LeaderGroupID: "ledger", Name: name, HeartbeatTimeout: time.Second,
			Provider: broker.Provider(name)})
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
	for errors.Is(err, neli.ErrNoMember) { // it has just started, and is not known yet
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

// Of two data centres the one with the database is preferred; a member that has lost
// its database does not lead wherever it is.
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
