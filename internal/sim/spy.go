package sim

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/kafka"
)

// simRunaway is more records than any run needs. If there are more, some process sends without end.
const simRunaway = 200_000

var errRunaway = errors.New("too many records")

// spy stands between a process and its broker, and sees what the process sends and reads.
type spy struct {
	kafka.Provider
	p *proc
}

func (s spy) Producer(props map[string]string, log *slog.Logger) (kafka.Producer, error) {
	inner, err := s.Provider.Producer(props, log)
	return &spyProducer{inner, s.p}, err
}

func (s spy) LogReader(props map[string]string, log *slog.Logger) (kafka.LogReader, error) {
	inner, err := s.Provider.LogReader(props, log)
	return &spyReader{LogReader: inner, w: s.p.w, to: s.p.reading, p: s.p}, err
}

func (s spy) Admin(over kafka.Producer) (kafka.Admin, error) {
	return s.Provider.Admin(over.(*spyProducer).Producer)
}

// placed is a record of one log. The sessions of a process on several logs may send equal records.
type placed struct {
	partition int
	value     string
}

// sending is a record that some process has sent.
type sending struct {
	by     *proc
	at     time.Time
	own    clock.Instant // by the sender's clock: when it decided to send the record
	failed bool          // reported as failed
	first  time.Time     // when it was first read
	times  int           // how many times it is in the log
}

type spyProducer struct {
	kafka.Producer
	p *proc
}

func (s *spyProducer) Append(topic string, partition int, value []byte, report func(error)) error {
	p, w := s.p, s.p.w
	before := time.Now()
	at := p.sends()
	rec := &sending{by: p, at: before, own: at}
	w.mu.Lock()
	if w.logID == "" || w.broken { // the topic may be another one
		w.logID = logOf(value)
	}
	r, _ := decode(value, simGroup, w.logID)
	w.sent[placed{partition, string(value)}] = rec
	w.opts.tracer.sends(p, string(value), r)
	runaway := len(w.sent) > simRunaway
	if runaway {
		w.violated("%d records were sent", len(w.sent))
	}
	w.mu.Unlock()
	switch {
	case runaway:
		return errRunaway
	case r == nil:
		w.violated("%s sends a record of another log, or of none: %s", p.id, value)
	default:
		p.reading.sends(partition, r.Session)
	}
	switch {
	case r == nil || p.crashed.Load():
	case r.Kind == "claim":
		w.say(p.id, "claims %d roles of partition %d, having read %d", len(r.roles), partition, r.Read)
		p.claims(at)
		told := report
		report = func(err error) {
			if err != nil {
				w.mu.Lock()
				rec.failed = true
				w.mu.Unlock()
			}
			told(err)
		}
	case r.Kind == "release":
		w.say(p.id, "releases %s of partition %d", brief(r.Ended), partition)
		p.releases(partition, r)
	}
	err := s.Producer.Append(topic, partition, value, report)
	if time.Since(before) > 0 {
		p.mu.Lock()
		p.lateAt, p.lateStamp = time.Now(), at
		p.mu.Unlock()
	}
	return err
}

// sends returns when the process decided to send the present record. Records that were decided on
// together are sent one after the other, and a suspension may come in between.
func (p *proc) sends() clock.Instant {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.delayed) > 0 {
		p.w.quietAfter(p.delayed[0])
		p.delayed = p.delayed[1:]
	}
	if p.lateAt.Equal(time.Now()) {
		return p.lateStamp
	}
	return p.clock.Now()
}

// releases asserts that a Release is sent only when the work has ended or may not go on: the
// lease has lapsed, which for a holder is at T(1−σ), or reading was interrupted, or the deadline
// has passed.
func (p *proc) releases(partition int, r *record) {
	proof := p.reading.proof(partition, r.Session)
	// V is the time of the decision to send, which may be a moment earlier than the sending seen here.
	lapsed := !p.younger(proof, p.t-p.t/10-p.t/20) || p.reading.interrupted(partition, r.Session)
	a := &p.app
	a.lock.Lock()
	defer a.lock.Unlock()
	now := p.clock.Now().Mono
	for _, g := range r.ended {
		for _, u := range g.roles {
			role := partition + p.w.partitions*int(u)
			t := a.work[role]
			if t == nil || t.token != g.token || t.open == 0 {
				continue
			}
			switch {
			case lapsed:
				p.w.opts.Seen.Count("released while the work went on: lapsed")
			case t.due > 0 && now >= t.due-clock.Mono(time.Microsecond), (a.inside || now == a.returned) && now.Sub(a.since) >= p.w.preparing.drain()-time.Microsecond:
				p.w.opts.Seen.Count("released while the work went on: overdue")
			default:
				p.w.violated("%s releases role %d token %d while its work goes on, within the deadline; its evidence is %v old, by T %v", p.id, role,
					g.token, p.clock.Now().Age(proof), p.t)
			}
		}
	}
}

