package sim

import (
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
)

// The witness is an observer in the world. No fault strikes it, so each of its reports must be true:
// the reported process held the role at the time of a record that the witness read as long ago as it
// says. It must learn who leads, and it must write nothing but requests (asks.go).

// simDelivery is longer than a record takes to reach a healthy process, including polls.
const simDelivery = 500 * time.Millisecond

// simRetry is longer than the longest pause between two attempts to find a broker.
const simRetry = 15 * time.Second

var errWitness = errors.New("an observer writes")

type witness struct {
	*neli.Neli
	w       *world
	clock   *machine
	reading *reading

	mu    sync.Mutex        // guards the fields below
	began map[int]time.Time // by partition: when it first knew a holder
	reads bool
	blind map[int]time.Duration // by role: for how long it has been led without the witness knowing
}

// testify adds a witness to the world.
func (w *world) testify() {
	v := &witness{w: w, reading: newReading(w.partitions), blind: map[int]time.Duration{}, began: map[int]time.Time{},
		clock: newMachine(w.began, w.drift*float64(w.roles%3-1), 0)}
	n, err := w.opts.New(Machine{Clock: library{v.clock}, Random: random(0, 31, w.still), ID: "witness"}, neli.Config{Observer: true, LeaderGroupID: simGroup,
		LeaderTopic: simTopic, Name: "witness", HeartbeatTimeout: w.timeouts[0], MaxClockDrift: w.drift, Roles: w.roles,
		Logger: w.logger("witness", w.opts), Provider: witnessed{w.broker.Provider("witness"), v}}, nil)
	if err != nil {
		w.Fatal(err)
	}
	v.Neli = n
	w.mu.Lock()
	w.witness = v
	w.mu.Unlock()
}

func (v *witness) close() { _ = v.Close() }

// hear checks the witness's reports, once every period.
func (w *world) hear(period time.Duration) {
	w.mu.Lock()
	v, broken, down, restarted := w.witness, w.broken, w.down, w.restarted
	w.mu.Unlock()
	if v == nil || broken { // tokens start again
		return
	}
	if v.State() == neli.StateFailed {
		w.violated("the witness failed: %v", v.Await())
	}
	w.rests("the witness", v.clock)
	for _, role := range w.looked {
		h, ok := v.Holder(role)
		if ok {
			v.check(role, h)
		}
		v.mu.Lock()
		v.blind[role] += period
		// If the broker was gone at first, the witness looks for it at growing intervals.
		looking := !v.reads && time.Since(restarted) < simRetry
		if ok || down || looking || w.profile == paused || w.leaderOf(role) == nil { // a paused process does not know whether it leads
			v.blind[role] = 0
		}
		blind := v.blind[role]
		v.mu.Unlock()
		if blind > 2*simDelivery {
			w.violated("role %d has been led for %v, and the witness knows of nobody", role, blind)
		}
	}
}

// check asserts that the reported holder is the true one, and that its evidence was read as long ago as reported.
func (v *witness) check(role int, h neli.Holder) {
	w, partition := v.w, role%v.w.partitions
	now, o := v.clock.Now(), v.reading.upTo(partition)
	w.holds("the witness", role, o, h.Token, h.Member)
	v.mu.Lock()
	if v.began[partition].IsZero() {
		v.began[partition] = time.Now()
	}
	began := v.began[partition]
	v.mu.Unlock()
	w.mu.Lock()
	of, _ := w.truths[partition].at(int32(role/w.partitions), o)
	w.mu.Unlock()
	v.reading.mu.Lock()
	heard, ok := v.reading.heard[onLog{partition, of.by}]
	v.reading.mu.Unlock()
	switch age := now.Age(heard); {
	case !ok:
		w.violated("the witness reports a holder of role %d that it has read nothing of", role)
	case time.Since(began) > age*2 && (h.Age-age).Abs() > time.Millisecond:
		w.violated("the witness has read of the holder of role %d %v ago, and reports %v", role, age, h.Age)
	default:
		w.opts.Seen.Count("told by the witness")
	}
}

// knows asserts that the witness knows all leaders, soon after all is well.
func (w *world) knows(within time.Duration) {
	w.mu.Lock()
	broken := w.broken
	w.mu.Unlock()
	if broken {
		return
	}
	agree := func() bool {
		for _, role := range w.looked {
			p := w.leaderOf(role)
			if p == nil {
				continue
			}
			token, leads := p.Token(role)
			if h, ok := w.witness.Holder(role); !ok || !leads || h.Token != token || h.Member != p.self {
				return false
			}
		}
		return true
	}
	if !w.until(within, func() bool { return agree() || w.over() }) {
		w.violated("the witness does not know who leads")
	}
}

// hears notes what the witness reads.
func (v *witness) hears(r kafka.Record) {
	w := v.w
	w.mu.Lock()
	s := w.sent[placed{r.Partition, string(r.Value)}]
	of, lives := w.evidence(r)
	w.mu.Unlock()
	v.mu.Lock()
	v.reads = v.reads || s != nil
	v.mu.Unlock()
	v.reading.hears(r, of, lives, v.clock.Now())
}

// witnessed stands between the witness and the broker.
type witnessed struct {
	kafka.Provider
	v *witness
}

func (s witnessed) Producer(props map[string]string, log *slog.Logger) (kafka.Producer, error) {
	inner, err := s.Provider.Producer(props, log)
	return &witnessProducer{inner, s.v}, err
}

func (s witnessed) Admin(over kafka.Producer) (kafka.Admin, error) {
	return s.Provider.Admin(over.(*witnessProducer).Producer)
}

func (s witnessed) LogReader(props map[string]string, log *slog.Logger) (kafka.LogReader, error) {
	inner, err := s.Provider.LogReader(props, log)
	return &spyReader{LogReader: inner, w: s.v.w, to: s.v.reading, v: s.v}, err
}

func (s witnessed) GroupConsumer(map[string]string, *slog.Logger) (kafka.GroupConsumer, error) {
	s.v.w.violated("the witness joins a group")
	return nil, errWitness
}

type witnessProducer struct {
	kafka.Producer
	v *witness
}

func (p *witnessProducer) Append(topic string, partition int, value []byte, report func(error)) error {
	var r record
	if err := json.Unmarshal(value, &r); err != nil || r.Kind != "ping" || len(r.Request) == 0 || !p.v.w.asking.on {
		p.v.w.violated("the witness writes %s", value)
		return errWitness
	}
	return p.Producer.Append(topic, partition, value, report)
}
