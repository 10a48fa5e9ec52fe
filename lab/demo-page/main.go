//go:build js

// Command demo-page is the program of a page that shows and explains how leaders are elected: a Kafka in memory and five
// members of the unchanged library, compiled to WebAssembly. `make demo-page` writes the page, one file that a browser
// opens without a server.
package main

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"syscall/js"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

const (
	topic = "demo.neli"
	hop   = 40 * time.Millisecond  // each way between a member and the log: seen in slow motion
	slow  = 500 * time.Millisecond // what a slow link adds to an append, and half of it to reading
	kept  = 300                    // records that at least stay in a log; a process that starts reads the newest 200
)

// main gives the page a world: press(action, member), which reports whether it did something, and state(), which
// returns JSON.
func main() {
	w := newWorld(os.Args[1] == neli.NonExclusive.String())
	js.Global().Set("world", map[string]any{
		"press": js.FuncOf(func(_ js.Value, args []js.Value) any { return w.press(args[0].String(), args[1].Int()) }),
		"state": js.FuncOf(func(js.Value, []js.Value) any { return w.look() }),
	})
	select {}
}

// world is a cluster and its members. Exported fields are what there is to see.
type world struct {
	Members   []*member
	Standings []neli.Standing // who holds which role by the log; none in non-exclusive mode, where the log does not say it
	News      []news          // since the last look
	Records   []kafka.Record  // since the last look

	broker *nelitest.Broker
	config neli.Config
	viewer *neli.Neli // knows the Standings
	next   []int64    // for each partition, the offset of the first record after the last look

	mu sync.Mutex
}

// member is one run of a member, or the time before the next one. Its link may be cut or slow even while it does not run.
type member struct {
	Name                                string
	Runs, Suspended, Closing, Cut, Slow bool
	Leads                               map[int]lead // by its own clock, by role
	Assigned                            []int        // partitions that the group has assigned to it

	at    int // its place in world.Members
	neli  *neli.Neli
	terms map[int]neli.Leadership // the newest, by role
}

// lead is a role that a member leads: its token, and for how many seconds without new evidence.
type lead struct {
	Token int64
	Left  float64
}

// news is what the application of a member was told, or the error with which the member has ended.
type news struct {
	Member, What string
	Event        neli.Event // nil: it has ended
}

// newWorld makes a world in which no member runs. Leases are long enough for people to see.
func newWorld(nonExclusive bool) *world {
	w := &world{next: make([]int64, 1), broker: nelitest.NewBroker(nelitest.Options{AppendLatency: hop, AckLatency: hop,
		ReadLatency: hop, RequestLatency: hop, InitialRebalanceDelay: 500 * time.Millisecond, RebalanceTime: 300 * time.Millisecond})}
	w.config = neli.Config{LeaderGroupID: "demo", LeaderTopic: topic, Roles: 4, HeartbeatTimeout: 4 * time.Second}
	for i, name := range []string{"anna", "boris", "clara", "dora", "emil"} {
		w.Members = append(w.Members, &member{Name: name, at: i})
	}
	if nonExclusive {
		w.config.Mode, w.config.Roles, w.config.Partitions, w.next = neli.NonExclusive, 3, 3, make([]int64, 3)
		w.config.HeartbeatTimeout, w.config.HeartbeatInterval = 10*time.Second, time.Second
		w.config.KafkaConfig = neli.KafkaConfigMap{"session.timeout.ms": 4000, "heartbeat.interval.ms": 500}
	} else {
		w.viewer = w.start("viewer", true, nil)
	}
	return w
}

func (w *world) start(name string, observer bool, barrier neli.Barrier) *neli.Neli {
	c := w.config
	c.Name, c.Provider, c.Observer = name, w.broker.Provider(name), observer
	n, err := neli.New(c, barrier)
	if err != nil {
		panic(err)
	}
	return n
}

// press does to a member what a button says. It reports whether the member was in a state for that.
func (w *world) press(action string, at int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.Members[at]
	switch awake := m.Runs && !m.Suspended && !m.Closing; {
	case action == "start" && !m.Runs:
		m.Runs, m.terms = true, map[int]neli.Leadership{}
		m.neli = w.start(m.Name, false, func(e neli.Event) { w.tell(m, e.String(), e) })
		go w.live(m)
	case action == "kill" && m.Runs:
		w.broker.Kill(m.Name)
		w.over(m)
		go m.neli.Close() //nolint:errcheck // the process is dead: this ends its goroutines
	case action == "close" && awake:
		m.Closing = true
		go m.neli.Close() //nolint:errcheck // live reports it
	case action == "suspend" && awake:
		m.Suspended = true
		w.broker.Freeze(m.Name)
	case action == "wake" && m.Suspended:
		m.Suspended = false
		w.broker.Resume(m.Name)
	case action == "cut" && !m.Cut:
		m.Cut = true
		w.broker.CutOff(m.Name, nelitest.LinkAll)
	case action == "mend" && m.Cut:
		m.Cut = false
		w.broker.Restore(m.Name, nelitest.LinkAll)
	case action == "slow" && !m.Slow, action == "fast" && m.Slow:
		m.Slow = !m.Slow
		lag := map[bool]time.Duration{true: slow}[m.Slow]
		w.broker.Delay(m.Name, lag)
		w.broker.SlowReads(m.Name, lag/2)
	default:
		return false
	}
	return true
}

// live is the program of a member. Lead returns when the member is closed or fails.
func (w *world) live(m *member) {
	_ = m.neli.Lead(context.Background(), func(ctx context.Context, l neli.Leadership) error {
		w.mu.Lock()
		m.terms[l.Role] = l
		w.mu.Unlock()
		<-ctx.Done()
		return nil
	})
	_ = m.neli.Close()
	why := ""
	if err := m.neli.Await(); err != nil {
		why = err.Error()
	}
	w.tell(m, why, nil)
}

// tell adds to the news, unless the member was killed: then it is told nothing.
func (w *world) tell(m *member, what string, e neli.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Members[m.at] == m {
		w.News = append(w.News, news{m.Name, what, e})
		if e == nil {
			w.over(m)
		}
	}
}

// over ends a run of a member.
func (w *world) over(m *member) {
	w.Members[m.at] = &member{Name: m.Name, at: m.at, Cut: m.Cut, Slow: m.Slow}
}

// look returns what there is to see now, as JSON. It deletes old records.
func (w *world) look() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.Members {
		m.Leads, m.Assigned = map[int]lead{}, w.broker.Assigned(m.Name)
		for role := range w.config.Roles {
			if m.Runs && !m.Suspended && m.neli.IsLeaderOf(role) { // while it is suspended it does nothing as a leader
				token, _ := m.neli.Token(role)
				m.Leads[role] = lead{token, m.terms[role].Remaining().Seconds()}
			}
		}
	}
	if w.viewer != nil {
		w.Standings = w.viewer.Standings()
	}
	for p := range w.next {
		all := w.broker.Records(topic, p)
		for _, r := range all {
			if r.Offset >= w.next[p] {
				w.Records, w.next[p] = append(w.Records, r), r.Offset+1
			}
		}
		if len(all) > 2*kept {
			_ = w.broker.DeleteHead(topic, p, w.next[p]-kept) // there is such a topic, since it has records
		}
	}
	text, err := json.Marshal(w)
	if err != nil {
		panic(err)
	}
	w.News, w.Records = nil, nil
	return string(text)
}