// reading is what a process has read.
type reading struct {
	mu     sync.Mutex // guards the fields below
	folded []int64    // by partition: the offset of the newest record that it has folded, −1: none
	proofs map[onLog]clock.Instant
	heard  map[onLog]clock.Instant // when it read the newest evidence of a holder
	told   map[int]standing        // by role: the last report of Watch
	newest []uint64                // by partition: the newest session that has sent anything
	void   []uint64                // by partition: the newest session whose reading was interrupted
}

// onLog is a session on one partition.
type onLog struct {
	partition int
	session
}

type standing struct {
	status neli.Status
	token  int64
	by     string
}

func newReading(partitions int) *reading {
	r := &reading{proofs: map[onLog]clock.Instant{}, heard: map[onLog]clock.Instant{}, told: map[int]standing{}}
	for range partitions {
		r.folded = append(r.folded, -1)
	}
	r.newest, r.void = make([]uint64, partitions), make([]uint64, partitions)
	return r
}

// proof returns the stamp of the newest own evidence that was read back.
func (r *reading) proof(partition int, n uint64) clock.Instant {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.proofs[onLog{partition, session{n: n}}]
}

func (r *reading) upTo(partition int) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.folded[partition]
}

// sends notes that a session has sent a record.
func (r *reading) sends(partition int, n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.newest[partition] = max(r.newest[partition], n)
}

// interrupt ends all sessions, because reading begins again.
func (r *reading) interrupt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	copy(r.void, r.newest)
}

func (r *reading) interrupted(partition int, n uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return n <= r.void[partition]
}

type spyReader struct {
	kafka.LogReader
	w    *world
	to   *reading
	p    *proc
	v    *witness      // the witness, if p is nil
	last *kafka.Record // the record that Poll last returned; the next call of Poll shows that it was folded
}

func (s *spyReader) Assign(topic string, offsets []int64) error {
	s.last = nil
	s.to.interrupt()
	s.w.opts.tracer.assigned(s.p, offsets[0])
	return s.LogReader.Assign(topic, offsets)
}

func (s *spyReader) Poll(timeout time.Duration) (kafka.Record, bool, error) {
	if s.last != nil {
		s.taken(s.last.Partition, s.last.Offset)
		s.last = nil
	}
	r, ok, err := s.LogReader.Poll(timeout)
	if ok {
		s.w.learn(r.Partition, r.Offset, r.Value)
		s.last = &r
		if s.p != nil {
			s.w.opts.tracer.reads(s.p, r)
			s.p.reads(r)
		} else {
			s.v.hears(r)
		}
	}
	return r, ok, err
}

// taken asserts what must be true once a process has folded a record.
func (s *spyReader) taken(partition int, offset int64) {
	s.to.mu.Lock()
	s.to.folded[partition] = offset
	s.to.mu.Unlock()
	roles := s.w.lookedOn(partition)
	looks := int64(3 + len(roles)) // it may read the clock three times for each record, and once for each question below
	if s.p != nil {
		s.p.clock.reads.Add(-looks)
	} else {
		s.v.clock.reads.Add(-looks)
	}
	if s.p == nil || s.p.crashed.Load() {
		return
	}
	s.w.look(roles)
	s.w.opts.tracer.taken(s.p, offset)
	for _, role := range roles {
		if h, ok := s.p.Holder(role); ok {
			s.w.holds(s.p.id, role, offset, h.Token, h.Member)
		}
	}
}

func (p *proc) reads(r kafka.Record) {
	w, now := p.w, p.clock.Now()
	w.mu.Lock()
	rec := w.sent[placed{r.Partition, string(r.Value)}]
	if rec != nil && rec.first.IsZero() {
		rec.first = time.Now()
	}
	of, lives := w.evidence(r)
	w.mu.Unlock()
	p.reading.hears(r, of, lives, now)
	if rec == nil || rec.by != p {
		return
	}
	p.reading.mu.Lock()
	defer p.reading.mu.Unlock()
	if of.process == "" {
		return
	}
	key := onLog{r.Partition, session{n: of.n}}
	// Evidence that comes back after a lapse proves nothing.
	if have, ok := p.reading.proofs[key]; !ok || rec.own.Mono > have.Mono && p.younger(have, p.t-p.t/10) {
		p.reading.proofs[key] = rec.own
	}
}

// hears notes when evidence was read.
func (r *reading) hears(rec kafka.Record, of session, lives bool, now clock.Instant) {
	if !lives {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard[onLog{rec.Partition, of}] = now
}

// evidence returns the session whose Beat or Claim a record is, and whether it is evidence in the
// true fold. It needs the lock.
func (w *world) evidence(r kafka.Record) (of session, lives bool) {
	f := w.truths[r.Partition]
	if w.broken || r.Offset >= int64(len(f.entries)) {
		return session{}, false
	}
	e := f.entries[r.Offset]
	if e.r == nil || e.r.Kind != "beat" && e.r.Kind != "claim" {
		return session{}, false
	}
	return e.r.id(), e.lives
}

// watch notes what Watch reports, until the process ends.
func (p *proc) watch() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	for s := range p.Watch(ctx) {
		p.reading.mu.Lock()
		for role := range s.Roles() {
			p.reading.told[role] = standing{s.Status, s.Holder.Token, s.Holder.Member}
		}
		p.reading.mu.Unlock()
	}
}
