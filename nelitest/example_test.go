package nelitest_test

import (
	"fmt"
	"log"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// Two members contend, and the leader is cut off from the broker. user_test.go in this directory has the
// same as a test in simulated time.
func Example() {
	b := nelitest.NewBroker(nelitest.Options{})
	defer b.Close()
	member := func(name string) *neli.Neli {
		n, err := neli.New(neli.Config{
			LeaderGroupID:    "janitors",
			Name:             name,
			Nomination:       neli.NominationOpen,
			HeartbeatTimeout: 2 * time.Second,
			Provider:         b.Provider(name),
		}, func(e neli.Event) {
			switch e := e.(type) {
			case neli.LeaderAcquired:
				fmt.Println(name, "leads")
			case neli.LeaderRevoked, neli.LeaderFenced:
				fmt.Println(name, "leads no more")
			default:
				log.Fatal(e)
			}
		})
		if err != nil {
			log.Fatal(err)
		}
		return n
	}
	pulse := func(n *neli.Neli, timeout time.Duration) {
		if _, err := n.Pulse(timeout); err != nil {
			log.Fatal(err)
		}
	}
	alice, bob := member("alice"), member("bob")
	defer bob.Close()
	defer alice.Close()

	pulse(alice, time.Minute) // contends from now on, and waits until it leads
	b.CutOff("alice", nelitest.LinkAll)
	for range time.Tick(time.Millisecond) {
		if !alice.IsLeader() { // a look at the clock: needs neither broker nor Pulse
			break
		}
	}
	pulse(alice, 10*time.Millisecond) // delivers what has happened
	pulse(bob, time.Minute)
	b.Restore("alice", nelitest.LinkAll)
	// Output:
	// alice leads
	// alice leads no more
	// bob leads
	// bob leads no more
}
