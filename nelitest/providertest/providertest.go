// Package providertest is the contract of [kafka.Provider] as tests: what any Kafka
// client must do so that leases can rest on it. Package nelitest runs it against
// itself, the integration tests run it with each client against a real broker; who
// writes another provider should run it, too.
//
//	func TestContract(t *testing.T) {
//		providertest.Run(t, func(t *testing.T, test func(*testing.T, providertest.Bed)) {
//			test(t, providertest.Bed{Provider: …, Properties: …, CreateTopic: …, …})
//		}, providertest.Without(providertest.Truncate, "the broker is somebody else's"))
//	}
//
// What a test does to the cluster it does by functions of its [Bed]. A harness that
// lacks one says so, with the reason, and [Run] logs what was not tested for it; one
// that is missing and not excused fails the tests that need it.
//
// Times are bounded from above by what a busy machine needs, so the contract says
// nothing of speed.
//
// [RunLogs] is the same for [kafka.LogSet], the small logs that take Kafka's place.
package providertest

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/kafka"
)

// Bed is what one test stands on: a cluster of which nothing else is known than
// what the test does to it. Several may share a cluster, one after the other: names of
// topics and groups are random. All functions return when what they do has happened, and
// fail the test if they cannot do it.
type Bed struct {
	// Provider makes the clients.
	Provider kafka.Provider
	// Properties are added to those of every client: where the brokers are, for
	// instance.
	Properties map[string]string
	// CreateTopic creates a topic that can be used at once. It must not be nil.
	CreateTopic func(t *testing.T, topic string, partitions int)

	DeleteTopic func(t *testing.T, topic string)                             // see [DeleteTopic]
	DeleteHead  func(t *testing.T, topic string, partition int, start int64) // see [DeleteHead]
	Truncate    func(t *testing.T, topic string, partition int, end int64)   // see [Truncate]
	Gap         func(t *testing.T, topic string, partition int)              // see [Gap]
	Freeze      func(t *testing.T) (thaw func())                             // see [Freeze]
	Restrict    func(t *testing.T, topic, group string, rights Rights) Bed   // see [Restrict]
	Stranger    func(t *testing.T) Bed                                       // see [Stranger]
	Throttle    func(t *testing.T) Bed                                       // see [Throttle]
	BadSettings map[string]string                                            // see [BadSettings]

	silent bool // clients are closed while no broker answers, and may say so
}

// Ability is something that a harness may be able to do, by the field of Bed that does it.
type Ability string

// The abilities.
const (
	// DeleteTopic deletes a topic: no broker knows it any more.
	DeleteTopic Ability = "DeleteTopic"
	// DeleteHead deletes the records of a partition before offset start, as retention does.
	DeleteHead Ability = "DeleteHead"
	// Truncate deletes the records of a partition from offset end on, as an unclean
	// leader election does: the leader epoch is another one afterwards.
	Truncate Ability = "Truncate"
	// Gap takes at least one offset at the end of a partition for what no client is
	// shown, such as the end of a transaction.
	Gap Ability = "Gap"
	// Freeze makes the cluster answer nothing more, on connections that stay, until thaw
	// is called; thaw may be called twice.
	Freeze Ability = "Freeze"
	// Restrict makes a bed of the same cluster for clients that have these rights on the
	// topic and the group, that of describing the topic, and no other.
	Restrict Ability = "Restrict"
	// Stranger makes a bed of the same cluster for clients whose credentials are refused.
	Stranger Ability = "Stranger"
	// Throttle makes a bed of the same cluster for clients whose producers exceed a quota
	// with a few hundred kilobytes.
	Throttle Ability = "Throttle"
	// BadSettings are settings of a topic that the broker refuses.
	BadSettings Ability = "BadSettings"
)

// Rights are what Restrict leaves.
type Rights struct{ ReadTopic, WriteTopic, ReadGroup bool }

// Harness calls test once with a bed for it, in whatever surroundings that needs: a
// bubble of testing/synctest, for instance.
type Harness func(t *testing.T, test func(t *testing.T, b Bed))

// Lack is an ability that a harness does not have.
type Lack struct {
	ability Ability
	why     string
}

// Without says that the harness lacks an ability, and why.
func Without(a Ability, why string) Lack { return Lack{a, why} }

// patience bounds what is waited for.
const patience = time.Minute

// point is one point of the contract.
type point struct {
	name  string
	needs Ability // "": none
	test  func(t *testing.T, b Bed)
}

var contract = slices.Concat(logPoints, producerPoints, adminPoints, groupPoints, accessPoints)

// Run tests the contract, each point of it as a subtest.
func Run(t *testing.T, h Harness, without ...Lack) {
	lacks := map[Ability]Lack{}
	for _, l := range without {
		require.NotEmpty(t, l.why, "the harness lacks %s, and does not say why", l.ability)
		lacks[l.ability] = l
	}
	missed := map[Ability][]string{}
	for _, p := range contract {
		if _, lacking := lacks[p.needs]; lacking {
			missed[p.needs] = append(missed[p.needs], p.name)
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			h(t, func(t *testing.T, b Bed) {
				can := b.can()
				require.True(t, p.needs == "" || can[p.needs], "Bed.%s is nil, and Run was not told why", p.needs)
				for a := range lacks {
					require.False(t, can[a], "Bed.%s is there, and Run was told that it is not", a)
				}
				p.test(t, b)
			})
		})
	}
	for _, a := range slices.Sorted(maps.Keys(lacks)) {
		require.NotEmpty(t, missed[a], "%s is no ability that anything needs", a)
		t.Logf("not tested without %s (%s): %s", a, lacks[a].why, strings.Join(missed[a], "; "))
	}
}

// can tells what the bed can do.
func (b Bed) can() map[Ability]bool {
	return map[Ability]bool{
		DeleteTopic: b.DeleteTopic != nil, DeleteHead: b.DeleteHead != nil, Truncate: b.Truncate != nil, Gap: b.Gap != nil,
		Freeze: b.Freeze != nil, Restrict: b.Restrict != nil, Stranger: b.Stranger != nil, Throttle: b.Throttle != nil,
		BadSettings: b.BadSettings != nil,
	}
}
