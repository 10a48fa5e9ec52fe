package crowd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/goneli/neli"
)

// Command is the subcommand that makes this program a process with several members.
const Command = "crowd"

// Params are what such a process is told, one line of JSON.
type Params struct {
	Servers    string
	Group      string
	Name       string
	Members    int
	Partitions int
	Roles      int
	T          time.Duration
}

// Line is what it says again and again.
type Line struct {
	Led  [][]int // partitions, by member
	Lost int     // terms that ended otherwise than in good order, so far
}

// say is how often.
const say = 200 * time.Millisecond

// Main is the life of a process, which ends with its parent's.
func Main() error {
	var p Params
	if err := json.NewDecoder(os.Stdin).Decode(&p); err != nil {
		return fmt.Errorf("reading parameters: %w", err)
	}
	var lost atomic.Int64
	members := make([]*neli.Neli, p.Members)
	for i := range members {
		n, err := neli.New(neli.Config{
			KafkaConfig:      patientClient(p.Servers),
			LeaderGroupID:    p.Group,
			Name:             fmt.Sprintf("%s.%d", p.Name, i),
			Partitions:       p.Partitions,
			Roles:            p.Roles,
			HeartbeatTimeout: p.T,
			Logger:           slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		}, func(e neli.Event) {
			if f, ok := e.(neli.LeaderFenced); ok {
				lost.Add(int64(len(f.Terms)))
			}
		})
		if err != nil {
			return err
		}
		members[i] = n
		go drive(n)
	}
	go tell(members, p.Partitions, &lost)
	_, err := io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, errors.New("the parent is gone"))
}

// patientClient has longer timeouts than the library's, which suit brokers that may
// be gone: a broker with more clients than cores is slow to answer, and clients that
// connect and ask again each second would keep it so.
func patientClient(servers string) neli.KafkaConfigMap {
	return neli.KafkaConfigMap{
		"bootstrap.servers":                       servers,
		"socket.connection.setup.timeout.ms":      30_000,
		"socket.timeout.ms":                       30_000,
		"request.timeout.ms":                      30_000,
		"reconnect.backoff.max.ms":                10_000,
		"retry.backoff.max.ms":                    1_000,
		"topic.metadata.refresh.interval.ms":      60_000,
		"topic.metadata.refresh.fast.interval.ms": 1_000,
		// Every fetch names every partition, and the broker looks at each of them: fetches
		// are to be few, and wait for more than the first record.
		"fetch.wait.max.ms": 1_500,
		"fetch.min.bytes":   100_000,
	}
}

// drive pulses ten times a second, which is when events are delivered.
func drive(n *neli.Neli) {
	tick := time.NewTicker(say / 2)
	defer tick.Stop()
	for range tick.C {
		if _, err := n.Pulse(0); err != nil {
			fmt.Fprintln(os.Stderr, "Pulse:", err)
			os.Exit(1)
		}
	}
}

func tell(members []*neli.Neli, partitions int, lost *atomic.Int64) {
	out := json.NewEncoder(os.Stdout)
	tick := time.NewTicker(say)
	defer tick.Stop()
	for range tick.C {
		l := Line{Led: make([][]int, len(members)), Lost: int(lost.Load())}
		for i, n := range members {
			for p := range partitions {
				if n.IsLeaderOf(p) {
					l.Led[i] = append(l.Led[i], p)
				}
			}
		}
		if err := out.Encode(l); err != nil {
			os.Exit(1)
		}
	}
}
