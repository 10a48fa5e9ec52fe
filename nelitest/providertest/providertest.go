// Package providertest is the contract of [kafka.Provider] as tests: what any Kafka client must do so that
// leases can rely on it. Package nelitest runs it against itself, and the integration tests run it with
// each client against a real broker. Run it, too, if you write another provider.
//
//	func TestContract(t *testing.T) {
//		providertest.Run(t, func(t *testing.T, test func(*testing.T, providertest.Bed)) {
//			test(t, providertest.Bed{Provider: …, Properties: …, CreateTopic: …, …})
//		}, providertest.Without(providertest.Truncate, "the broker is somebody else's"))
//	}
//
// A test changes the cluster through the functions of its [Bed]. A harness that lacks a function passes
// [Without] and the reason, and [Run] logs what was not tested because of it. Tests that need a function
// that is missing without a reason fail.
//
// Upper bounds of times allow for a busy machine, so the contract says nothing about speed.
//
// [RunLogs] does the same for [kafka.LogSet], the small logs that replace Kafka.
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

// Bed gives one test access to a cluster. Tests assume nothing about the cluster but what they did to it
// themselves. Several beds may use the same cluster, one after the other, since the names of topics and
// groups are random. Each function returns when its effect is complete, and fails the test if it cannot do
// its work.
type Bed struct {
	// Provider makes the clients.
	Provider kafka.Provider
	// Properties are added to those of every client, for example the brokers' addresses.
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

	silent bool // clients are closed while no broker answers, so Close may return an error
}

// Ability is something that a harness may be able to do. It is the name of the field of Bed that does it.
type Ability string

// The abilities.
const (
	// DeleteTopic deletes a topic, so that no broker knows it.
	DeleteTopic Ability = "DeleteTopic"
	// DeleteHead deletes the records of a partition before offset start, as retention does.
	DeleteHead Ability = "DeleteHead"
	// Truncate deletes the records of a partition from offset end on, as an unclean leader election does.
	// Afterwards the leader epoch is another one.
	Truncate Ability = "Truncate"
	// Gap uses at least one offset at the end of a partition for an entry that no client sees, such as the
	// end of a transaction.
	Gap Ability = "Gap"
	// Freeze stops all answers of the cluster, on connections that stay open, until thaw is called. thaw may
	// be called twice.
	Freeze Ability = "Freeze"
	// Restrict returns a bed of the same cluster for clients that have these rights on the topic and the
	// group, the right to describe the topic, and no others.
	Restrict Ability = "Restrict"
	// Stranger returns a bed of the same cluster for clients whose credentials are refused.
	Stranger Ability = "Stranger"
	// Throttle returns a bed of the same cluster for clients whose producers exceed a quota with a few hundred
	// kilobytes.
	Throttle Ability = "Throttle"
	// BadSettings are settings of a topic that the broker refuses.
	BadSettings Ability = "BadSettings"
)

// Rights are the rights that Restrict grants.
type Rights struct{ ReadTopic, WriteTopic, ReadGroup bool }

// Harness calls test once with a bed for it, in whatever environment that needs, for example a bubble of
// testing/synctest.
type Harness func(t *testing.T, test func(t *testing.T, b Bed))

// Lack is an ability that a harness does not have.
type Lack struct {
	ability Ability
	why     string
}

// Without says that the harness lacks an ability, and why.
func Without(a Ability, why string) Lack { return Lack{a, why} }

// patience is the longest wait for anything.
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

// can returns the abilities of the bed.
func (b Bed) can() map[Ability]bool {
	return map[Ability]bool{
		DeleteTopic: b.DeleteTopic != nil, DeleteHead: b.DeleteHead != nil, Truncate: b.Truncate != nil, Gap: b.Gap != nil,
		Freeze: b.Freeze != nil, Restrict: b.Restrict != nil, Stranger: b.Stranger != nil, Throttle: b.Throttle != nil,
		BadSettings: b.BadSettings != nil,
	}
}
