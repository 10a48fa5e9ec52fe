package peers

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/bench/member"
	"github.com/goneli/neli/lab/child"
	"github.com/goneli/neli/lab/kafkatest"
)

// Kafka is a cluster with stock settings.
type Kafka struct{ *kafkatest.Cluster }

// StartKafka starts brokers. kafkatest starts each in a session of its own.
func StartKafka(ctx context.Context, place Place, o kafkatest.Options) (Kafka, error) {
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

func kafkaBed() Bed {
	const brokers = 3
	bed := Bed{Name: "3 brokers", Family: "neli", Start: func(ctx context.Context, p Place) (Servers, error) {
		return StartKafka(ctx, p, kafkatest.Options{Brokers: brokers})
	}}
	const usual = 5 * time.Second
	for _, t := range []time.Duration{usual, 300 * time.Millisecond} {
		s := neliSystem(bed.Name, t)
		s.Idle = true
		if t == usual {
			s.Kinds = append(slices.Clone(common), Restart)
		}
		bed.Systems = append(bed.Systems, s)
	}
	bed.Systems = append(bed.Systems, watched(neliSystem(bed.Name, usual)))
	return bed
}

// neliSystem is this library with defaults for everything but T.
func neliSystem(bed string, t time.Duration) System {
	return System{Family: "neli", Bed: bed, Setting: fmt.Sprintf("Open, T = %v", t), Lease: t, Beat: t / 5, Settle: 300 * time.Millisecond, Kinds: common,
		Members: func(servers Servers, group string) Group {
			return plain{member.Params{Kind: member.Neli, Group: group, Servers: []string{servers.(Kafka).Bootstrap()}, Lease: t}}
		}}
}

// watched returns a system on Kafka with a sentinel beside the members of each group.
func watched(s System) System {
	s.Setting += ", sentinel"
	s.Sentinel, s.Kinds = true, []Kind{Kill}
	return s
}

// A Sentinel is a sentinel in a process of its own.
type Sentinel struct {
	*child.Process
	Socket string
}

// SentinelCommand is the subcommand that makes this program a sentinel.
const SentinelCommand = "sentinel"

// StartSentinel starts a sentinel for the cluster of the given member. Its socket is in a directory of the group.
func StartSentinel(place Place, of member.Params) (Sentinel, error) {
	s := Sentinel{Socket: filepath.Join(place.Dir, of.Group, "s")}
	of.Sentinel = s.Socket
	var err error
	s.Process, err = place.Child(SentinelCommand, of.Group+"-sentinel", of, nil)
	return s, err
}

// SentinelMain runs a sentinel until SIGKILL.
func SentinelMain() error {
	var of member.Params
	if _, err := child.Begin(&of); err != nil {
		return err
	}
	return neli.RunSentinel(context.Background(), neli.Config{Sentinel: of.Sentinel, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		KafkaConfig: neli.KafkaConfigMap{"bootstrap.servers": strings.Join(of.Servers, ",")}})
}
