package neli_test

import (
	"errors"
	"log/slog"
	"time"

	"github.com/goneli/neli"
)

// simRunaway is more records than any run needs: somebody sends without end.
const simRunaway = 50_000

var errRunaway = errors.New("too many records")

// spy stands between a process and its broker, and sees what it sends and reads.
type spy struct {
	neli.Provider
	p *proc
}

func (s spy) Producer(props map[string]string, log *slog.Logger) (neli.Producer, error) {
	inner, err := s.Provider.Producer(props, log)
	return &spyProducer{inner, s.p}, err
}

func (s spy) LogReader(props map[string]string, log *slog.Logger) (neli.LogReader, error) {
	inner, err := s.Provider.LogReader(props, log)
	return &spyReader{LogReader: inner, p: s.p, last: -1}, err
}

func (s spy) Admin(over neli.Producer) (neli.Admin, error) {
	return s.Provider.Admin(over.(*spyProducer).Producer)
}

// sending is a record that some process has sent.
type sending struct {
	by     *proc
	r      neli.WireRecord
	at     time.Time
	own    stamp // of the sender, when it decided to send
	failed bool  // reported as failed
	first  time.Time
}

type spyProducer struct {
	neli.Producer
	p *proc
}

func (s *spyProducer) Append(topic string, partition int, value []byte, report func(error)) error {
	p := s.p
	r, ok := neli.DecodeWire(value, p.group)
	before := time.Now()
	at := p.sends()
	if ok && r.Kind != "hello" {
		rec := &sending{by: p, r: r, at: before, own: at}
		switch r.Kind {
		case "claim":
			p.w.say(p.id, "claims partition %d, having read %d", partition, r.Read)
			p.claims(at)
			told := report
			report = func(err error) {
				if err != nil {
					p.w.mu.Lock()
					rec.failed = true
					p.w.mu.Unlock()
				}
				told(err)
			}
		case "release":
			p.w.say(p.id, "releases partition %d, token %d", partition, r.Token)
			p.releases(partition, r.Token)
		}
		p.w.mu.Lock()
		p.w.sent[string(value)] = rec
		runaway := len(p.w.sent) > simRunaway
		if runaway {
			p.w.violatedLocked("%d records were sent", len(p.w.sent))
		}
		p.w.mu.Unlock()
		if runaway {
			return errRunaway
		}
	}
	err := s.Producer.Append(topic, partition, value, report)
	if time.Since(before) > 0 {
		p.mu.Lock()
		p.lateAt, p.lateStamp = time.Now(), at
		p.mu.Unlock()
	}
	return err
}

// sends returns the time at which what is sent now was decided. What was decided
// together is sent one after the other, and a suspension may come in between.
func (p *proc) sends() stamp {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.delayed) > 0 {
		p.w.quietAfter(p.delayed[0])
		p.delayed = p.delayed[1:]
	}
	if p.lateAt.Equal(time.Now()) {
		return p.lateStamp
	}
	return p.read()
}

// releases asserts that a Release is sent when the work has ended, or may not go
// on: the lease has lapsed, or the deadline has passed.
func (p *proc) releases(partition int, token int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.work[partition]
	if t == nil || t.token != token || t.open == 0 {
		return
	}
	now := p.read().mono
	switch {
	case !p.younger(p.proofs[term{partition, token}], p.w.timeout):
		p.w.seen.count("released while the work went on: lapsed")
	case t.dueMono > 0 && now >= t.dueMono-time.Microsecond, p.inside && now-p.since >= simDrain-time.Microsecond:
		p.w.seen.count("released while the work went on: overdue")
	default:
		p.w.violated("%s releases partition %d token %d while its work goes on, within the deadline", p.id, partition, token)
	}
}

type spyReader struct {
	neli.LogReader
	p    *proc
	last int // partition of the record returned last
}

func (s *spyReader) Poll(timeout time.Duration) (neli.Record, bool, error) {
	if s.last >= 0 {
		s.p.w.look(s.last) // it has been folded
	}
	r, ok, err := s.LogReader.Poll(timeout)
	s.last = -1
	if ok {
		s.last = r.Partition
		s.p.reads(r)
	}
	return r, ok, err
}

func (p *proc) reads(r neli.Record) {
	p.w.mu.Lock()
	rec := p.w.sent[string(r.Value)]
	if rec != nil && rec.first.IsZero() {
		rec.first = time.Now()
	}
	p.w.mu.Unlock()
	if rec == nil || rec.by != p || rec.r.Kind == "release" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if rec.r.Kind == "claim" {
		p.proofs[term{r.Partition, r.Offset}] = rec.own
		return
	}
	of := term{r.Partition, rec.r.Token}
	if have, ok := p.proofs[of]; ok && p.younger(have, p.w.timeout) && rec.own.mono > have.mono {
		p.proofs[of] = rec.own
	}
}
