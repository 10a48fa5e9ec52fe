// Package world is what the page of demo-page shows: a Kafka in memory and five members of the unchanged library.
package world

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

const (
	topic = "demo.neli"
	hop   = 40 * time.Millisecond  // each way between a member and the log: seen in slow motion
	slow  = 500 * time.Millisecond // what a slow link adds to an append, and half of it to reading
	kept  = 300                    // records that stay in a log; a process that starts reads the newest 200
)

// World is a cluster and its members. Its methods may be called concurrently.
type World struct {
	broker *nelitest.Broker
	config neli.Config
	begun  time.Time
	viewer *neli.Neli // reads who holds what by the log; nil in non-exclusive mode, where the log does not say it

	mu    sync.Mutex
	state state
	next  []int64 // for each partition, the offset of the first record that State has not returned
}

// state is what there is to see. Times and ages are in seconds. News and Records are those since the state before.
type state struct {
	Now       float64
	Members   []*Member
	Standings []neli.Standing // who holds which role by the log; none in non-exclusive mode
	News      []News
	Records   []kafka.Record
}

// News is something that a person did to a member, or that its application was told.
type News struct {
	At     float64
	What   string // the action of Press, or acquired, revoked, fenced, closed, failed
	Member string
	Roles  []int
	Token  int64
	Why    string // the library's reason, or the error that ended a process
	Leads  bool   // of wake: a term has outlasted the suspension
}

// New makes a world in which three of the five members run. Leases are long enough for people to see.
func New(mode neli.Mode) (*World, error) {
	w := &World{begun: time.Now(), next: make([]int64, 1), broker: nelitest.NewBroker(nelitest.Options{AppendLatency: hop, AckLatency: hop,
		ReadLatency: hop, RequestLatency: hop, InitialRebalanceDelay: 500 * time.Millisecond, RebalanceTime: 300 * time.Millisecond})}
	w.config = neli.Config{LeaderGroupID: "demo", LeaderTopic: topic, Mode: mode, Roles: 4, HeartbeatTimeout: 4 * time.Second}
	if mode == neli.NonExclusive {
		w.config.Roles, w.config.Partitions, w.next = 3, 3, make([]int64, 3)
		w.config.HeartbeatTimeout, w.config.HeartbeatInterval = 10*time.Second, time.Second
		w.config.KafkaConfig = neli.KafkaConfigMap{"session.timeout.ms": 4000, "heartbeat.interval.ms": 500}
	} else {
		c := w.config
		c.Observer, c.Name, c.Provider = true, "viewer", w.broker.Provider("viewer")
		var err error
		if w.viewer, err = neli.New(c); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"anna", "boris", "clara", "dora", "emil"} {
		w.state.Members = append(w.state.Members, &Member{Name: name})
	}
	for _, m := range w.state.Members[:3] {
		if err := w.Press("start", m.Name); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Press does to a member what the button of that name says. It does nothing if the member is not in a state for it.
func (w *World) Press(action, name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := slices.IndexFunc(w.state.Members, func(m *Member) bool { return m.Name == name })
	if at < 0 {
		return fmt.Errorf("member %q: there is none of that name", name)
	}
	return w.act(w.state.Members[at], News{What: action, Member: name})
}

// State returns what there is to see now, as JSON.
func (w *World) State() ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.Now, w.state.Records = time.Since(w.begun).Seconds(), w.records()
	for _, m := range w.state.Members {
		w.look(m)
	}
	if w.viewer != nil {
		w.state.Standings = w.viewer.Standings()
	}
	text, err := json.Marshal(w.state)
	w.state.News = nil
	return text, err
}

// records returns the records that were not returned before, and deletes old ones.
func (w *World) records() (fresh []kafka.Record) {
	for p := range w.next {
		all := w.broker.Records(topic, p)
		for _, r := range all {
			if r.Offset >= w.next[p] {
				fresh = append(fresh, r)
				w.next[p] = r.Offset + 1
			}
		}
		if len(all) > 2*kept {
			_ = w.broker.DeleteHead(topic, p, w.next[p]-kept) // there is such a topic, since it has records
		}
	}
	return fresh
}

func (w *World) tell(n News) {
	n.At = time.Since(w.begun).Seconds()
	w.state.News = append(w.state.News, n)
}
