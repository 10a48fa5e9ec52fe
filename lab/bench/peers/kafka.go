package peers

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/goneli/neli/lab/bench/member"
	"github.com/goneli/neli/lab/kafkatest"
)

// Kafka is a cluster with stock settings.
type Kafka struct{ *kafkatest.Cluster }

// StartKafka starts brokers. kafkatest starts each in a session of its own.
func StartKafka(ctx context.Context, place Place, brokers int) (Kafka, error) {
	return StartKafkaWith(ctx, place, kafkatest.Options{Brokers: brokers})
}

// StartKafkaWith is StartKafka with other options.
func StartKafkaWith(ctx context.Context, place Place, o kafkatest.Options) (Kafka, error) {
	dir, err := os.MkdirTemp(place.Dir, "kafka-")
	if err != nil {
		return Kafka{}, err
	}
	o.Dir = dir
	cluster, err := kafkatest.Start(ctx, o)
	return Kafka{cluster}, err
}

// Pids returns the processes of the JVMs.
func (k Kafka) Pids() []int {
	var pids []int
	for _, b := range k.Brokers() {
		pids = append(pids, b.Pid())
	}
	return pids
}

// Version of the brokers.
func (k Kafka) Version() string { return "Apache Kafka " + kafkatest.KafkaVersion }

func kafkaBed(brokers int) Bed {
	name := "1 broker"
	if brokers > 1 {
		name = fmt.Sprintf("%d brokers", brokers)
	}
	bed := Bed{Name: name, Family: "neli", Start: func(ctx context.Context, p Place) (Servers, error) {
		return StartKafka(ctx, p, brokers)
	}}
	assigned := NeliSystem(name, true, 5*time.Second)
	assigned.Idle = many(brokers)
	bed.Systems = append(bed.Systems, assigned)
	for _, t := range []time.Duration{5 * time.Second, 2 * time.Second, time.Second, 500 * time.Millisecond, 300 * time.Millisecond} {
		s := NeliSystem(name, false, t)
		switch t {
		case 5 * time.Second:
			s.Idle = []int{Size}
			s.Kinds = append(slices.Clone(common), Restart)
		case time.Second, 300 * time.Millisecond:
			s.Idle = many(brokers)
		}
		bed.Systems = append(bed.Systems, s)
	}
	bed.Systems = append(bed.Systems, manyRoles(name, 5*time.Second))
	bare := manyRoles(name, time.Second) // to compare it with the same system beside a sentinel
	bare.Idle, bare.Kinds = nil, []Kind{Kill}
	bed.Systems = append(bed.Systems, bare)
	bed.Systems = append(bed.Systems, sentinelSystems(name, brokers)...)
	return bed
}

// many adds groups of thirty members for clusters of several brokers, such as production has.
func many(brokers int) []int {
	if brokers > 1 {
		return []int{Size, 30}
	}
	return []int{Size}
}

// Roles is the number of roles in the trials of many roles.
const Roles = 1000

// manyRoles has one member lead all roles: the member that started first is preferred, so that all
// roles move together.
func manyRoles(bed string, t time.Duration) System {
	s := NeliSystem(bed, false, t)
	s.Setting += fmt.Sprintf(", %d roles", Roles)
	s.Roles, s.Idle, s.Kinds = Roles, []int{Size}, []Kind{Kill, Hand, Join, Restart}
	members := s.Members
	s.Members = func(servers Servers, group string) Group {
		g := members(servers, group).(plain)
		g.params.Roles = Roles
		return ranked{g}
	}
	return s
}

// ranked is a group that prefers the member that started first.
type ranked struct{ plain }

func (g ranked) Params(seat, incarnation int) (member.Params, error) {
	p, err := g.plain.Params(seat, incarnation)
	p.Priority = -incarnation
	return p, err
}

// LogsSystem is this library on several logs of one replica, each on a broker of its own.
func LogsSystem(bed string, logs int, t time.Duration) System {
	s := NeliSystem(bed, false, t)
	s.Setting += fmt.Sprintf(", Logs: %d", logs)
	members := s.Members
	s.Members = func(servers Servers, group string) Group {
		g := members(servers, group).(plain)
		g.params.Logs = logs
		return g
	}
	return s
}

// session is the library's default session timeout of groups, which determines the fail-over time
// with Assigned nomination.
const session = 6 * time.Second

// NeliSystem is this library with defaults for everything but T.
func NeliSystem(bed string, assigned bool, t time.Duration) System {
	s := System{Family: "neli", Bed: bed, Setting: fmt.Sprintf("Open, T = %v", t), Lease: t, Beat: t / 5, Settle: 300 * time.Millisecond, Timed: !assigned, Kinds: common}
	if assigned {
		s.Setting = fmt.Sprintf("Assigned, T = %v, session 6 s", t)
		// The group's heartbeat is 3 s. A member that has joined and received its share has seen
		// the rebalance.
		s.Lease, s.Beat, s.Settle = max(t, session), 3*time.Second, 1500*time.Millisecond
	}
	s.Members = func(servers Servers, group string) Group {
		return plain{member.Params{Kind: member.Neli, Group: group, Servers: []string{servers.(Kafka).Bootstrap()}, Lease: t, Assigned: assigned}}
	}
	return s
}
