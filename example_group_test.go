package neli_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// leader starts a process, and returns when the process leads its group.
func leader(broker *nelitest.Broker, name string) *neli.Neli {
	n, err := neli.New(neli.Config{LeaderGroupID: "ledger", Name: name, Provider: broker.Provider(name), HeartbeatTimeout: 2 * time.Second,
		DrainTimeout: 100 * time.Millisecond, Requests: func(neli.Request) error { return nil }})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := n.Pulse(time.Minute); err != nil {
		log.Fatal(err)
	}
	return n
}

// Check before each write where Lead and Background do not fit. Pass the token along with the
// write, which may arrive late.
func ExampleNeli_IsLeaderOf() {
	n := leader(nelitest.NewBroker(nelitest.Options{}), "anna")
	const role = 0
	if n.IsLeaderOf(role) {
		token, ok := n.Token(role)
		fmt.Println("write, with a token:", ok && token >= 0)
	}
	_ = n.Close()
	fmt.Println("leads:", n.IsLeaderOf(role))
	// Output:
	// write, with a token: true
	// leads: false
}

// Before work that must end within the term, ask how long the term still lasts if no further evidence arrives.
func ExampleLeadership_Remaining() {
	n := leader(nelitest.NewBroker(nelitest.Options{}), "anna")
	defer n.Close()
	ctx, stop := context.WithCancel(context.Background())
	_ = n.Lead(ctx, func(_ context.Context, l neli.Leadership) error {
		defer stop()
		if l.Valid() && l.Remaining() > 100*time.Millisecond {
			fmt.Println("there is time for a call")
		}
		return nil
	})
	// Output: there is time for a call
}

// A page or a log can show who leads each role, which members there are, and the counters.
func ExampleNeli_Standings() {
	n := leader(nelitest.NewBroker(nelitest.Options{}), "anna")
	defer n.Close()
	for _, s := range n.Standings() {
		for role := range s.Roles() {
			fmt.Println("role", role, s.Status, "by", s.Holder.Name)
		}
	}
	for _, m := range n.Members() {
		fmt.Println("member", m.Name, "nominated:", m.Nominated)
	}
	fmt.Println("terms:", n.Stats().TermsStarted)
	// Output:
	// role 0 held by anna
	// member anna nominated: true
	// terms: 1
}

// Before its machine is shut down, a process gives up all that it leads, and claims nothing for a while.
func ExampleNeli_StepDown() {
	n := leader(nelitest.NewBroker(nelitest.Options{}), "anna")
	defer n.Close()
	fmt.Println("error:", n.StepDown(context.Background()))
	fmt.Println("leads:", n.IsLeader())
	// Output:
	// error: <nil>
	// leads: false
}

// An operator's tool, which only observes, asks whoever leads role 0 to step down. The leader's
// Config.Requests decides.
func ExampleNeli_Ask() {
	broker := nelitest.NewBroker(nelitest.Options{})
	n := leader(broker, "anna")
	defer n.Close()
	tool, err := neli.New(neli.Config{LeaderGroupID: "ledger", Observer: true, Provider: broker.Provider("tool"), HeartbeatTimeout: 2 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer tool.Close()
	for s := range tool.Watch(context.Background()) {
		if s.Status == neli.StatusHeld {
			break // the holder is known
		}
	}
	fmt.Println("error:", tool.Ask(context.Background(), neli.Request{Role: 0, StepDown: true}))
	fmt.Println("leads:", n.IsLeader())
	// Output:
	// error: <nil>
	// leads: false
}

// Check between two steps of a loop. The check only reads the clock, so it costs next to nothing.
func ExampleNeli_IsLeader() {
	n := leader(nelitest.NewBroker(nelitest.Options{}), "anna")
	fmt.Println("leads:", n.IsLeader())
	_ = n.Close()
	fmt.Println("leads:", n.IsLeader())
	// Output:
	// leads: true
	// leads: false
}

// Valid reports whether the term still lasts, for code that has a Leadership but no Neli.
func ExampleLeadership_Valid() {
	n, err := neli.New(neli.Config{LeaderGroupID: "ledger", Provider: nelitest.NewBroker(nelitest.Options{}).Provider("a"),
		HeartbeatTimeout: 2 * time.Second})
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

// Close hands leadership over. What the program does after it is no longer a leader's work.
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

// Members are the processes that were heard lately, including this one.
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
