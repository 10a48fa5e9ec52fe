package neli_test

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/goneli/neli"
)

// The witness is an observer in the world: no fault strikes it, so that what it
// says of who leads must be true as it is meant: at the time of a record that it
// read as long ago as it says. It must not write, and not stay ignorant.

// simDelivery is more than the broker takes to bring a record to a process that is
// well, polls included.
const simDelivery = 500 * time.Millisecond

// simRetry is more than the longest pause between two attempts to find a broker.
const simRetry = 15 * time.Second

var errWitness = errors.New("an observer writes")

type witness struct {
	*neli.Neli
	w     *world
	clock *simClock

	mu    sync.Mutex // guards what follows
	read  map[term]reading
	known map[string]bool // values read
	blind []time.Duration // by role: for how long it has been led and nobody known to
}

// reading is the newest record of a term that the witness has read.
type reading struct {
	at     time.Time
	member string
	by     *proc
}

// testify puts a witness into the world.
func (w *world) testify() {
	if w.mode != neli.Exclusive {
		return
	}
	v := &witness{w: w, read: map[term]reading{}, known: map[string]bool{}, blind: make([]time.Duration, w.roles),
		clock: &simClock{began: w.began, rate: 1 + w.drift*float64(w.roles%3-1)}}
	p := proc{clock: v.clock, id: "witness"}
	n, err := neli.NewOn(p.machine(0), neli.Config{Observer: true, LeaderGroupID: simGroup, LeaderTopic: simTopic, Name: "witness",
		HeartbeatTimeout: w.timeout, MaxClockDrift: w.drift, Roles: w.roles, Provider: witnessed{w.broker.Provider("witness"), v}}, nil)
	if err != nil {
		w.Fatal(err)
	}
	v.Neli = n
	w.mu.Lock()
	w.witness = v
	w.mu.Unlock()
}

// hear asserts what the witness says, every period.
func (w *world) hear(period time.Duration) {
	w.mu.Lock()
	v, broken, down, restarted := w.witness, w.broken, w.down, w.restarted
	w.mu.Unlock()
	if v == nil {
		return
	}
	if v.State() == neli.StateFailed && !broken {
		w.violated("the witness failed: %v", v.Await())
	}
	if broken {
		return // tokens start again
	}
	for role := range w.roles {
		h, ok := v.Holder(role)
		if ok {
			v.check(role, h)
		}
		v.mu.Lock()
		v.blind[role] += period
		// Until it has found a broker that was gone at first it asks more and more seldom.
		looking := len(v.known) == 0 && time.Since(restarted) < simRetry
		if ok || down || looking || w.leaderOf(role) == nil {
			v.blind[role] = 0
		}
		blind := v.blind[role]
		v.mu.Unlock()
		if bound := time.Duration(float64(w.timeout/5)/(1-w.drift)) + 2*simDelivery; blind > bound {
			w.violated("role %d has been led for %v, and the witness knows of nobody", role, blind)
		}
	}
}

// check asserts that a record of the term that is told was read as long ago as is
// told.
func (v *witness) check(role int, h neli.Holder) {
	of := term{role % v.w.partitions, h.Token}
	v.mu.Lock()
	r, ok := v.read[of]
	v.mu.Unlock()
	v.w.seen.count("told by the witness")
	switch age := time.Duration(float64(time.Since(r.at)) * v.clock.rate); {
	case !ok || r.by == nil:
		v.w.violated("the witness tells of partition %d token %d, of which it has read nothing", of.partition, of.token)
	case h.Member != r.member || h.Name != r.by.name:
		v.w.violated("the witness takes %s (%s) for the holder of partition %d token %d, which is %s (%s)", h.Name, h.Member,
			of.partition, of.token, r.by.name, r.member)
	case (h.Age - age).Abs() > time.Millisecond:
		v.w.violated("the witness has read of partition %d token %d %v ago, and says %v", of.partition, of.token, age, h.Age)
	default:
		v.w.mu.Lock()
		defer v.w.mu.Unlock()
		v.w.testimony[of] = r.by
	}
}

// knows asserts that the witness knows all leaders, soon after all is well.
func (w *world) knows() {
	if w.witness == nil || w.broken {
		return
	}
	agree := func() bool {
		for role := range w.roles {
			p := w.leaderOf(role)
			if p == nil {
				return false
			}
			token, leads := p.Token(role)
			if h, ok := w.witness.Holder(role); !ok || !leads || h.Token != token || h.Name != p.name {
				return false
			}
		}
		return true
	}
	if !w.until(w.bound(), func() bool { return agree() || w.over() }) {
		w.violated("the witness does not know who leads")
	}
}

// witnessed stands between the witness and the broker.
type witnessed struct {
	neli.Provider
	v *witness
}

func (s witnessed) Producer(props map[string]string, log *slog.Logger) (neli.Producer, error) {
	inner, err := s.Provider.Producer(props, log)
	return &witnessProducer{inner, s.v}, err
}

func (s witnessed) Admin(over neli.Producer) (neli.Admin, error) {
	return s.Provider.Admin(over.(*witnessProducer).Producer)
}

func (s witnessed) LogReader(props map[string]string, log *slog.Logger) (neli.LogReader, error) {
	inner, err := s.Provider.LogReader(props, log)
	return &witnessReader{inner, s.v}, err
}

func (s witnessed) GroupConsumer(map[string]string, *slog.Logger) (neli.GroupConsumer, error) {
	s.v.w.violated("the witness joins a group")
	return nil, errWitness
}

type witnessProducer struct {
	neli.Producer
	v *witness
}

func (p *witnessProducer) Append(string, int, []byte, func(error)) error {
	p.v.w.violated("the witness writes")
	return errWitness
}

type witnessReader struct {
	neli.LogReader
	v *witness
}

func (r *witnessReader) Poll(timeout time.Duration) (neli.Record, bool, error) {
	rec, ok, err := r.LogReader.Poll(timeout)
	if ok {
		r.v.reads(rec)
	}
	return rec, ok, err
}

func (v *witness) reads(rec neli.Record) {
	v.w.mu.Lock()
	s := v.w.sent[string(rec.Value)]
	late := s != nil && !v.w.broken && !s.first.IsZero() && time.Since(s.first) > simDelivery && time.Since(v.w.restarted) > simDelivery
	v.w.mu.Unlock()
	if s == nil || s.r.Kind == "release" {
		return
	}
	of := term{rec.Partition, s.r.Token}
	if s.r.Kind == "claim" {
		of.token = rec.Offset
	}
	member, _, _ := strings.Cut(s.r.Member, "/")
	v.mu.Lock()
	defer v.mu.Unlock()
	if late && !v.known[string(rec.Value)] {
		v.w.violated("the witness reads what others have read more than %v ago", simDelivery)
	}
	v.known[string(rec.Value)] = true
	v.read[of] = reading{time.Now(), member, s.by}
}
