package nelitest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// This file shows how to test code that depends on leadership, without Kafka and in simulated time: the
// minutes below take milliseconds.

// janitor is the code under test. It cleans up as long as it leads.
type janitor struct {
	name string
	log  *journal
}

// clean is a function for Lead. It waits for the end of its context.
func (j janitor) clean(ctx context.Context, _ neli.Leadership) error {
	j.log.note(j.name + " begins")
	<-ctx.Done()
	if errors.Is(context.Cause(ctx), neli.ErrFenced) {
		j.log.note(j.name + " stops at once")
		return nil
	}
	time.Sleep(2 * time.Second) // puts the tools away
	j.log.note(j.name + " has finished")
	return nil
}

// sweep is another function for Lead. It checks its lease before each piece of work.
func (j janitor) sweep(ctx context.Context, _ neli.Leadership) error {
	for ctx.Err() == nil {
		j.log.note(j.name + " sweeps")
		time.Sleep(10 * time.Second)
	}
	return nil
}

// journal records what happened, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) note(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

// expect checks what was noted since the last call.
func (j *journal) expect(t *testing.T, lines ...string) {
	t.Helper()
	synctest.Wait() // until everything that can happen at this instant has happened
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.Equal(j.lines, lines) {
		t.Fatalf("noted %q, want %q", j.lines, lines)
	}
	j.lines = nil
}

// hire starts a janitor whose clients of b belong to its name.
func hire(t *testing.T, b *nelitest.Broker, name string, work func(context.Context, neli.Leadership) error) *neli.Neli {
	t.Helper()
	n, err := neli.New(neli.Config{
		LeaderGroupID: "janitors",
		Name:          name,
		Provider:      b.Provider(name),
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- n.Lead(context.Background(), work) }()
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, neli.ErrClosed) {
			t.Error(err)
		}
	})
	return n
}

// inPractice runs a test in a bubble of simulated time, with alice at work and bob standing by.
func inPractice(t *testing.T, test func(t *testing.T, b *nelitest.Broker, alice, bob *neli.Neli, log *journal)) {
	synctest.Test(t, func(t *testing.T) {
		b, log := nelitest.NewBroker(nelitest.Options{}), &journal{}
		alice := hire(t, b, "alice", janitor{"alice", log}.clean)
		time.Sleep(time.Minute)
		log.expect(t, "alice begins")
		bob := hire(t, b, "bob", janitor{"bob", log}.clean)
		time.Sleep(time.Minute)
		log.expect(t)
		test(t, b, alice, bob, log)
	})
}

func TestALeaderThatIsCutOffStopsBeforeTheNextBegins(t *testing.T) {
	inPractice(t, func(t *testing.T, b *nelitest.Broker, alice, bob *neli.Neli, log *journal) {
		b.CutOff("alice", nelitest.LinkAll)
		time.Sleep(5 * time.Second) // T: the lease is over
		if alice.IsLeader() {
			t.Fatal("alice still leads")
		}
		time.Sleep(time.Minute)
		log.expect(t, "alice stops at once", "bob begins")
		if !bob.IsLeader() {
			t.Fatal("bob does not lead")
		}
		b.Restore("alice", nelitest.LinkAll)
		time.Sleep(time.Minute)
		log.expect(t) // a member that comes back does not disturb the leader
	})
}

func TestALeaderThatIsToStepDownFinishesFirst(t *testing.T) {
	inPractice(t, func(t *testing.T, _ *nelitest.Broker, alice, _ *neli.Neli, log *journal) {
		if err := alice.StepDown(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		log.expect(t, "alice has finished", "bob begins")
	})
}

func TestAShortFailureOfTheBrokerEndsNoTerm(t *testing.T) {
	inPractice(t, func(t *testing.T, b *nelitest.Broker, alice, _ *neli.Neli, log *journal) {
		b.Stop()
		time.Sleep(3 * time.Second) // less than T minus a beat
		b.Start()
		time.Sleep(time.Minute)
		log.expect(t)
		if !alice.IsLeader() {
			t.Fatal("alice has lost the role")
		}
	})
}

func TestALeaderThatWakesDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, log := nelitest.NewBroker(nelitest.Options{}), &journal{}
		hire(t, b, "alice", janitor{"alice", log}.sweep)
		time.Sleep(5 * time.Second)
		log.expect(t, "alice sweeps")
		hire(t, b, "bob", janitor{"bob", log}.sweep)
		b.Freeze("alice") // from now on she acts as a process that has just woken
		time.Sleep(10 * time.Second)
		log.expect(t, "bob sweeps")
		b.Resume("alice")
		time.Sleep(9 * time.Second)
		log.expect(t, "bob sweeps")
	})
}
