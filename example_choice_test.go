package neli_test

import (
	"context"
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
	start := func(name string) *neli.Neli {
		n, err := neli.New(neli.Config{LeaderGroupID: "ledger", Name: name, HeartbeatTimeout: 200 * time.Millisecond,
			Provider: broker.Provider(name)}, func(e neli.Event) {
			if e, ok := e.(neli.LeaderRevoked); ok {
				fmt.Println(name, "finishes its work:", e.Reason)
			}
		})
		if err != nil {
			log.Fatal(err)
		}
		if _, err := n.Background(func() { time.Sleep(10 * time.Millisecond) }); err != nil {
			log.Fatal(err)
		}
		return n
	}
	old := start("old")
	for !old.IsLeader() {
		time.Sleep(time.Millisecond)
	}
	replacement := start("new")
	for len(old.Members()) < 2 { // until they know each other
		time.Sleep(time.Millisecond)
	}
	if err := old.Transfer(context.Background(), 0, "new"); err != nil {
		log.Fatal(err)
	}
	for !replacement.IsLeader() { // its claim is in the log; its application is told a moment later
		time.Sleep(time.Millisecond)
	}
	fmt.Println("old leads:", old.IsLeader(), "new leads:", replacement.IsLeader())
	_ = old.Close()
	_ = replacement.Close()
	// Output:
	// old finishes its work: transferred
	// old leads: false new leads: true
	// new finishes its work: closing
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
