// Package providertest is the contract of [neli.Provider] as tests: what any Kafka
// client must do so that leases can rest on it. Package nelitest runs it against
// itself, the integration tests run it with confluent-kafka-go against a real
// broker; who writes another provider should run it, too.
//
//	func TestContract(t *testing.T) {
//		providertest.Run(t, func(t *testing.T, test func(*testing.T, providertest.Bed)) {
//			test(t, providertest.Bed{Provider: …, Properties: …, CreateTopic: …, DeleteHead: …})
//		})
//	}
//
// It is about clients that work: what becomes of them when brokers fail is another
// matter, and told of in [neli.Producer], [neli.LogReader], [neli.GroupConsumer] and
// [neli.Admin]. Times are bounded from above by what a busy machine needs, so it
// says nothing of speed.
package providertest

import (
	"testing"
	"time"

	"github.com/goneli/neli"
)

// Bed is what one test stands on: a cluster of which nothing else is known than
// what the test does to it. Several may share a cluster: names of topics and groups
// are random.
type Bed struct {
	// Provider makes the clients.
	Provider neli.Provider
	// Properties are added to those of every client: where the brokers are, for
	// instance.
	Properties map[string]string
	// CreateTopic creates a topic, and returns when it can be used.
	CreateTopic func(t *testing.T, topic string, partitions int)
	// DeleteHead deletes the records of a partition before an offset.
	DeleteHead func(t *testing.T, topic string, partition int, before int64)
}

// Harness calls test once with a bed for it, in whatever surroundings that needs: a
// bubble of testing/synctest, for instance.
type Harness func(t *testing.T, test func(t *testing.T, b Bed))

// patience bounds what is waited for.
const patience = time.Minute

var contract = []struct {
	name string
	test func(t *testing.T, b Bed)
}{
	{"records come in order, each once", inOrder},
	{"assign starts at explicit offsets", explicitOffsets},
	{"a value is the caller's again after Append", valueCopied},
	{"positions outside the log are out of range", outOfRange},
	{"a position before the log's start is out of range", headDeleted},
	{"an unknown topic is reported", unknownTopic},
	{"Poll returns early when a record comes", pollEarly},
	{"Poll times out", pollTimeout},
	{"reports come from elsewhere, once", reportsElsewhere},
	{"Close reports everything", closeReports},
	{"Purge reports everything", purgeReports},
	{"closed clients refuse", closedRefuse},
	{"topics are described", topicsDescribed},
	{"admin calls end with their context", adminContext},
	{"a group assigns everything, evenly: cooperative", assignsEvenly("cooperative-sticky")},
	{"a group assigns everything, evenly: range", assignsEvenly("range")},
	{"a leaver's partitions go to others", leaverReplaced},
	{"a member can join again", joinsAgain},
	{"a member reads from the end", groupReads},
	{"a group needs an id", groupNeedsID},
}

// Run tests the contract, each point of it as a subtest.
func Run(t *testing.T, h Harness) {
	for _, c := range contract {
		t.Run(c.name, func(t *testing.T) { h(t, c.test) })
	}
}
