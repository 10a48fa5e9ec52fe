package peers

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/goneli/neli/bench/member"
	"github.com/goneli/neli/testkit/kafkatest"
)

// Kafka is a cluster with stock settings.
type Kafka struct{ *kafkatest.Cluster }

// StartKafka starts brokers. They are started by kafkatest, in sessions of their own too.
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

// Pids are those of the JVMs.
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
	many := []int{Size}
	if brokers > 1 {
		many = []int{Size, 30}
	}
	assigned.Idle = many
	bed.Systems = append(bed.Systems, assigned)
	for _, t := range []time.Duration{5 * time.Second, 2 * time.Second, time.Second, 500 * time.Millisecond, 300 * time.Millisecond} {
		s := NeliSystem(name, false, t)
		switch t {
		case 5 * time.Second:
			s.Idle = []int{Size}
		case 300 * time.Millisecond:
			s.Idle = many
		}
		bed.Systems = append(bed.Systems, s)
	}
	return bed
}

// session is the session timeout of the library's groups by default, which is what
// makes up the fail-over time of Assigned.
const session = 6 * time.Second

// NeliSystem is this library. Everything but T is as by default.
func NeliSystem(bed string, assigned bool, t time.Duration) System {
	s := System{Family: "neli", Bed: bed, Setting: fmt.Sprintf("Open, T = %v", t), Lease: t, Beat: t / 5, Settle: 300 * time.Millisecond, Timed: !assigned}
	if assigned {
		s.Setting = fmt.Sprintf("Assigned, T = %v, session 6 s", t)
		// The group's heartbeat is 3 s; a joined member that was given its share has seen
		// the rebalance.
		s.Lease, s.Beat, s.Settle = max(t, session), 3*time.Second, 1500*time.Millisecond
	}
	s.Members = func(servers Servers, group string) Group {
		return plain{member.Params{Kind: member.Neli, Group: group, Servers: []string{servers.(Kafka).Bootstrap()}, Lease: t, Assigned: assigned}}
	}
	return s
}
